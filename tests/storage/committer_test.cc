// The committer: when its barriers start and what they promise, and its file handles, which are bounded.
#include "core/storage/committer.h"

#include <gtest/gtest.h>

#include <cstdio>

#include "core/base/check.h"
#include "core/io/turn.h"
#include "io/sim/world.h"

namespace rq::storage {
namespace {

constexpr std::size_t kHandlesMax = 16;

struct CommitterShard final : io::Shard {
  explicit CommitterShard(io::Host& host, io::Turn& turn_ref) : committer(host, kHandlesMax), turn(turn_ref) {}
  void expire(Now) override {}
  void settle(Now now) override {
    committer.settle(now);
    committer.check_invariants();
    for (const Committer::Advance& advance : committer.advances()) advanced.push_back(advance.log);
    committer.advances().clear();
  }
  Instant next_deadline() const override { return committer.next_deadline(); }
  Committer committer;
  io::Turn& turn;
  std::vector<Committer::LogId> advanced;
};

struct Bench {
  explicit Bench(std::uint64_t seed = 1) : world(seed), disk(world.make_disk("machine")) {
    process = &world.make_process("p", disk, [](io::Host& host, io::Turn& turn) {
      return std::unique_ptr<io::Shard, void (*)(io::Shard*)>(new CommitterShard(host, turn),
                                                              [](io::Shard* s) { delete static_cast<CommitterShard*>(s); });
    });
    process->start();
  }
  CommitterShard& shard() { return *static_cast<CommitterShard*>(process->shard()); }
  Committer& committer() { return shard().committer; }
  void append(Committer::LogId log, std::string_view text) {
    committer().append(log, Slice::copy_of(bytes_of(text)));
    committer().want_barrier(log);
  }
  bool drain() {
    process->poke();
    return world.run_until([&] { return committer().all_idle(); }, 600 * kSecond);
  }
  sim::World world;
  sim::SimDisk& disk;
  sim::Process* process = nullptr;
};

std::string name(std::size_t i) { return "log" + std::to_string(i); }

TEST(Committer, ManyLogsOneAfterTheOtherTakeNoMoreHandlesThanAllowed) {
  Bench bench;
  std::vector<Committer::LogId> logs;
  for (std::size_t i = 0; i < 500; ++i) logs.push_back(bench.committer().add(name(i), 0, Committer::Role::wal, 0, 0));
  for (int round = 0; round < 3; ++round) {
    for (const Committer::LogId log : logs) {
      bench.append(log, "a");
      ASSERT_TRUE(bench.drain());
      ASSERT_LE(bench.disk.handles_open(), kHandlesMax + 2);  // some are on their way out
    }
  }
  for (std::size_t i = 0; i < logs.size(); ++i) {
    EXPECT_EQ(bench.disk.durable_content(name(i)), "") << "nobody has synced the directory";
    EXPECT_EQ(bench.disk.content(name(i)), "aaa");
  }
}

TEST(Committer, MoreBusyLogsThanHandlesAllBecomeDurable) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Bench bench(seed);
    bench.disk.handles_max = seed % 2 == 0 ? 20 : 1'000;  // with EMFILE, and without
    std::vector<Committer::LogId> logs;
    for (std::size_t i = 0; i < 100; ++i) {
      bench.disk.put(name(i), "");
      logs.push_back(bench.committer().add(name(i), 0, Committer::Role::segment, 0, 0));
    }
    for (int round = 0; round < 3; ++round) {
      for (const Committer::LogId log : logs) bench.append(log, "ab");
      ASSERT_TRUE(bench.drain()) << seed;
    }
    for (std::size_t i = 0; i < logs.size(); ++i) EXPECT_EQ(bench.disk.durable_content(name(i)), "ababab");
    for (const Committer::LogId log : logs) bench.committer().close(log);
    ASSERT_TRUE(bench.world.run_until([&] { return bench.disk.handles_open() == 0; }, 60 * kSecond));
  }
}

// Logs whose handles are open, on a disk on which every call takes as long.
struct Overlap : testing::Test {
  void slow(std::int64_t latency_ns, std::size_t count, Committer::Role role = Committer::Role::wal) {
    for (std::size_t i = 0; i < count; ++i) {
      logs.push_back(bench.committer().add(name(i), 0, role, 0, 0));
      bench.append(logs.back(), "a");
      ASSERT_TRUE(bench.drain());
    }
    bench.disk.faults.latency_ns_min = bench.disk.faults.latency_ns_max = latency_ns;
    before = bench.committer().barriers();
    begin = bench.world.now();
  }
  void append(std::size_t log, std::string_view text = "b") {
    bench.append(logs[log], text);
    bench.process->poke();
  }
  void run_until_ms(double at) { bench.world.run_for(begin + static_cast<std::int64_t>(at * kMillisecond) - bench.world.now()); }
  std::uint64_t started() { return bench.committer().barriers() - before; }
  std::uint64_t durable(std::size_t log) { return bench.committer().durable(logs[log]); }
  Bench bench;
  std::vector<Committer::LogId> logs;
  std::uint64_t before = 0;
  Instant begin{};
};
constexpr std::uint64_t kLarge = Committer::kLargeSetBytes + 1;

TEST_F(Overlap, ASecondBarrierStartsWhenTheFirstHasLastedTwoMilliseconds) {
  slow(100 * kMillisecond, 3);
  append(0);
  run_until_ms(0.5);
  EXPECT_EQ(started(), 1u);
  append(1);
  append(2);
  run_until_ms(1.9);
  EXPECT_EQ(started(), 1u);
  run_until_ms(2.1);
  EXPECT_EQ(started(), 2u);  // both in one
}

TEST_F(Overlap, AThirdOneWaitsAsLongForTheSecond) {
  slow(100 * kMillisecond, 4);
  append(0);
  run_until_ms(0.5);
  append(1);
  run_until_ms(2.5);
  ASSERT_EQ(started(), 2u);
  append(2);
  run_until_ms(3);
  append(3);
  run_until_ms(3.9);
  EXPECT_EQ(started(), 2u);
  run_until_ms(4.1);
  EXPECT_EQ(started(), 3u);
}

TEST_F(Overlap, WhatIsLeftRunningWhenTheFirstEndsIsWaitedForAnew) {
  slow(5 * kMillisecond, 4);
  append(0);
  ASSERT_TRUE(bench.drain());
  const std::int64_t takes = bench.world.now() - begin;
  begin = bench.world.now();
  append(0);
  bench.world.run_for(takes - kMillisecond);
  append(1);
  ASSERT_TRUE(bench.world.run_until([&] { return durable(0) == 3; }, kSecond));
  ASSERT_EQ(started(), 3u);
  append(2);
  bench.world.run_for(kMillisecond / 2);
  append(3);
  EXPECT_EQ(started(), 3u);
  ASSERT_TRUE(bench.drain());
  EXPECT_EQ(started(), 4u);
}

TEST_F(Overlap, FourRunAtMostAndTheNextOneStartsWhenOneEnds) {
  slow(100 * kMillisecond, 6);
  for (std::size_t i = 0; i < 6; ++i) {
    append(i);
    run_until_ms(3.0 * static_cast<double>(i + 1));
  }
  EXPECT_EQ(started(), 4u);
  run_until_ms(90);
  EXPECT_EQ(started(), 4u);
  ASSERT_TRUE(bench.drain());
  EXPECT_EQ(started(), 5u);
}

TEST_F(Overlap, ALargeSetGoesAloneAndAtOnceAndNobodyWaitsForIt) {
  slow(100 * kMillisecond, 5);
  append(0);
  run_until_ms(0.5);
  append(1, std::string(kLarge, 'x'));
  append(2, std::string(kLarge, 'x'));
  append(3);
  run_until_ms(0.6);
  EXPECT_EQ(started(), 4u);  // the small one beside them
  ASSERT_TRUE(bench.drain());
  EXPECT_EQ(started(), 4u);
}

TEST_F(Overlap, ADiskOfThreeMillisecondsHasOneBarrierInTwo) {
  constexpr std::size_t kLogs = 60;
  slow(3 * kMillisecond, kLogs);
  for (std::size_t i = 0; i < 10 * kLogs; ++i) {
    append(i % kLogs);
    run_until_ms(0.2 * static_cast<double>(i + 1));
  }
  EXPECT_GE(started(), 40u);
  EXPECT_LE(started(), 61u);  // in 120 ms
}

struct PlantedOverlap final : io::Chaos {
  bool fire(const char*, std::uint32_t) override { return false; }
  bool planted(const char* bug) override { return std::string_view(bug) == "overlap_at_once"; }
};

TEST_F(Overlap, ABarrierThatDoesNotWaitBreaksTheInvariant) {
  PlantedOverlap chaos;
  bench.world.set_chaos(&chaos);
  bench.process->kill();
  bench.process->start();
  slow(100 * kMillisecond, 2);
  append(0);
  run_until_ms(0.5);
  append(1);
  set_check_handler([](const char*, int, const char* expression) { std::fprintf(stderr, "%s\n", expression); });
  EXPECT_DEATH(run_until_ms(1), "kNextBarrierAfterNs");
  set_check_handler(nullptr);
}

TEST_F(Overlap, AnythingAppendedAtAnyTimeBecomesDurableUnderTheInvariants) {
  constexpr std::size_t kLogs = 20;
  slow(0, kLogs);
  bench.disk.faults.latency_ns_max = 6 * kMillisecond;
  Random random = bench.world.random("test");
  std::vector<std::uint64_t> bytes(kLogs, 1);
  for (int i = 0; i < 2'000; ++i) {
    const std::size_t log = random.below(kLogs);
    const std::string text(random.chance(8) ? kLarge : 1 + random.below(100), 'x');
    append(log, text);
    bytes[log] += text.size();
    bench.world.run_for(static_cast<std::int64_t>(random.below(400)) * kMicrosecond);
  }
  ASSERT_TRUE(bench.drain());
  for (std::size_t i = 0; i < kLogs; ++i) EXPECT_EQ(durable(i), bytes[i]);
}

TEST_F(Overlap, AfterAFailedBarrierNothingIsSubmittedAndNothingBecomesDurable) {
  slow(10 * kMillisecond, 3);
  append(0);
  run_until_ms(0.5);
  append(1);
  run_until_ms(3);
  ASSERT_EQ(started(), 2u);
  bench.disk.faults.sync_fail = 1'024;
  ASSERT_TRUE(bench.world.run_until([&] { return bench.committer().fault().has_value(); }, kSecond));
  bench.disk.faults.sync_fail = 0;  // the second one may well succeed
  bench.shard().advanced.clear();
  const std::uint64_t appends = bench.committer().appends();
  append(2);
  bench.world.run_for(kSecond);
  EXPECT_EQ(started(), 2u);
  EXPECT_EQ(bench.committer().appends(), appends);
  EXPECT_TRUE(bench.shard().advanced.empty());
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(durable(i), 1u);
  EXPECT_EQ(bench.committer().next_deadline(), Instant::never());
}

// D-16: after a barrier the next one is held for the publishers that were just answered.
struct Held : Overlap {
  // A barrier has ended, in this turn, which answered so many publishers.
  void answer(std::uint32_t publishers, Committer::Role role = Committer::Role::segment) {
    slow(50 * kMicrosecond, 3, role);
    bench.committer().note_answered(publishers, {bench.world.now(), {}});
  }
  void publish(std::size_t log) {
    bench.committer().note_publishers(1);
    append(log);
  }
  void run_until_us(std::int64_t at) { bench.world.run_for(begin + at * kMicrosecond - bench.world.now()); }
  static constexpr std::int64_t kHoldUs = Committer::kHoldNs / kMicrosecond;
};

TEST_F(Held, UntilAsManyHaveArrived) {
  answer(3);
  publish(0);
  publish(1);
  run_until_us(kHoldUs - 1);
  EXPECT_EQ(started(), 0u);
  publish(2);
  run_until_us(kHoldUs);
  EXPECT_EQ(started(), 1u);
}

TEST_F(Held, NoLongerThanTheHold) {
  answer(3);
  publish(0);
  run_until_us(kHoldUs - 1);
  EXPECT_EQ(started(), 0u);
  run_until_us(kHoldUs + 1);
  EXPECT_EQ(started(), 1u);
}

TEST_F(Held, OnlyOnce) {
  answer(2);
  publish(0);
  ASSERT_TRUE(bench.drain());
  ASSERT_EQ(started(), 1u);
  begin = bench.world.now();
  publish(1);
  run_until_us(1);
  EXPECT_EQ(started(), 2u);
}

TEST_F(Held, NotWhereNobodyPublishes) {
  answer(3, Committer::Role::wal);
  append(0);
  run_until_us(1);
  EXPECT_EQ(started(), 1u);
}

}  // namespace
}  // namespace rq::storage
