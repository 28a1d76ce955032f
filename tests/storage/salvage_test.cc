// `rustqueued --salvage` (D-42): a damaged directory opens again, and what was not behind the damage is there.
#include "core/storage/salvage.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <set>

#include "tests/storage/directory.h"

namespace rq::storage::testing {
namespace {

struct SalvageShard final : io::Shard {
  explicit SalvageShard(io::Host& host) : salvage(host, kPaths.root()) {}
  void expire(Now) override {}
  void settle(Now) override { salvage.settle(); }
  Instant next_deadline() const override { return Instant::never(); }
  Salvage salvage;
};

struct Salvaged {
  std::string report;
  bool ok = false;
};

// In a process of its own; with `kill_after_ns` it is killed then, and the report is empty.
Salvaged salvage(Machine& machine, std::optional<std::int64_t> kill_after_ns = std::nullopt) {
  static int number = 0;
  sim::Process& process =
      machine.world.make_process("salvage" + std::to_string(++number), machine.disk, [](io::Host& host, io::Turn&) {
        auto* shard = new SalvageShard(host);
        shard->salvage.start();
        return std::unique_ptr<io::Shard, void (*)(io::Shard*)>(shard,
                                                                [](io::Shard* s) { delete static_cast<SalvageShard*>(s); });
      });
  process.start();
  Salvaged out;
  if (kill_after_ns) {
    machine.world.run_for(*kill_after_ns);
  } else {
    Salvage& run = static_cast<SalvageShard*>(process.shard())->salvage;
    RQ_CHECK(machine.world.run_until([&] { return run.done(); }, 1'000 * kSecond));
    out = {run.report(), run.ok()};
  }
  process.kill();
  return out;
}

// Three sealed segments with three messages each, and an active one with two.
void put_log(Machine& machine) {
  put_root(machine);
  Manifest manifest = events_manifest(12);
  put_manifest(machine, manifest);
  put_channel(machine, workers(), frame(finish(1)) + frame(finish(2)));
  for (LogIndex first = 1; first < 12; first += 3) {
    Log log;
    log.base = first;
    for (LogIndex i = first; i < std::min<LogIndex>(first + 3, 12); ++i) log.add(i, i, "body-" + std::to_string(i));
    machine.put(kPaths.segment("events", first), log.bytes);
    if (first < 10) machine.put(kPaths.sidecar("events", first), log.sidecar());
  }
}

std::set<Position> stored(const TopicImage& topic) {
  std::set<Position> out;
  const auto add = [&](const SegmentInfo& segment) {
    for (Position p = segment.first_position; p != 0 && p <= segment.last_position; ++p) out.insert(p);
  };
  for (const SegmentInfo& segment : topic.sealed) add(segment);
  add(topic.active.info);
  return out;
}

std::set<Position> all_but(std::initializer_list<Position> lost) {
  std::set<Position> out;
  for (Position p = 1; p <= 11; ++p) out.insert(p);
  for (const Position p : lost) out.erase(p);
  return out;
}

std::string flipped(std::string content, std::size_t at, int bit) {
  content[at] = static_cast<char>(content[at] ^ (1 << bit));
  return content;
}

TEST(Salvage, ASoundDirectoryIsLeftAsItIs) {
  Machine machine;
  put_log(machine);
  const std::string before = machine.snapshot();
  const Salvaged done = salvage(machine);
  EXPECT_TRUE(done.ok) << done.report;
  EXPECT_EQ(done.report, "ok: 0 repairs, 1 Topics\n");
  EXPECT_EQ(machine.snapshot(), before);
}

TEST(Salvage, ABadRecordInTheMiddleCostsTheRestOfItsSegmentAndNothingElse) {
  Machine machine;
  put_log(machine);
  const std::string path = kPaths.segment("events", 4);
  const std::string before = machine.content(path);
  const std::size_t fifth = before.find("body-5");
  machine.put(path, flipped(before, fifth, 0));
  const std::uint64_t record = fifth - 72;
  const Salvaged done = salvage(machine);
  EXPECT_TRUE(done.ok) << done.report;
  EXPECT_NE(done.report.find("cut at offset " + std::to_string(record) + " of " + std::to_string(before.size())),
            std::string::npos)
      << done.report;
  EXPECT_NE(done.report.find("positions from 5 on are lost up to the next file"), std::string::npos) << done.report;
  EXPECT_EQ(machine.content(path + ".salvage-" + std::to_string(record)), flipped(before, fifth, 0).substr(record));
  const Opened opened = machine.open();
  ASSERT_TRUE(opened.ok()) << opened.faults[0].message();
  EXPECT_EQ(stored(opened.topic("events")), all_but({5, 6}));
  EXPECT_EQ(opened.topic("events").next_index, 12u);
  EXPECT_EQ(opened.topic("events").channels[0].ack_floor, 2u);
  EXPECT_TRUE(machine.verify().faults.empty());
}

TEST(Salvage, ABadFirstRecordSetsItsSegmentAside) {
  Machine machine;
  put_log(machine);
  const std::string path = kPaths.segment("events", 7);
  machine.put(path, flipped(machine.content(path), 60, 3));
  EXPECT_TRUE(salvage(machine).ok);
  EXPECT_TRUE(machine.disk.exists(path + ".salvage"));
  EXPECT_FALSE(machine.disk.exists(path));
  EXPECT_EQ(stored(machine.open().topic("events")), all_but({7, 8, 9}));
}

TEST(Salvage, AMissingSegmentInTheMiddleIsBridged) {
  Machine machine;
  put_log(machine);
  machine.disk.remove(kPaths.segment("events", 4));
  EXPECT_FALSE(machine.verify().ok());
  EXPECT_TRUE(salvage(machine).ok);
  EXPECT_EQ(stored(machine.open().topic("events")), all_but({4, 5, 6}));
}

TEST(Salvage, APositionBehindACutTailIsNotUsedAgain) {
  Machine machine;
  put_log(machine);
  const std::string path = kPaths.segment("events", 10);
  machine.put(path, flipped(machine.content(path), machine.content(path).size() - 1, 0));
  put_manifest(machine, events_manifest(1));  // it knows nothing of what was published
  EXPECT_TRUE(salvage(machine).ok);
  const Opened opened = machine.open();
  ASSERT_TRUE(opened.ok());
  EXPECT_EQ(stored(opened.topic("events")), all_but({11}));
  EXPECT_GT(opened.topic("events").next_position, 11u);
}

TEST(Salvage, ADamagedWalIsCutAndADamagedCheckpointStartsAgainUnderItsWal) {
  Machine machine;
  put_log(machine);
  const std::string wal = machine.content(kWal);
  machine.put(kWal, flipped(wal, wal.size() - 1, 0));
  machine.put(kCheckpoint, flipped(machine.content(kCheckpoint), 40, 1));
  const Salvaged done = salvage(machine);
  EXPECT_TRUE(done.ok) << done.report;
  EXPECT_TRUE(machine.disk.exists(kCheckpoint + ".salvage"));
  EXPECT_TRUE(machine.disk.exists(kWal + ".salvage-29"));
  const Opened opened = machine.open();
  ASSERT_EQ(opened.topic("events").channels.size(), 1u);
  EXPECT_EQ(opened.topic("events").channels[0].ack_floor, 1u);
  EXPECT_EQ(stored(opened.topic("events")), all_but({}));
}

TEST(Salvage, ARunningBrokersDirectoryIsRefused) {
  Machine machine;
  put_log(machine);
  machine.keep_running = true;
  ASSERT_TRUE(machine.open().ok());
  const Salvaged done = salvage(machine);
  EXPECT_FALSE(done.ok);
  EXPECT_EQ(done.report, "FAILED: another process holds the lock of this data directory\n");
}

TEST(Salvage, ADirectoryOfAnotherFormatIsLeftAlone) {
  Machine machine;
  put_log(machine);
  machine.put(kPaths.format(), "{\"version\":6}");
  machine.put(kPaths.broker_meta(), R"({"format":6,"node_id":1})");
  EXPECT_FALSE(salvage(machine).ok);
  EXPECT_EQ(machine.content(kPaths.format()), "{\"version\":6}");
}

TEST(Salvage, WhatCannotBeRepairedIsSaidOnce) {
  Machine machine;
  put_log(machine);
  machine.put(kPaths.in_root("topics/no-hex/manifest"), "no");
  const Salvaged done = salvage(machine);
  EXPECT_FALSE(done.ok);
  const std::string line = "the directory's name is no Topic's: cannot be repaired";
  const std::size_t first = done.report.find(line);
  ASSERT_NE(first, std::string::npos) << done.report;
  EXPECT_EQ(done.report.find(line, first + 1), std::string::npos) << done.report;
  EXPECT_NE(done.report.find("FAILED: 0 repairs, 2 Topics"), std::string::npos) << done.report;
}

// A directory in its place stands for whatever cannot be read.
TEST(Salvage, AWalThatCannotBeReadIsLeftAlone) {
  Machine machine;
  put_log(machine);
  machine.disk.remove(kWal);
  machine.put(kWal + "/x", "");
  const std::string before = machine.content(kCheckpoint);
  const Salvaged done = salvage(machine);
  EXPECT_FALSE(done.ok);
  EXPECT_NE(done.report.find("776f726b657273.wal: "), std::string::npos) << done.report;
  EXPECT_NE(done.report.find("cannot be read"), std::string::npos) << done.report;
  EXPECT_EQ(machine.content(kCheckpoint), before);
}

// The records before it count, though they are read together with it; what can be read behind it is kept beside.
TEST(Salvage, ABadSectorCostsWhatStandsBehindItInItsFile) {
  Machine machine;
  put_log(machine);
  Log log;
  log.base = 10;
  for (LogIndex i = 10; i < 20; ++i) log.add(i, i, std::string(3'000, 'a'));
  const std::string path = kPaths.segment("events", 10);
  const std::uint64_t record = log.bytes.size() / 10;
  machine.put(path, log.bytes);
  ASSERT_TRUE(machine.disk.spoil(path, 4 * record + 100));  // in the fifth record, 14
  const std::uint64_t block = (4 * record + 100) / 4'096 * 4'096;
  const Opened refused = machine.verify();
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.faults[0].offset, block) << refused.faults[0].message();
  const Salvaged done = salvage(machine);
  ASSERT_TRUE(done.ok) << done.report;
  // The block starts in the record before, which is lost with it.
  const std::uint64_t cut = block / record * record;
  EXPECT_NE(done.report.find(".salvage-" + std::to_string(cut) + ": 4096 bytes cannot be read"), std::string::npos)
      << done.report;
  std::string saved = log.bytes.substr(cut);
  saved.replace(block - cut, 4'096, std::string(4'096, '\0'));
  EXPECT_EQ(machine.content(path + ".salvage-" + std::to_string(cut)), saved);
  const Opened opened = machine.open();
  ASSERT_TRUE(opened.ok()) << opened.faults[0].message();
  EXPECT_EQ(opened.topic("events").sealed.back().last_position, 9 + cut / record);
}

// I1: what an earlier run has saved is never overwritten.
TEST(Salvage, ASecondDamageKeepsWhatTheFirstRunSaved) {
  Machine machine;
  put_log(machine);
  const std::string path = kPaths.segment("events", 10);
  const std::string sound = machine.content(path);
  const std::uint64_t record = sound.size() / 2;
  for (const char last : {'x', 'y', 'z'}) {
    std::string damaged = sound;
    damaged.back() = last;
    machine.put(path, damaged);
    machine.put(kManifest, std::string("no manifest ") + last);
    ASSERT_TRUE(salvage(machine).ok);
    ASSERT_TRUE(salvage(machine).ok);
  }
  std::set<std::string> cut, manifests;
  for (const std::string& file : machine.disk.files()) {
    if (file.find(".salvage-" + std::to_string(record)) != std::string::npos) cut.insert(machine.content(file));
    if (file.find("manifest.salvage") != std::string::npos) manifests.insert(machine.content(file));
  }
  EXPECT_EQ(cut.size(), 3u);
  EXPECT_EQ(manifests.size(), 3u);
}

TEST(Salvage, TheMarkOfACleanStopIsGoneForGood) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Machine machine(seed);
    put_log(machine);
    machine.put(kPaths.lock(), lock_content(99, true));
    ASSERT_TRUE(salvage(machine).ok);
    machine.disk.power_loss();
    EXPECT_FALSE(machine.open().clean) << seed;
  }
}

TEST(Salvage, ADirectoryOfSomethingElseIsNotTouched) {
  Machine machine;
  machine.put(kPaths.in_root("notes.txt"), "mine");
  EXPECT_FALSE(salvage(machine).ok);
  EXPECT_EQ(machine.disk.files(), std::vector<std::string>{kPaths.in_root("notes.txt")});
}

// The damage of one byte anywhere: afterwards the directory opens, --verify is clean, a second run finds nothing, and every
// message is there that did not stand behind the damage in its own file.
TEST(Salvage, AfterAnySingleFlippedBitTheBrokerOpensWithEverythingBeforeTheCut) {
  Machine pattern;
  put_log(pattern);
  for (const std::string& path : pattern.disk.files()) {
    const std::string content = pattern.content(path);
    for (std::size_t at = 0; at < content.size(); ++at) {
      Machine machine(at + 1);
      put_log(machine);
      machine.put(path, flipped(content, at, static_cast<int>(at * 5 % 8)));
      const Salvaged done = salvage(machine);
      const std::string where = path + " at " + std::to_string(at) + ": " + done.report;
      const bool marker = path == kPaths.broker_meta() || path == kPaths.compatibility();  // numbers that stay plausible
      if (!done.ok && marker) continue;
      ASSERT_TRUE(done.ok) << where;
      EXPECT_EQ(salvage(machine).report, "ok: 0 repairs, 1 Topics\n") << where;
      EXPECT_TRUE(machine.verify().faults.empty()) << where;
      const Opened opened = machine.open();
      if (!opened.ok() && marker) continue;
      ASSERT_TRUE(opened.ok()) << where << opened.faults[0].message();
      std::set<Position> expected = all_but({});
      if (path.ends_with(".rqlog")) {
        LogIndex base = 0;
        parse_segment_name(path.substr(path.rfind('/') + 1), base);
        const std::uint64_t record_bytes = content.size() / (base == 10 ? 2 : 3);
        const bool ids_of_ten = base == 10;
        for (Position p = base + at / record_bytes; p < base + (ids_of_ten ? 2u : 3u); ++p) expected.erase(p);
      }
      const std::set<Position> found = stored(opened.topic("events"));
      EXPECT_TRUE(std::includes(found.begin(), found.end(), expected.begin(), expected.end())) << where;
      for (const Position p : found)  // only what the WAL says is finished
        EXPECT_TRUE(p <= 2 || p > opened.topic("events").channels.at(0).ack_floor) << where << p;
    }
  }
}

RC_GTEST_PROP(SalvageProperties, AnInterruptedRunIsFinishedByTheNext, ()) {
  Machine machine(*rc::gen::arbitrary<std::uint64_t>());
  put_log(machine);
  const auto damages = *rc::gen::inRange(1, 4);
  for (int i = 0; i < damages; ++i) {
    const std::vector<std::string> files = {kPaths.segment("events", 1),
                                            kPaths.segment("events", 4),
                                            kPaths.segment("events", 10),
                                            kPaths.sidecar("events", 4),
                                            kCheckpoint,
                                            kWal,
                                            kManifest};
    const std::string path = files[*rc::gen::inRange<std::size_t>(0, files.size())];
    const std::string content = machine.content(path);
    machine.put(path, flipped(content, *rc::gen::inRange<std::size_t>(0, content.size()), *rc::gen::inRange(0, 8)));
  }
  const auto interruptions = *rc::gen::inRange(1, 4);
  for (int i = 0; i < interruptions; ++i) {
    salvage(machine, *rc::gen::inRange<std::int64_t>(0, 30 * kMillisecond));
    if (*rc::gen::arbitrary<bool>()) machine.disk.power_loss();
  }
  const Salvaged done = salvage(machine);
  if (!done.ok) RC_FAIL(done.report);
  const Opened opened = machine.open();
  if (!opened.ok()) RC_FAIL(opened.faults[0].message());
  RC_ASSERT(opened.topic("events").channels.size() == 1u);
  const std::set<Position> found = stored(opened.topic("events"));
  for (const Position whole : {7u, 8u, 9u}) RC_ASSERT(found.contains(whole));  // their file was not touched
}

}  // namespace
}  // namespace rq::storage::testing
