// Determinism, virtual time, turns, and the life of a simulated process.
#include <gtest/gtest.h>

#include <set>

#include "tests/io/sim_bench.h"

namespace rq::sim {
namespace {

// Appends records, makes them durable, answers over the network: a little of everything, in turns.
struct Writer final : io::Shard {
  Writer(io::Host& host_, io::Turn&) : host(host_) {
    io::bind<&Writer::on_open>(open, this);
    io::bind<&Writer::on_append>(append, this);
    io::bind<&Writer::on_barrier>(barrier, this);
    io::bind<&Writer::on_listen>(listen, this);
    host.disk.open(open, "log", io::OpenMode::append);
    host.net.listen(listen, "0.0.0.0:1");
  }
  void on_open(io::Op& op) { file = op.error ? io::FileId::none : op.file(); }
  void on_append(io::Op& op) { failures += op.error ? 1 : 0; }
  void on_barrier(io::Op& op) {
    failures += op.error ? 1 : 0;
    finished.push_back(host.clock.now().ns);
  }
  void on_listen(io::Op&) {}
  void expire(Now now) override {
    if (now.mono < next) return;
    next = now.mono + kMillisecond;
    wanted = true;
  }
  void settle(Now) override {
    if (!wanted || file == io::FileId::none || append.in_flight || barrier.in_flight) return;
    wanted = false;
    record = "record " + std::to_string(host.random.below(1'000'000)) + "\n";
    const ConstBuf piece = bytes_of(record);
    host.disk.append(append, file, std::span(&piece, 1));
    const io::BarrierFile entry{file};
    host.disk.barrier(barrier, std::span(&entry, 1));
  }
  Instant next_deadline() const override { return next; }

  io::Host& host;
  io::Op open, append, barrier, listen;
  io::FileId file = io::FileId::none;
  Instant next{};
  bool wanted = false;
  std::string record;
  int failures = 0;
  std::vector<std::int64_t> finished;
};

Process& writer(World& world, SimDisk& disk) {
  return world.make_process("writer", disk, [](io::Host& host, io::Turn& turn) {
    return std::unique_ptr<io::Shard, void (*)(io::Shard*)>(new Writer(host, turn),
                                                            [](io::Shard* shard) { delete static_cast<Writer*>(shard); });
  });
}

struct Result {
  std::uint64_t hash;
  std::string content;
};

Result run_scenario(std::uint64_t seed) {
  World world(seed);
  SimDisk& disk = world.make_disk("m");
  disk.faults.sync_fail = 20;
  disk.faults.write_io_error = 20;
  disk.faults.stall = 5;
  Process& process = writer(world, disk);
  Random draws = world.random("test");
  for (int i = 0; i < 10; ++i) {
    process.start();
    world.run_for(static_cast<std::int64_t>(draws.below(50 * kMillisecond)));
    process.kill();
    if (draws.below(2) == 0) disk.power_loss();
  }
  return {world.trace_hash(), disk.content("log")};
}

TEST(SimWorld, ASeedReplaysEventForEvent) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Result first = run_scenario(seed);
    const Result second = run_scenario(seed);
    EXPECT_EQ(first.hash, second.hash);
    EXPECT_EQ(first.content, second.content);
  }
}

TEST(SimWorld, SeedsDiffer) {
  std::set<std::uint64_t> hashes;
  for (std::uint64_t seed = 0; seed < 20; ++seed) hashes.insert(run_scenario(seed).hash);
  EXPECT_EQ(hashes.size(), 20u);
}

TEST(SimWorld, SwitchingAFaultOnDoesNotMoveTheDrawsOfOthers) {
  const auto finish_times = [](std::uint32_t sync_fail) {
    World world(3);
    SimDisk& disk = world.make_disk("m");
    disk.faults.sync_fail = sync_fail;
    Process& process = writer(world, disk);
    process.start();
    world.run_for(2 * kSecond);
    return static_cast<Writer*>(process.shard())->finished;
  };
  const std::vector<std::int64_t> calm = finish_times(0);
  EXPECT_GT(calm.size(), 100u);
  EXPECT_EQ(calm, finish_times(1024));
}

TEST(SimWorld, NotesAreInTheTraceHash) {
  World one(1), two(1), three(1);
  one.note("a");
  two.note("b");
  three.note("a");
  EXPECT_NE(one.trace_hash(), two.trace_hash());
  EXPECT_EQ(one.trace_hash(), three.trace_hash());
}

TEST(SimWorld, TimePassesWithoutEvents) {
  World world(1);
  world.run_for(5 * kSecond);
  EXPECT_EQ(world.now().ns, 5 * kSecond);
  EXPECT_FALSE(world.run_until([] { return false; }, kSecond));
  EXPECT_EQ(world.now().ns, 6 * kSecond);
  EXPECT_FALSE(world.step());
}

TEST(SimWorld, ActionsOfOneInstantRunInAnOrderThatTheSeedDecides) {
  std::set<std::string> orders;
  for (int seed = 0; seed < 50; ++seed) {
    World world(seed);
    std::string order;
    for (const char name : {'a', 'b', 'c'}) world.at(kSecond, [&order, name] { order.push_back(name); });
    world.run_for(2 * kSecond);
    EXPECT_EQ(order.size(), 3u);
    orders.insert(order);
  }
  EXPECT_EQ(orders.size(), 6u);
}

TEST(SimProcess, AKilledProcessGetsNoTurnAndNoOp) {
  World world(1);
  SimDisk& disk = world.make_disk("m");
  Process& process = writer(world, disk);
  process.start();
  world.run_for(kSecond);
  process.kill();
  EXPECT_EQ(process.shard(), nullptr);
  const std::uint64_t events = world.events();
  world.run_for(60 * kSecond);
  EXPECT_LE(world.events() - events, 5u) << "only what was on its way, and nobody hears it";
  EXPECT_EQ(world.counts().kills, 1u);
}

TEST(SimProcess, EachIncarnationHasRandomnessOfItsOwn) {
  World world(1);
  SimDisk& disk = world.make_disk("m");
  Process& process = idle_process(world, "p", disk);
  process.start();
  const std::uint64_t first = process.host()->random.next();
  process.kill();
  process.start();
  EXPECT_NE(process.host()->random.next(), first);
}

TEST(SimProcess, ItsWallClockCanBeStepped) {
  World world(1);
  SimDisk& disk = world.make_disk("m");
  Process& process = idle_process(world, "p", disk);
  process.start();
  const std::int64_t before = process.host()->clock.wall().ns;
  EXPECT_EQ(before, WorldOptions{}.wall_start_ns);
  process.wall_offset_ns = -3600 * kSecond;
  EXPECT_EQ(process.host()->clock.wall().ns, before - 3600 * kSecond);
  EXPECT_EQ(process.host()->clock.now(), world.now());
}

TEST(SimProcess, CompletionsCloseInTimeMayShareATurn) {
  bool shared = false, alone = false;
  for (int seed = 0; seed < 50; ++seed) {
    SimBench bench(seed);
    const std::uint64_t before = bench.process.turn().turns();
    std::deque<TestOp> ops(4);
    for (TestOp& op : ops) bench.port().open(op, "f", io::OpenMode::append);
    for (TestOp& op : ops) bench.wait(op);
    const std::uint64_t turns = bench.process.turn().turns() - before;
    EXPECT_GE(turns, 1u);
    shared = shared || turns < 4;
    alone = alone || turns >= 4;
  }
  EXPECT_TRUE(shared && alone);
}

TEST(SimProcess, AShardThatIsAlwaysDueDoesNotStopTime) {
  struct Due final : io::Shard {
    void expire(Now) override {}
    void settle(Now) override {}
    Instant next_deadline() const override { return {}; }
  };
  World world(1);
  SimDisk& disk = world.make_disk("m");
  Process& process = world.make_process("p", disk, [](io::Host&, io::Turn&) {
    return std::unique_ptr<io::Shard, void (*)(io::Shard*)>(new Due, [](io::Shard* shard) { delete static_cast<Due*>(shard); });
  });
  process.start();
  world.run_for(kMillisecond);
  EXPECT_EQ(world.now().ns, kMillisecond);
  EXPECT_LE(process.turn().turns(), 1'001u);
}

TEST(SimProcess, ADeadlineComesInTimeAndNotEarlier) {
  World world(1);
  SimDisk& disk = world.make_disk("m");
  Process& process = writer(world, disk);
  process.start();
  world.run_for(100 * kMillisecond);
  EXPECT_NEAR(static_cast<double>(static_cast<Writer*>(process.shard())->finished.size()), 99.0, 3.0);
}

TEST(SimProcess, ChaosReachesTheHost) {
  struct Switches final : io::Chaos {
    bool fire(const char*, std::uint32_t) override { return false; }
    bool planted(const char* bug) override { return std::string_view(bug) == "bug"; }
  } chaos;
  World world(1);
  SimDisk& disk = world.make_disk("m");
  Process& process = idle_process(world, "p", disk);
  world.set_chaos(&chaos);
  process.start();
  EXPECT_TRUE(io::planted(*process.host(), "bug"));
  EXPECT_FALSE(io::planted(*process.host(), "other"));
}

TEST(SimProcess, LogEventsGoToTheWorldWithTheNameOfTheProcess) {
  World world(1);
  std::vector<std::string> lines;
  world.set_log([&](std::string_view process, io::Level, std::string_view event, std::string_view fields) {
    lines.push_back(std::string(process) + " " + std::string(event) + " " + std::string(fields));
  });
  SimDisk& disk = world.make_disk("m");
  Process& process = idle_process(world, "p", disk);
  process.start();
  process.host()->log.log(io::Level::info, "started", "port=1");
  EXPECT_EQ(lines, std::vector<std::string>{"p started port=1"});
}

}  // namespace
}  // namespace rq::sim
