// Opening: manifests, next position, deleted Topics, the unrouted boundary (page 20 sections 5 and 8.4).
#include <gtest/gtest.h>

#include "tests/storage/directory.h"

namespace rq::storage::testing {
namespace {

using namespace examples;

TEST(Recovery, S_36_AManifestBehindTheLogIsRaised) {
  Machine machine;
  put_g1(machine);
  put_manifest(machine, events_manifest(1));
  const Opened opened = machine.open();
  ASSERT_TRUE(opened.ok());
  EXPECT_EQ(opened.topic("events").next_position, 4u);
  EXPECT_EQ(machine.disk.durable_content(kManifest), encode_manifest(events_manifest(4)));
}

TEST(Recovery, S_37_AManifestAheadOfTheLogSealsItsTail) {
  Machine machine;
  put_active(machine);
  put_manifest(machine, events_manifest(9));
  const Opened opened = machine.open();
  ASSERT_TRUE(opened.ok()) << opened.faults[0].message();
  const TopicImage& topic = opened.topic("events");
  EXPECT_EQ(topic.next_position, 9u);
  EXPECT_EQ(topic.next_index, 3u);
  EXPECT_EQ(topic.absent, (std::vector<Range>{{4, 8}}));
  EXPECT_EQ(topic.active.info.base, 3u);
  EXPECT_TRUE(topic.active.messages.empty());
  EXPECT_EQ(machine.disk.durable_content(kSidecar1), kEx4);
  EXPECT_TRUE(machine.disk.exists(kSegment3));
  EXPECT_EQ(machine.content(kSegment3), "");
  const Opened again = machine.open();
  ASSERT_TRUE(again.ok());
  EXPECT_TRUE(again.repairs.empty());
  EXPECT_EQ(again.topic("events").next_position, 9u);
}

TEST(Recovery, ASegmentBehindAGapSortsBehindOneWithAHighName) {
  Machine machine;
  put_active(machine);
  machine.disk.remove(kSegment1);
  machine.put(kPaths.segment("events", 7), kEx1 + kEx2);  // names of files with records are not compared
  put_manifest(machine, events_manifest(9));
  const Opened opened = machine.open();
  ASSERT_TRUE(opened.ok()) << opened.faults[0].message();
  EXPECT_EQ(opened.topic("events").active.info.base, 8u);
  EXPECT_EQ(opened.topic("events").next_index, 3u);
  EXPECT_TRUE(machine.open().ok());
}

TEST(Recovery, S_69_AnEmptiedLogKeepsItsRecordIndex) {
  Machine machine;
  put_root(machine);
  put_manifest(machine, events_manifest(21));
  put_channel(machine, workers(20));
  machine.put(kPaths.segment("events", 9), "");
  const Opened opened = machine.open();
  ASSERT_TRUE(opened.ok());
  EXPECT_EQ(opened.topic("events").next_index, 9u);
  EXPECT_EQ(opened.topic("events").next_position, 21u);
  EXPECT_EQ(opened.topic("events").absent, (std::vector<Range>{{1, 20}}));
  EXPECT_TRUE(opened.repairs.empty());
}

TEST(Recovery, ATopicWithoutSegmentsGetsItsFirst) {
  Machine machine;
  put_root(machine);
  put_manifest(machine, events_manifest(1));
  const Opened opened = machine.open();
  ASSERT_TRUE(opened.ok()) << opened.faults[0].message();
  EXPECT_TRUE(machine.disk.exists(kSegment1));
  EXPECT_TRUE(machine.disk.exists(kPaths.channels("events")));
  EXPECT_EQ(opened.topic("events").next_index, 1u);
  EXPECT_EQ(opened.topic("events").unrouted_from, 1u);
}

TEST(Recovery, S_41_ADirectoryMustHaveTheNameOfItsTopic) {
  for (const char* dir : {"6f74686572", "6576656E7473", "events"}) {
    Machine machine;
    put_root(machine);
    const std::string relative = std::string("topics/") + dir + "/manifest";
    machine.put(kPaths.in_root(relative), encode_manifest(events_manifest()));
    expect_refused(machine, relative, std::nullopt);
  }
}

TEST(Recovery, S_42_ADeletedTopicGoesAway) {
  Machine machine;
  put_g1(machine);
  Manifest manifest = events_manifest();
  manifest.deleted = true;
  put_manifest(machine, manifest);
  machine.put(kPaths.topic("events") + "/more/deep/file", "x");
  const Opened opened = machine.open();
  ASSERT_TRUE(opened.ok()) << opened.faults[0].message();
  EXPECT_TRUE(opened.image->topics.empty());
  EXPECT_FALSE(machine.disk.exists(kPaths.topic("events")));
  machine.disk.power_loss();
  EXPECT_FALSE(machine.disk.exists(kManifest));
}

TEST(Recovery, DirectoriesWithoutManifestAreLeftAlone) {
  Machine machine;
  put_g1(machine);
  machine.disk.remove(kManifest);
  machine.put(kPaths.in_root("topics/not a name/file"), "x");
  const Opened opened = machine.open();
  ASSERT_TRUE(opened.ok());
  EXPECT_TRUE(opened.image->topics.empty());
  EXPECT_TRUE(opened.repairs.empty());
  EXPECT_EQ(machine.content(kSegment1), kEx1 + kEx2);
}

TEST(Recovery, S_44_AnInterruptedDeletionIsFinishedOrIgnoredFromAnyPoint) {
  const std::vector<std::string> order{kSegment1, kSidecar1, kSegment3, kCheckpoint, kWal, kManifest};
  for (std::size_t removed = 0; removed <= order.size(); ++removed) {
    Machine machine;
    put_g1(machine);
    Manifest manifest = events_manifest();
    manifest.deleted = true;
    put_manifest(machine, manifest);
    for (std::size_t i = 0; i < removed; ++i) machine.disk.remove(order[i]);
    const Opened opened = machine.open();
    ASSERT_TRUE(opened.ok());
    EXPECT_TRUE(opened.image->topics.empty());
    if (removed < order.size()) {
      EXPECT_FALSE(machine.disk.exists(kPaths.topic("events")));
    }
    put_manifest(machine, events_manifest(1));  // the name is used again
    const Opened again = machine.open();
    ASSERT_TRUE(again.ok()) << again.faults[0].message();
    EXPECT_EQ(again.topic("events").next_position, 1u);
    EXPECT_TRUE(again.topic("events").channels.empty());
  }
}

TEST(Recovery, S_45_AnImpossibleBoundaryIsRefused) {
  for (const Position boundary : {Position{0}, Position{5}}) {
    Machine machine;
    put_g1(machine);
    Manifest manifest = events_manifest();
    manifest.unrouted_from = boundary;
    put_manifest(machine, manifest);
    expect_refused(machine, "topics/6576656e7473/manifest", std::nullopt);
  }
}

TEST(Recovery, S_46_TheBoundaryFollowsTheChannels) {
  Machine machine;
  put_g1(machine);
  machine.disk.remove(kCheckpoint);
  machine.disk.remove(kWal);
  EXPECT_EQ(machine.open().topic("events").unrouted_from, 1u);
  Manifest manifest = events_manifest();
  manifest.unrouted_from = 1;
  EXPECT_EQ(machine.content(kManifest), encode_manifest(manifest));
  put_channel(machine, workers());
  EXPECT_EQ(machine.open().topic("events").unrouted_from, std::nullopt);
  EXPECT_EQ(machine.content(kManifest), encode_manifest(events_manifest()));
}

TEST(Recovery, ABoundaryBelowTheFirstStoredPositionIsRaised) {
  Machine machine;
  put_three_segments(machine);
  for (const std::string& path : {kSegment1, kSidecar1, kCheckpoint, kWal}) machine.disk.remove(path);
  Manifest manifest = events_manifest(7);
  manifest.unrouted_from = 1;
  put_manifest(machine, manifest);
  EXPECT_EQ(machine.open().topic("events").unrouted_from, 3u);
}

TEST(Recovery, S_48_ContradictoryTtlKeysAreRefused) {
  for (const char* keys : {R"("delivery_mode":"TTL_DISCARD")", R"("delivery_mode":"TTL_DISCARD","message_ttl_seconds":0)",
                           R"("delivery_mode":"RELIABLE","message_ttl_seconds":5)", R"("delivery_mode":"OTHER")",
                           R"("expired_through_position":4)"}) {
    Machine machine;
    put_g1(machine);
    machine.put(kManifest, std::string(R"({"format":7,"name":"events","paused":false,"next_position":4,)") + keys + "}");
    expect_refused(machine, "topics/6576656e7473/manifest", std::nullopt);
  }
}

TEST(Recovery, S_49_AManifestWithoutTtlKeysIsReliable) {
  Machine machine;
  put_g1(machine);
  const Opened opened = machine.open();
  EXPECT_FALSE(opened.topic("events").ttl_discard);
  EXPECT_EQ(opened.topic("events").message_ttl_seconds, std::nullopt);
  EXPECT_EQ(opened.topic("events").expired_through, 0u);
  EXPECT_EQ(opened.topic("events").ttl_discarded_messages, 0u);
}

}  // namespace
}  // namespace rq::storage::testing
