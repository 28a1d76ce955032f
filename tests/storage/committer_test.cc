// The committer's file handles: bounded, and closed only where nothing is on its way.
#include "core/storage/committer.h"

#include <gtest/gtest.h>

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
    committer.advances().clear();
  }
  Instant next_deadline() const override { return committer.next_deadline(); }
  Committer committer;
  io::Turn& turn;
};

struct Bench {
  explicit Bench(std::uint64_t seed = 1) : world(seed), disk(world.make_disk("machine")) {
    process = &world.make_process("p", disk, [](io::Host& host, io::Turn& turn) {
      return std::unique_ptr<io::Shard, void (*)(io::Shard*)>(new CommitterShard(host, turn),
                                                              [](io::Shard* s) { delete static_cast<CommitterShard*>(s); });
    });
    process->start();
  }
  Committer& committer() { return static_cast<CommitterShard*>(process->shard())->committer; }
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

}  // namespace
}  // namespace rq::storage
