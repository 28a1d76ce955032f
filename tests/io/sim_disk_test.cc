// What only a simulated disk can do: power losses, failed syncs, calls cut off by a kill. The rest of the Disk port is in the
// conformance suite.
#include <gtest/gtest.h>

#include <set>

#include "tests/io/sim_bench.h"

namespace rq::sim {
namespace {

constexpr int kSeeds = 300;

// A durable directory entry for an empty file, open for appending.
io::FileId durable_file(SimBench& bench, std::string_view path) {
  bench.disk.put(path, "");
  return bench.open(path, io::OpenMode::append);
}

TEST(SimDisk, PowerLossKeepsWhatABarrierCovered) {
  for (int seed = 0; seed < kSeeds; ++seed) {
    SimBench bench(seed);
    const io::FileId file = durable_file(bench, "/d/f");
    ASSERT_EQ(bench.append(file, "durable"), io::Errc::ok);
    ASSERT_EQ(bench.barrier(file), io::Errc::ok);
    EXPECT_EQ(bench.disk.durable_content("/d/f"), "durable");
    ASSERT_EQ(bench.append(file, "maybe"), io::Errc::ok);
    EXPECT_EQ(bench.disk.content("/d/f"), "durablemaybe");
    EXPECT_EQ(bench.disk.durable_content("/d/f"), "durable");
    bench.power_loss();
    EXPECT_TRUE(bench.disk.content("/d/f").starts_with("durable"));
  }
}

TEST(SimDisk, PowerLossKeepsCutsOrLosesUnsyncedAppendsAndLeavesAPrefix) {
  std::set<std::string> outcomes;
  for (int seed = 0; seed < kSeeds; ++seed) {
    SimBench bench(seed);
    const io::FileId file = durable_file(bench, "f");
    bench.append(file, "ab");
    bench.append(file, "cd");
    bench.append(file, "ef");
    bench.power_loss();
    const std::string left = bench.disk.content("f");
    EXPECT_EQ(left, std::string("abcdef").substr(0, left.size()));
    outcomes.insert(left);
  }
  EXPECT_EQ(outcomes.size(), 7u);
}

TEST(SimDisk, HostilePowerLossMayLeaveZerosBeforeAKeptAppend) {
  bool hole = false;
  for (int seed = 0; seed < kSeeds; ++seed) {
    SimBench bench(seed);
    bench.disk.faults.hostile = true;
    const io::FileId file = durable_file(bench, "f");
    bench.append(file, "ab");
    bench.append(file, "cd");
    bench.power_loss();
    const std::string left = bench.disk.content("f");
    hole = hole || left.find('\0') != std::string::npos;
    EXPECT_LE(left.size(), 4u);
  }
  EXPECT_TRUE(hole);
}

TEST(SimDisk, ABarrierDoesNotPromiseAppendsSubmittedAfterIt) {
  bool lost = false;
  for (int seed = 0; seed < kSeeds; ++seed) {
    SimBench bench(seed);
    const io::FileId file = durable_file(bench, "f");
    TestOp first, barrier, second;
    bench.start_append(first, file, "ab");
    const io::BarrierFile entry{file};
    bench.port().barrier(barrier, std::span(&entry, 1));
    bench.start_append(second, file, "cd");
    bench.wait(barrier);
    bench.wait(second);
    EXPECT_FALSE(first.in_flight);
    EXPECT_EQ(bench.disk.durable_content("f"), "ab");
    bench.power_loss();
    EXPECT_TRUE(bench.disk.content("f").starts_with("ab"));
    lost = lost || bench.disk.content("f") == "ab";
  }
  EXPECT_TRUE(lost);
}

TEST(SimDisk, AKillKeepsThePageCacheAndTearsTheAppendOnItsWay) {
  std::set<std::string> outcomes;
  for (int seed = 0; seed < kSeeds; ++seed) {
    SimBench bench(seed);
    const io::FileId file = durable_file(bench, "f");
    bench.append(file, "1");
    TestOp& second = bench.op();
    TestOp& third = bench.op();
    bench.start_append(second, file, "234");
    bench.start_append(third, file, "56");
    bench.process.kill();
    EXPECT_FALSE(second.in_flight);
    EXPECT_EQ(bench.disk.handles_open(), 0u);
    const std::string left = bench.disk.content("f");
    EXPECT_GE(left.size(), 1u);
    EXPECT_EQ(left, std::string("123456").substr(0, left.size()));
    outcomes.insert(left);
  }
  EXPECT_EQ(outcomes.size(), 6u);
}

TEST(SimDisk, AFailedSyncReportsOnceAndLeavesReadablePagesInDanger) {
  bool survived = false, lost = false;
  for (int seed = 0; seed < kSeeds; ++seed) {
    SimBench bench(seed);
    io::FileId file = durable_file(bench, "f");
    bench.append(file, "ab");
    bench.disk.faults.sync_fail = 1024;
    EXPECT_EQ(bench.barrier(file), io::Errc::io);
    EXPECT_EQ(bench.world.counts().sync_failures, 1u);
    bench.disk.faults.sync_fail = 0;
    EXPECT_EQ(bench.barrier(file), io::Errc::io) << "the handle stays failed";
    bench.close(file);
    file = bench.open("f", io::OpenMode::append);
    EXPECT_EQ(bench.barrier(file), io::Errc::ok) << "a new handle hears nothing of it";
    EXPECT_EQ(bench.disk.content("f"), "ab");
    EXPECT_EQ(bench.disk.durable_content("f"), "");
    bench.power_loss();
    survived = survived || bench.disk.content("f") == "ab";
    lost = lost || bench.disk.content("f") != "ab";
  }
  EXPECT_TRUE(survived && lost);
}

TEST(SimDisk, RewritingInPlaceSavesWhatAFailedSyncLeftInDanger) {
  for (int seed = 0; seed < kSeeds; ++seed) {
    SimBench bench(seed);
    io::FileId file = durable_file(bench, "f");
    bench.append(file, "abcd");
    bench.disk.faults.sync_fail = 1024;
    bench.barrier(file);
    bench.disk.faults.sync_fail = 0;
    bench.close(file);
    file = bench.open("f", io::OpenMode::rewrite);
    ASSERT_EQ(bench.rewrite(file, 0, "abcd"), io::Errc::ok);
    ASSERT_EQ(bench.barrier(file), io::Errc::ok);
    EXPECT_EQ(bench.disk.durable_content("f"), "abcd");
    bench.power_loss();
    EXPECT_EQ(bench.disk.content("f"), "abcd");
  }
}

TEST(SimDisk, LaterDurableBytesLeaveZerosWhereAFailedSyncLostSome) {
  bool zeros = false;
  for (int seed = 0; seed < kSeeds; ++seed) {
    SimBench bench(seed);
    io::FileId file = durable_file(bench, "f");
    bench.append(file, "ab");
    bench.disk.faults.sync_fail = 1024;
    bench.barrier(file);
    bench.disk.faults.sync_fail = 0;
    bench.close(file);
    file = bench.open("f", io::OpenMode::append);
    bench.append(file, "cd");
    ASSERT_EQ(bench.barrier(file), io::Errc::ok);
    bench.power_loss();
    EXPECT_EQ(bench.disk.content("f").size(), 4u);
    EXPECT_TRUE(bench.disk.content("f").ends_with("cd"));
    zeros = zeros || bench.disk.content("f")[0] == '\0';
  }
  EXPECT_TRUE(zeros);
}

TEST(SimDisk, RewritingTheSameBytesEndangersNothing) {
  SimBench bench;
  bench.disk.put("f", "abcdef");
  const io::FileId file = bench.open("f", io::OpenMode::rewrite);
  bench.rewrite(file, 2, "cdef");
  EXPECT_EQ(bench.disk.durable_content("f"), "abcdef");
}

TEST(SimDisk, ATruncationIsDurableAtTheBarrierAndOrdersWhatFollows) {
  std::set<std::string> outcomes;
  for (int seed = 0; seed < kSeeds; ++seed) {
    SimBench bench(seed);
    bench.disk.put("f", "old!");
    const io::FileId file = bench.open("f", io::OpenMode::append);
    bench.truncate(file, 0);
    bench.append(file, "n");
    bench.power_loss();
    outcomes.insert(bench.disk.content("f"));
  }
  EXPECT_EQ(outcomes, (std::set<std::string>{"old!", "", "n"}));
}

TEST(SimDisk, ANewNameIsDurableAtTheSyncOfItsDirectory) {
  bool lost = false, kept = false;
  for (int seed = 0; seed < kSeeds; ++seed) {
    SimBench bench(seed);
    bench.disk.put("d/x", "");
    const io::FileId file = bench.open("d/f", io::OpenMode::append_new);
    bench.append(file, "a");
    bench.barrier(file);
    EXPECT_EQ(bench.disk.durable_content("d/f"), "");
    const bool synced = seed % 2 == 0;
    if (synced) {
      ASSERT_EQ(bench.sync_dir("d"), io::Errc::ok);
    }
    bench.power_loss();
    if (synced) {
      EXPECT_EQ(bench.disk.content("d/f"), "a");
      continue;
    }
    (bench.disk.exists("d/f") ? kept : lost) = true;
  }
  EXPECT_TRUE(lost && kept);
}

TEST(SimDisk, ADirectoryThatWasNotSyncedIntoItsParentTakesItsFilesWithIt) {
  bool lost = false;
  for (int seed = 0; seed < kSeeds; ++seed) {
    SimBench bench(seed);
    bench.make_dir("d");
    const io::FileId file = bench.open("d/f", io::OpenMode::append);
    bench.append(file, "a");
    bench.barrier(file);
    bench.sync_dir("d");
    bench.power_loss();
    lost = lost || !bench.disk.exists("d");
    if (bench.disk.exists("d")) {
      EXPECT_EQ(bench.disk.content("d/f"), "a");
    }
  }
  EXPECT_TRUE(lost);
}

TEST(SimDisk, ARenameLeavesTheOldFileOrTheNewOneAndNeverNeither) {
  bool saw_old = false, saw_new = false;
  for (int seed = 0; seed < kSeeds; ++seed) {
    SimBench bench(seed);
    bench.disk.put("d/f", "old");
    const io::FileId file = bench.open("d/f.tmp", io::OpenMode::create);
    bench.append(file, "new");
    bench.barrier(file);
    ASSERT_EQ(bench.rename("d/f.tmp", "d/f"), io::Errc::ok);
    EXPECT_EQ(bench.disk.content("d/f"), "new");
    EXPECT_EQ(bench.disk.durable_content("d/f"), "old");
    bench.power_loss();
    const std::string left = bench.disk.content("d/f");
    EXPECT_TRUE(left == "old" || left == "new") << left;
    if (left == "new") {
      EXPECT_FALSE(bench.disk.exists("d/f.tmp")) << "one file, one name";
    }
    saw_old = saw_old || left == "old";
    saw_new = saw_new || left == "new";
  }
  EXPECT_TRUE(saw_old && saw_new);
}

TEST(SimDisk, ARenameBeforeTheBarrierMayLeaveAnEmptyFile) {
  bool empty = false;
  for (int seed = 0; seed < kSeeds; ++seed) {
    SimBench bench(seed);
    bench.disk.put("f", "old");
    const io::FileId file = bench.open("f.tmp", io::OpenMode::create);
    bench.append(file, "new");
    bench.rename("f.tmp", "f");
    bench.sync_dir("/");
    bench.power_loss();
    empty = empty || bench.disk.content("f").empty();
  }
  EXPECT_TRUE(empty);
}

TEST(SimDisk, AnUnlinkMayComeBackUntilTheDirectoryIsSynced) {
  bool back = false;
  for (int seed = 0; seed < kSeeds; ++seed) {
    SimBench bench(seed);
    bench.disk.put("d/f", "a");
    bench.unlink("d/f");
    const bool synced = seed % 2 == 0;
    if (synced) bench.sync_dir("d");
    bench.power_loss();
    if (synced) {
      EXPECT_FALSE(bench.disk.exists("d/f"));
    }
    if (bench.disk.exists("d/f")) {
      back = true;
      EXPECT_EQ(bench.disk.content("d/f"), "a");
    }
  }
  EXPECT_TRUE(back);
}

TEST(SimDisk, ARenameAcrossDirectoriesIsDurableWhenBothAreSynced) {
  for (int seed = 0; seed < kSeeds; ++seed) {
    SimBench bench(seed);
    bench.disk.put("a/f", "x");
    bench.disk.put("b/g", "y");
    bench.rename("a/f", "b/f");
    if (seed % 2 == 0) {
      bench.sync_dir("a");
      bench.sync_dir("b");
    }
    bench.power_loss();
    const bool moved = bench.disk.content("b/f") == "x";
    EXPECT_NE(moved, bench.disk.content("a/f") == "x") << "one of the two names";
    if (seed % 2 == 0) {
      EXPECT_TRUE(moved);
    }
  }
}

TEST(SimDisk, AFailedAppendMayHaveWrittenAPartAndFailsTheBarrier) {
  std::set<std::size_t> sizes;
  for (int seed = 0; seed < kSeeds; ++seed) {
    SimBench bench(seed);
    const io::FileId file = durable_file(bench, "f");
    bench.disk.faults.write_io_error = 1024;
    TestOp failing, behind;
    bench.start_append(failing, file, "abc");
    bench.start_append(behind, file, "def");
    bench.wait(failing);
    bench.wait(behind);
    bench.disk.faults.write_io_error = 0;
    EXPECT_EQ(failing.error.code, io::Errc::io);
    EXPECT_EQ(behind.error.code, io::Errc::io) << "nothing is written behind a torn append";
    EXPECT_EQ(bench.barrier(file), io::Errc::io);
    EXPECT_EQ(bench.append(file, "x"), io::Errc::io);
    EXPECT_EQ(bench.truncate(file, 0), io::Errc::ok);
    EXPECT_EQ(bench.append(file, "x"), io::Errc::ok);
    EXPECT_EQ(bench.barrier(file), io::Errc::ok);
    EXPECT_EQ(bench.disk.content("f"), "x");
    sizes.insert(failing.value);
  }
  EXPECT_EQ(sizes, (std::set<std::size_t>{0, 1, 2, 3}));
}

TEST(SimDisk, AFullDiskRefusesAppendsAndTakesThemAgainWhenTheReserveIsGivenBack) {
  SimBench bench;
  bench.disk.capacity = 100;
  const io::FileId lock = bench.open("lock", io::OpenMode::append);
  TestOp reserve;
  bench.port().reserve(reserve, lock, 60);
  bench.wait(reserve);
  ASSERT_EQ(reserve.error.code, io::Errc::ok);
  const io::FileId file = bench.open("f", io::OpenMode::append);
  EXPECT_EQ(bench.append(file, std::string(50, 'x')), io::Errc::no_space);
  EXPECT_EQ(bench.disk.content("f").size(), 40u);
  io::DiskUsage usage;
  TestOp ask;
  bench.port().usage(ask, ".", usage);
  bench.wait(ask);
  EXPECT_EQ(usage.available, 0u);
  TestOp give_back;
  bench.port().reserve(give_back, lock, 0);
  bench.wait(give_back);
  EXPECT_EQ(bench.truncate(file, 0), io::Errc::ok);
  EXPECT_EQ(bench.append(file, std::string(90, 'x')), io::Errc::ok);
}

TEST(SimDisk, ALockIsReleasedByTheDeathOfItsHolder) {
  SimBench bench;
  Process& other = idle_process(bench.world, "q", bench.disk);
  other.start();
  TestOp first, second, third;
  bench.port().lock(first, "lock", io::LockKind::exclusive);
  bench.wait(first);
  other.host()->disk.lock(second, "lock", io::LockKind::exclusive);
  bench.wait(second);
  EXPECT_EQ(second.error.code, io::Errc::locked);
  bench.process.kill();
  other.host()->disk.lock(third, "lock", io::LockKind::exclusive);
  bench.wait(third);
  EXPECT_EQ(third.error.code, io::Errc::ok);
}

TEST(SimDisk, ASpentHandleIsStaleAndCounted) {
  SimBench bench;
  const io::FileId file = bench.open("f", io::OpenMode::append);
  bench.close(file);
  EXPECT_EQ(bench.append(file, "x"), io::Errc::cancelled);
  EXPECT_EQ(bench.world.counts().stale_handles, 1u);
}

TEST(SimDisk, AnUnlinkedFileLivesUntilItsLastHandleIsClosed) {
  SimBench bench;
  const io::FileId file = bench.open("f", io::OpenMode::append);
  bench.append(file, "abc");
  bench.unlink("f");
  EXPECT_EQ(bench.append(file, "def"), io::Errc::ok);
  EXPECT_EQ(bench.disk.used(), 6u);
  EXPECT_TRUE(bench.disk.files().empty());
  bench.close(file);
  EXPECT_EQ(bench.disk.used(), 0u);
}

TEST(SimDisk, TooManyOpenFilesIsItsOwnError) {
  SimBench bench;
  bench.disk.handles_max = 1;
  bench.open("f", io::OpenMode::append);
  TestOp second;
  bench.port().open(second, "g", io::OpenMode::append);
  bench.wait(second);
  EXPECT_EQ(second.error.code, io::Errc::no_handles);
}

TEST(SimDisk, CallsOnNamesFailAsThoseOnBytesDo) {
  SimBench bench;
  bench.disk.put("d/f", "a");
  bench.disk.put("d/e/x", "");
  bench.disk.remove("d/e/x");
  bench.disk.faults.write_io_error = 1024;
  EXPECT_EQ(bench.unlink("d/f"), io::Errc::io);
  EXPECT_EQ(bench.make_dir("d/new"), io::Errc::io);
  EXPECT_EQ(bench.remove_dir("d/e"), io::Errc::io);
  bench.disk.faults.write_io_error = 0;
  bench.disk.faults.no_space = 1024;
  EXPECT_EQ(bench.make_dir("d/new"), io::Errc::no_space);
  EXPECT_EQ(bench.rename("d/f", "d/g"), io::Errc::no_space);
  EXPECT_EQ(bench.unlink("d/f"), io::Errc::ok);
  bench.disk.faults.no_handles = 1024;
  EXPECT_EQ(bench.sync_dir("d"), io::Errc::no_handles);
  EXPECT_TRUE(bench.disk.exists("d/e"));
  EXPECT_FALSE(bench.disk.exists("d/new"));
}

TEST(SimDisk, ABadSectorFailsEveryReadThatCoversItUntilItIsWritten) {
  SimBench bench;
  bench.disk.put("f", "abcdef");
  ASSERT_TRUE(bench.disk.spoil("f", 2));
  EXPECT_FALSE(bench.disk.spoil("f", 6));
  const io::FileId file = bench.open("f", io::OpenMode::rewrite);
  std::byte bytes[6];
  const auto read = [&](std::uint64_t at, std::size_t count) {
    TestOp op;
    bench.port().read(op, file, at, MutBuf(bytes).first(count));
    bench.wait(op);
    return op.error.code;
  };
  EXPECT_EQ(read(0, 6), io::Errc::io);
  EXPECT_EQ(read(2, 1), io::Errc::io);
  EXPECT_EQ(read(0, 2), io::Errc::ok);
  EXPECT_EQ(read(3, 3), io::Errc::ok);
  EXPECT_EQ(bench.rewrite(file, 2, "c"), io::Errc::ok);
  EXPECT_EQ(read(0, 6), io::Errc::ok);
}

TEST(SimDisk, AStalledCallTakesAsLongAsTheStall) {
  SimBench bench;
  const io::FileId file = bench.open("f", io::OpenMode::append);
  bench.disk.faults.stall = 1024;
  const Instant before = bench.world.now();
  bench.append(file, "x");
  EXPECT_GE(bench.world.now() - before, bench.disk.faults.stall_ns_max);
}

}  // namespace
}  // namespace rq::sim
