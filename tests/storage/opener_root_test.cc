// Opening: lock, FORMAT, COMPATIBILITY, broker.meta and what lies beside the Topics (page 20 section 2).
#include <gtest/gtest.h>

#include "core/storage/outbox.h"
#include "tests/storage/directory.h"

namespace rq::storage::testing {
namespace {

using namespace examples;

TEST(Opening, S_01_G1OpensAsDescribed) {
  Machine machine;
  put_g1(machine);
  const Opened opened = machine.open();
  ASSERT_TRUE(opened.ok()) << opened.faults[0].message();
  EXPECT_EQ(opened.image->registry_revision, 3u);
  EXPECT_EQ(opened.image->next_sequence, 1'048'577u);
  const TopicImage& topic = opened.topic("events");
  EXPECT_EQ(topic.next_position, 4u);
  EXPECT_EQ(topic.next_index, 3u);
  ASSERT_EQ(topic.sealed.size(), 1u);
  EXPECT_EQ(topic.sealed[0].record_count, 2u);
  EXPECT_EQ(topic.sealed[0].message_count, 3u);
  EXPECT_EQ(topic.sealed[0].last_timestamp_ns, kTime + 1'000);
  EXPECT_EQ(topic.active.info.base, 3u);
  ASSERT_EQ(topic.channels.size(), 1u);
  EXPECT_EQ(topic.channels[0].ack_floor, 1u);
  EXPECT_TRUE(topic.channels[0].acknowledged.empty());
  EXPECT_EQ(topic.channels[0].wal_commands, 1u);
  EXPECT_EQ(machine.content(kPaths.broker_meta()), R"({"format":7,"node_id":1,"next_sequence":1048577,"registry_revision":3})");
  EXPECT_EQ(machine.content(kSegment1), kEx1 + kEx2);
  EXPECT_EQ(machine.content(kSidecar1), kEx4);
}

TEST(Opening, S_03_AnEmptyDirectoryBecomesADataDirectory) {
  Machine machine;
  const Opened opened = machine.open();
  ASSERT_TRUE(opened.ok()) << opened.faults[0].message();
  EXPECT_EQ(machine.content(kPaths.format()), encode_format());
  EXPECT_EQ(machine.content(kPaths.compatibility()), encode_compatibility({1, 1, 1}));
  EXPECT_EQ(machine.content(kPaths.broker_meta()), encode_broker_meta({1, 1, 2}));
  EXPECT_EQ(machine.content(kPaths.lock()), "4711\n");
  for (const std::string& dir : {kPaths.topics(), kPaths.outbox(), kPaths.audit()}) EXPECT_TRUE(machine.disk.exists(dir)) << dir;
  EXPECT_TRUE(opened.image->topics.empty());
  machine.disk.power_loss();
  EXPECT_TRUE(machine.disk.exists(kPaths.broker_meta()));
  EXPECT_TRUE(machine.disk.exists(kPaths.topics()));
}

TEST(Opening, AFreshDirectoryAtLevel2StartsAtGeneration2) {
  Machine machine;
  machine.options.feature_level = 2;
  ASSERT_TRUE(machine.open().ok());
  EXPECT_EQ(machine.content(kPaths.compatibility()), encode_compatibility({2, 2, 2}));
}

TEST(Opening, S_04_ASecondProcessIsRefusedAndChangesNothing) {
  Machine machine;
  put_g1(machine);
  machine.keep_running = true;
  ASSERT_TRUE(machine.open().ok());
  machine.options.pid = 4712;
  expect_refused(machine, ".rustqueue.lock");
  EXPECT_EQ(machine.content(kPaths.lock()), "4711\n");
}

TEST(Opening, S_05_WithoutFormatAnOlderDirectoryIsRefused) {
  for (const char* name : {"rustqueue-format.json", "broker.meta", "catalog.json", "topics/x", "consensus"}) {
    Machine machine;
    machine.put(kPaths.in_root(name), "{}");
    expect_refused(machine, std::string_view(name).substr(0, std::string_view(name).find('/')));
  }
}

TEST(Opening, S_06_WithoutFormatStrangersDoNotMatter) {
  Machine machine;
  machine.put(kPaths.in_root("lost+found/x"), "");
  machine.put(kPaths.in_root("audit/x.json"), "");
  machine.put(kPaths.format_temporary(), "{\"ver");
  machine.put(kPaths.compatibility(), encode_compatibility({1, 1, 9}));
  ASSERT_TRUE(machine.open().ok());
  EXPECT_EQ(machine.content(kPaths.compatibility()), encode_compatibility({1, 1, 9}));
  EXPECT_EQ(machine.content(kPaths.format()), encode_format());
  EXPECT_FALSE(machine.disk.exists(kPaths.format_temporary()));
}

TEST(Opening, S_07_AnotherFormatIsRefused) {
  for (const std::string& format : {std::string(R"({"version":6})"), std::string("seven"), std::string(65'537, ' ')}) {
    Machine machine;
    put_g1(machine);
    machine.put(kPaths.format(), format);
    expect_refused(machine, "FORMAT");
  }
}

TEST(Opening, FormatMayHaveMoreKeys) {
  Machine machine;
  put_g1(machine);
  machine.put(kPaths.format(), R"({"version":7,"by":"someone"})");
  EXPECT_TRUE(machine.open().ok());
}

TEST(Opening, S_08_TheRollbackFenceHolds) {
  Machine machine;
  put_g1(machine);
  machine.put(kPaths.compatibility(), encode_compatibility({1, 3, 2}));
  expect_refused(machine, "COMPATIBILITY");
}

TEST(Opening, S_09_TheLevelIsNotLowered) {
  Machine machine;
  put_g1(machine);
  machine.put(kPaths.compatibility(), encode_compatibility({2, 2, 2}));
  expect_refused(machine, "COMPATIBILITY", std::nullopt, false);
}

TEST(Opening, S_10_TheLevelIsRaisedForGood) {
  Machine machine;
  put_g1(machine);
  machine.options.feature_level = 2;
  const Opened opened = machine.open();
  ASSERT_TRUE(opened.ok());
  EXPECT_EQ(opened.image->active_writer_level, 2u);
  EXPECT_EQ(machine.content(kPaths.compatibility()), encode_compatibility({2, 2, 2}));
  machine.options.feature_level = 1;
  EXPECT_FALSE(machine.open().ok());
}

TEST(Opening, S_11_UnknownLevelsAreRefused) {
  for (const std::uint32_t level : {0u, 3u}) {
    Machine machine;
    machine.options.feature_level = level;
    EXPECT_FALSE(machine.open().ok());
  }
}

TEST(Opening, S_12_AnotherNodeOrFormatIsRefused) {
  for (const char* meta : {R"({"format":7,"node_id":2,"next_sequence":1})", R"({"format":6,"node_id":1,"next_sequence":1})",
                           R"({"format":7,"node_id":1,"next_sequence":1048577.0})"}) {
    Machine machine;
    put_g1(machine);
    machine.put(kPaths.broker_meta(), meta);
    expect_refused(machine, "broker.meta", std::nullopt, std::string_view(meta).find("\"node_id\":2") == std::string_view::npos);
  }
}

TEST(Opening, S_13_WithoutARevisionItBecomes1) {
  Machine machine;
  put_g1(machine);
  machine.put(kPaths.broker_meta(), R"({"format":7,"node_id":1,"next_sequence":1048577})");
  const Opened opened = machine.open();
  ASSERT_TRUE(opened.ok());
  EXPECT_EQ(opened.image->registry_revision, 1u);
  EXPECT_EQ(machine.content(kPaths.broker_meta()), encode_broker_meta({1, 1'048'577, 1}));
}

TEST(Opening, S_14_WithoutBrokerMetaNoStoredIdIsIssuedAgain) {
  Machine machine;
  put_g1(machine);
  machine.disk.remove(kPaths.broker_meta());
  const Opened opened = machine.open();
  ASSERT_TRUE(opened.ok());
  EXPECT_EQ(opened.image->next_sequence, 4u);
  EXPECT_EQ(machine.content(kPaths.broker_meta()), encode_broker_meta({1, 4, 2}));
}

TEST(Opening, TheCleanMarkerIsReadAndTakenAway) {
  Machine machine;
  put_g1(machine);
  machine.put(kPaths.lock(), lock_content(99, true));
  EXPECT_TRUE(machine.open().clean);
  EXPECT_EQ(machine.content(kPaths.lock()), "4711\n");
  EXPECT_FALSE(machine.open().clean);
}

TEST(Opening, S_71_DefectiveManagementFilesAreRefused) {
  Machine machine;
  put_g1(machine);
  machine.put(kPaths.fences(), R"({"format":2})");
  expect_refused(machine, "management-fences.json");
  machine.put(
      kPaths.fences(),
      R"({"format":1,"revision":"","topics":{"other":4102444800000},"channels":{"6:events:workers":-1},"local_channels":{}})");
  machine.put(kPaths.operations(), R"({"format":1,"records":{"12345":{"fingerprint":"","topic":"events","state":"pending"}}})");
  expect_refused(machine, "management-operations.json");
  machine.put(
      kPaths.operations(),
      R"({"format":1,"records":{"operation-00000001":{"fingerprint":"[\"topic\",\"events\",\"create\"]","topic":"events",)"
      R"("state":"completed","result":{"revision":4,"changed":true}}},"completed_order":["operation-00000001"]})");
  EXPECT_TRUE(machine.open().ok());
}

TEST(Outbox, S_02_IntentOfExample8) {
  const OutboxEntry entry{"events", "workers", "events.workers.DLQ", kFirstId, "poison"};
  EXPECT_EQ(encode_outbox(entry),
            unhex("52514f37 0006 0007 0012 0000 0001000000000001 00000006 71763b8b") + "eventsworkersevents.workers.DLQpoison");
  EXPECT_EQ(outbox_file_name(entry), "0001000000000001-8c1d0c694430c5746ad8a8907152957a.outbox");
  EXPECT_TRUE(outbox_name_fits("0001000000000001-23536443.outbox", entry));
  EXPECT_EQ(*decode_outbox(bytes_of(encode_outbox(entry))), entry);
}

TEST(Outbox, S_65_DefectiveIntentsAreRefused) {
  const std::string good = encode_outbox({"events", "workers", "events.workers.DLQ", kFirstId, "poison"});
  const std::string name = "dlq-outbox/0001000000000001-8c1d0c694430c5746ad8a8907152957a.outbox";
  std::string crc = good, reserved = good;
  crc.back() ^= 1;
  reserved[11] = 1;
  for (const std::string& bad : {crc, reserved, good + "x", good.substr(0, 20)}) {
    Machine machine;
    put_g1(machine);
    machine.put(kPaths.in_root(name), bad);
    expect_refused(machine, name);
  }
  Machine machine;
  put_g1(machine);
  machine.put(kPaths.in_root("dlq-outbox/0001000000000001.outbox"), good);
  expect_refused(machine, "dlq-outbox/0001000000000001.outbox");
}

TEST(Opening, TemporariesOfACrashAreRemoved) {
  Machine machine;
  put_g1(machine);
  const std::vector<std::string> temporaries{
      temporary_of(kPaths.broker_meta()), kPaths.format_temporary(),      temporary_of(kManifest),       temporary_of(kSidecar1),
      temporary_of(kCheckpoint),          kPaths.outbox() + "/a.1-1.tmp", kPaths.audit() + "/b.json.tmp"};
  for (const std::string& path : temporaries) machine.put(path, "half");
  ASSERT_TRUE(machine.open().ok());
  for (const std::string& path : temporaries) EXPECT_FALSE(machine.disk.exists(path)) << path;
}

TEST(Opening, S_72_MoreTopicsThanConfiguredAreRefused) {
  Machine machine;
  put_g1(machine);
  Manifest manifest;
  manifest.name = "other";
  put_manifest(machine, manifest);
  machine.options.max_topics = 1;
  expect_refused(machine, "topics", std::nullopt, false);
  machine.options.max_topics = 2;
  EXPECT_TRUE(machine.open().ok());
}

TEST(Opening, OpeningAgainChangesOnlyTheRevision) {
  Machine machine;
  put_g1(machine);
  ASSERT_TRUE(machine.open().ok());
  const std::string first = machine.snapshot();
  const Opened again = machine.open();
  ASSERT_TRUE(again.ok());
  EXPECT_TRUE(again.repairs.empty()) << again.repairs[0];
  std::string expected = first;
  const std::string from = encode_broker_meta({1, 1'048'577, 3});
  expected.replace(expected.find(from), from.size(), encode_broker_meta({1, 1'048'577, 4}));
  EXPECT_EQ(machine.snapshot(), expected);
}

// What a Broker writes meanwhile would look like damage.
TEST(Verify, AVerifyAndAStartExcludeEachOther) {
  constexpr int kSeeds = 64;
  int verified = 0, opened = 0;
  for (int seed = 1; seed <= kSeeds; ++seed) {
    Machine machine(static_cast<std::uint64_t>(seed));
    put_g1(machine);
    machine.put(kPaths.lock(), "99\n");
    const auto begin = [&](const char* name, bool read_only) -> sim::Process& {
      sim::Process& process = machine.world.make_process(name, machine.disk, [&machine, read_only](io::Host& host, io::Turn&) {
        OpenOptions options = machine.options;
        options.read_only = read_only;
        auto* shard = new OpenerShard(host, options);
        shard->opener.start();
        return std::unique_ptr<io::Shard, void (*)(io::Shard*)>(shard, [](io::Shard* s) { delete static_cast<OpenerShard*>(s); });
      });
      process.start();
      return process;
    };
    Opener& verify = static_cast<OpenerShard*>(begin("verify", true).shard())->opener;
    Opener& start = static_cast<OpenerShard*>(begin("start", false).shard())->opener;
    ASSERT_TRUE(machine.world.run_until([&] { return verify.done() && start.done(); }, 1'000 * kSecond));
    for (Opener* opener : {&verify, &start}) {
      ASSERT_EQ(opener->faults().size(), opener->in_use() ? 1u : 0u) << seed;
      for (const Fault& fault : opener->faults()) EXPECT_EQ(fault.file, ".rustqueue.lock");
    }
    EXPECT_FALSE(verify.in_use() && start.in_use()) << seed;
    verified += !verify.in_use() ? 1 : 0;
    opened += !start.in_use() ? 1 : 0;
    EXPECT_EQ(machine.content(kPaths.lock()), start.in_use() ? "99\n" : "4711\n") << seed;
  }
  EXPECT_TRUE(verified > 0 && verified < kSeeds) << verified << " verified";
  EXPECT_TRUE(opened > 0 && opened < kSeeds) << opened << " opened";
}

TEST(Verify, ReportsEveryFaultAndChangesNothing) {
  Machine machine;
  put_g1(machine);
  machine.put(kManifest, R"({"format":7,"name":"events","paused":false,"next_position":1})");
  machine.put(kPaths.in_root("topics/6161/manifest"), "no");
  machine.put(kPaths.in_root("topics/6262/manifest"), "no");
  const std::string before = machine.snapshot();
  const Opened report = machine.verify();
  EXPECT_EQ(machine.snapshot(), before);
  EXPECT_FALSE(machine.disk.exists(kPaths.lock()));
  EXPECT_EQ(report.faults.size(), 2u);
  EXPECT_NE(report.report.find("topic events: 3 messages in 2 records"), std::string::npos) << report.report;
  EXPECT_NE(report.report.find("channel events/workers: floor 1"), std::string::npos) << report.report;
  EXPECT_NE(report.report.find("repair topics/6576656e7473/manifest: next_position 1 -> 4"), std::string::npos) << report.report;
  EXPECT_NE(report.report.find("fault topics/6161/manifest: "), std::string::npos) << report.report;
  EXPECT_NE(report.report.find("\nFAILED: 1 topics"), std::string::npos) << report.report;
}

}  // namespace
}  // namespace rq::storage::testing
