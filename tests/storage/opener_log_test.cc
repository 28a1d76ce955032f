// Opening: segments, sidecars and positions (page 20 sections 3, 4, 8.2 and 8.3).
#include <gtest/gtest.h>

#include "tests/storage/directory.h"

namespace rq::storage::testing {
namespace {

using namespace examples;

const std::string kSegmentName = "topics/6576656e7473/segments/segment-00000000000000000001.rqlog";

void expect_refused(Machine& machine, std::string_view file, std::optional<std::uint64_t> offset) {
  const std::string before = machine.snapshot();
  const Opened report = machine.verify();
  ASSERT_FALSE(report.ok());
  const Opened opened = machine.open();
  ASSERT_FALSE(opened.ok());
  ASSERT_EQ(opened.faults.size(), 1u);
  EXPECT_EQ(opened.faults[0].file, file);
  EXPECT_EQ(opened.faults[0].offset, offset) << opened.faults[0].message();
  EXPECT_EQ(report.faults[0].message(), opened.faults[0].message());
  EXPECT_EQ(machine.snapshot(), before);
}

std::string record_of_kind(std::uint8_t kind, LogIndex index) {
  RecordHeader header;
  header.kind = static_cast<RecordKind>(kind);
  header.index = index;
  std::string out;
  put_record(out, header, bytes_of("payload"));
  return out;
}

void expect_tail_cut(std::string_view tail) {
  Machine machine;
  put_active(machine, tail);
  const Opened opened = machine.open();
  ASSERT_TRUE(opened.ok()) << opened.faults[0].message();
  EXPECT_EQ(machine.content(kSegment1), kEx1 + kEx2);
  EXPECT_EQ(machine.disk.durable_content(kSegment1), kEx1 + kEx2);
  EXPECT_EQ(opened.topic("events").active.info.bytes, kEx1.size() + kEx2.size());
  EXPECT_EQ(opened.topic("events").active.messages.size(), 3u);
  EXPECT_EQ(opened.topic("events").next_index, 3u);
}

TEST(Recovery, S_16_StrayBytesAfterTheLastRecordAreCutOff) {
  for (const std::size_t bytes : {1u, 20u, 47u}) {
    expect_tail_cut(std::string(bytes, '\0'));
    expect_tail_cut(std::string(bytes, 'x'));
    expect_tail_cut(kEx1.substr(0, bytes));
  }
}

TEST(Recovery, S_17_ARecordWithACutPayloadIsCutOff) {
  expect_tail_cut(kEx2.substr(0, 48));
  expect_tail_cut(kEx2.substr(0, 60));
  expect_tail_cut(kEx2.substr(0, kEx2.size() - 1));
  expect_tail_cut(record_of_kind(9, 3).substr(0, 50));
}

TEST(Recovery, S_18_ATailOfZerosIsRefused) {
  Machine machine;
  put_active(machine, std::string(4'096, '\0'));
  expect_refused(machine, kSegmentName, kEx1.size() + kEx2.size());
}

TEST(Recovery, S_19_AFlippedBitInTheLastRecordIsRefused) {
  Machine machine;
  put_active(machine);
  std::string segment = kEx1 + kEx2;
  segment.back() ^= 4;
  machine.put(kSegment1, segment);
  expect_refused(machine, kSegmentName, kEx1.size());
}

TEST(Recovery, S_20_ACompleteRecordOfAnUnknownKindIsRefused) {
  Machine machine;
  put_active(machine, record_of_kind(9, 3));
  expect_refused(machine, kSegmentName, kEx1.size() + kEx2.size());
}

TEST(Recovery, S_21_ATornTailBeforeTheLastSegmentIsRefused) {
  Machine machine;
  put_g1(machine);
  machine.put(kSegment1, kEx1 + kEx2.substr(0, 60));
  expect_refused(machine, kSegmentName, kEx1.size());
}

// Three segments with two messages each, and an empty active one.
void put_three_segments(Machine& machine) {
  put_root(machine);
  put_manifest(machine, events_manifest(7));
  put_channel(machine, workers());
  for (LogIndex first = 1; first < 7; first += 2) {
    Log log;
    log.add(first, first, "a");
    log.add(first + 1, first + 1, "b");
    machine.put(kPaths.segment("events", first), log.bytes);
    machine.put(kPaths.sidecar("events", first), log.sidecar());
  }
  machine.put(kPaths.segment("events", 7), "");
}

TEST(Recovery, S_22_AMissingMiddleSegmentIsRefused) {
  Machine machine;
  put_three_segments(machine);
  machine.disk.remove(kSegment3);
  expect_refused(machine, "topics/6576656e7473/segments/segment-00000000000000000005.rqlog", 0);
}

TEST(Recovery, S_23_AMissingPrefixIsAPurgedOne) {
  Machine machine;
  put_three_segments(machine);
  machine.disk.remove(kSegment1);
  machine.disk.remove(kSidecar1);
  const Opened opened = machine.open();
  ASSERT_TRUE(opened.ok()) << opened.faults[0].message();
  EXPECT_EQ(opened.topic("events").channels[0].ack_floor, 2u);
  EXPECT_EQ(opened.topic("events").absent, (std::vector<Range>{{1, 2}}));
  EXPECT_EQ(opened.topic("events").next_position, 7u);
}

TEST(Recovery, S_24_SegmentNamesWithoutTwentyDigitsAreRefusedAndStrangersIgnored) {
  for (const char* name : {"segment-1.rqlog", "segment-18446744073709551616.rqlog"}) {
    Machine machine;
    put_g1(machine);
    machine.put(kPaths.segments("events") + "/" + name, "");
    expect_refused(machine, std::string("topics/6576656e7473/segments/") + name, std::nullopt);
  }
  Machine machine;
  put_g1(machine);
  machine.put(kPaths.segments("events") + "/notes.txt", "x");
  machine.put(kPaths.segments("events") + "/segment-x.bak", "x");
  EXPECT_TRUE(machine.open().ok());
}

TEST(Recovery, S_25_RecordFlagsAreIgnored) {
  Machine machine;
  std::string first = kEx1;
  first[7] = 1;
  store32(reinterpret_cast<std::byte*>(first.data()) + 44,
          crc32c(bytes_of(std::string_view(first).substr(48)), crc32c(bytes_of(std::string_view(first).substr(0, 44)))));
  put_active(machine);
  machine.put(kSegment1, first + kEx2);
  EXPECT_TRUE(machine.open().ok());
}

TEST(Recovery, S_26_ADefectiveBatchIsRefused) {
  const auto record = [](std::string payload) {
    RecordHeader header;
    header.index = 3;
    header.first_id = kFirstId + 3;
    std::string out;
    put_record(out, header, bytes_of(payload));
    return out;
  };
  const auto item = [](Position position, MessageId id, std::string_view body) {
    std::string out;
    put64(out, position);
    put64(out, id);
    put32(out, static_cast<std::uint32_t>(body.size()));
    return out.append(body);
  };
  using namespace std::string_literals;
  const std::string two = "\0\0\0\2"s;
  EXPECT_NO_FATAL_FAILURE({
    Machine machine;
    put_active(machine, record("\0\0\0\1"s + item(4, kFirstId + 3, "x")));
    EXPECT_TRUE(machine.open().ok());
  });
  for (const std::string& payload :
       {"\0\0\0\0"s, "\xff\xff\xff\xff"s + item(4, kFirstId + 3, "x"), "\0\0\0\1"s + item(4, kFirstId + 3, "x") + "y",
        "\0\0\0\1"s + item(4, kFirstId + 4, "x"), two + item(4, kFirstId + 3, "x") + item(6, kFirstId + 4, "y"),
        two + item(4, kFirstId + 3, "x") + item(5, kFirstId + 5, "y"), ""s}) {
    Machine machine;
    put_active(machine, record(payload));
    expect_refused(machine, kSegmentName, kEx1.size() + kEx2.size());
  }
}

TEST(Recovery, S_27_AMissingOrInvalidSidecarIsRewritten) {
  const auto with = [](std::size_t at, std::string_view bytes, bool fix_crc) {
    std::string sidecar = kEx4;
    sidecar.replace(at, bytes.size(), bytes);
    if (fix_crc)
      store32(reinterpret_cast<std::byte*>(sidecar.data()) + 56, crc32c(bytes_of(std::string_view(sidecar).substr(0, 56))));
    return sidecar;
  };
  using namespace std::string_view_literals;
  for (const std::string& sidecar : {std::string(), with(56, "\0"sv, false), with(4, "\1"sv, true),
                                     kEx4.substr(0, kEx4.size() - 1), with(15, "\xad"sv, true), kEx4 + "x"}) {
    Machine machine;
    put_g1(machine);
    machine.put(kSidecar1, sidecar);
    const Opened opened = machine.open();
    ASSERT_TRUE(opened.ok()) << opened.faults[0].message();
    EXPECT_EQ(machine.disk.durable_content(kSidecar1), kEx4);
    EXPECT_EQ(opened.topic("events").sealed[0].crc, 0xeed37fafu);
  }
  Machine machine;
  put_g1(machine);
  machine.disk.remove(kSidecar1);
  ASSERT_TRUE(machine.open().ok());
  EXPECT_EQ(machine.disk.durable_content(kSidecar1), kEx4);
}

std::string damaged_sidecar(bool locations, bool metadata) {
  std::string sidecar = kEx4;
  if (locations) sidecar[64 + 8] ^= 1;
  if (metadata) sidecar[64 + 48 + 12 + 60 + 3] ^= 1;
  return sidecar;
}

TEST(Recovery, S_28_DamagedMetadataIsRebuilt) {
  Machine machine;
  put_g1(machine);
  machine.put(kSidecar1, damaged_sidecar(false, true));
  const Opened opened = machine.open();
  ASSERT_TRUE(opened.ok());
  EXPECT_EQ(opened.topic("events").sealed[0].message_count, 3u);
  EXPECT_EQ(machine.content(kSidecar1), kEx4);
}

TEST(Recovery, DamagedLocationsAloneStillOpen) {
  Machine machine;
  put_g1(machine);
  machine.put(kSidecar1, damaged_sidecar(true, false));
  EXPECT_TRUE(machine.open().ok());
}

TEST(Recovery, S_30_DamagedLocationsAndMetadataFallBackToAScan) {
  Machine machine;
  put_g1(machine);
  machine.put(kSidecar1, damaged_sidecar(true, true));
  const Opened opened = machine.open();
  ASSERT_TRUE(opened.ok());
  EXPECT_EQ(opened.topic("events").sealed[0].message_count, 3u);
  EXPECT_EQ(machine.content(kSidecar1), kEx4);
}

TEST(Recovery, ADamagedPayloadBehindAGoodSidecarStillOpens) {
  Machine machine;
  put_g1(machine);
  std::string segment = kEx1 + kEx2;
  segment[72] ^= 1;
  machine.put(kSegment1, segment);
  EXPECT_TRUE(machine.open().ok());
}

TEST(Recovery, AGoodSidecarOfAnotherSegmentIsNotBelieved) {
  Machine machine;
  put_three_segments(machine);
  machine.put(kSidecar1, machine.content(kPaths.sidecar("events", 3)));  // of a segment of equal length (D-44)
  const Opened opened = machine.open();
  ASSERT_TRUE(opened.ok()) << opened.faults[0].message();
  EXPECT_EQ(opened.topic("events").sealed[0].first_position, 1u);
  Log log;
  log.add(1, 1, "a");
  log.add(2, 2, "b");
  EXPECT_EQ(machine.content(kSidecar1), log.sidecar());
}

TEST(Recovery, S_32_StraySidecarsAreIgnored) {
  Machine machine;
  put_g1(machine);
  machine.put(kPaths.sidecar("events", 3), "beside the active segment");
  machine.put(kPaths.sidecar("events", 77), "without segment");
  machine.put(temporary_of(kSidecar1), "half");
  const Opened opened = machine.open();
  ASSERT_TRUE(opened.ok());
  EXPECT_EQ(opened.topic("events").sealed.size(), 1u);
  EXPECT_FALSE(machine.disk.exists(kPaths.sidecar("events", 77)));
  EXPECT_FALSE(machine.disk.exists(temporary_of(kSidecar1)));
}

TEST(Recovery, S_33_ASealedSegmentWithoutMessagesIsRefused) {
  for (const bool noop : {true, false}) {
    Machine machine;
    put_g1(machine);
    machine.disk.remove(kSidecar1);
    Log log;
    if (noop) log.add_noop(1);
    machine.put(kSegment1, log.bytes);
    expect_refused(machine, kSegmentName, 0);
  }
}

TEST(Recovery, S_34_APositionMayJumpBetweenSegmentsOnly) {
  Log jump;
  jump.add(1, 1, "a");
  const std::uint64_t second = jump.bytes.size();
  jump.add(2, 5, "b");
  for (const bool sealed : {true, false}) {
    Machine machine;
    put_active(machine);
    machine.put(kSegment1, jump.bytes);
    if (sealed) machine.put(kSegment3, "");
    expect_refused(machine, kSegmentName, second);
  }
  Machine machine;
  put_active(machine);
  Log first, then;
  first.add(1, 1, "a");
  then.add(2, 5, "b");
  machine.put(kSegment1, first.bytes);
  machine.put(kPaths.segment("events", 2), then.bytes);
  const Opened opened = machine.open();
  ASSERT_TRUE(opened.ok()) << opened.faults[0].message();
  EXPECT_EQ(opened.topic("events").absent, (std::vector<Range>{{2, 4}}));
  EXPECT_EQ(opened.topic("events").next_position, 6u);
  EXPECT_EQ(opened.topic("events").channels[0].ack_floor, 4u);  // position 1 was finished, 2 to 4 are absent
}

TEST(Recovery, S_35_OverlappingPositionsAreRefused) {
  Machine machine;
  put_active(machine);
  Log first, then;
  first.add(1, 1, "a");
  then.add(2, 1, "b");
  machine.put(kSegment1, first.bytes);
  machine.put(kPaths.segment("events", 2), then.bytes);
  expect_refused(machine, "topics/6576656e7473/segments/segment-00000000000000000002.rqlog", 0);
}

TEST(Recovery, AMessageWithoutBodyIsRefused) {
  RecordHeader header;
  header.index = 1;
  header.first_id = kFirstId;
  std::string payload;
  put32(payload, 1);
  put64(payload, 1);
  put64(payload, kFirstId);
  put32(payload, 0);
  std::string record;
  put_record(record, header, bytes_of(payload));
  Machine machine;
  put_active(machine);
  machine.put(kSegment1, record);
  machine.put(kSegment3, "");
  expect_refused(machine, kSegmentName, 0);
}

TEST(Recovery, RecordsWithoutMessagesLieBetweenThoseWith) {
  Machine machine;
  put_active(machine);
  Log log;
  log.add_noop(1);
  log.add(2, 1, "a");
  log.add_noop(3);
  log.add(4, 2, "b");
  machine.put(kSegment1, log.bytes);
  const Opened opened = machine.open();
  ASSERT_TRUE(opened.ok()) << opened.faults[0].message();
  EXPECT_EQ(opened.topic("events").sealed[0].record_count, 4u);  // sealed: the manifest knows position 3
  EXPECT_EQ(opened.topic("events").sealed[0].message_count, 2u);
  EXPECT_EQ(machine.content(kSidecar1), log.sidecar());
}

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

TEST(Recovery, S_43_RemainsWithoutManifestGoAwayBeforeTheNameIsUsedAgain) {
  Machine machine;
  put_g1(machine);
  machine.disk.remove(kManifest);
  machine.put(kPaths.in_root("topics/not a name/file"), "x");
  ASSERT_TRUE(machine.open().ok());
  EXPECT_FALSE(machine.disk.exists(kPaths.topic("events")));
  EXPECT_TRUE(machine.disk.exists(kPaths.in_root("topics/not a name/file")));
  Manifest manifest = events_manifest(1);
  manifest.unrouted_from = 1;
  put_manifest(machine, manifest);
  const Opened opened = machine.open();
  ASSERT_TRUE(opened.ok()) << opened.faults[0].message();
  EXPECT_EQ(opened.topic("events").next_position, 1u);
  EXPECT_TRUE(opened.topic("events").channels.empty());
}

TEST(Recovery, S_44_AnInterruptedDeletionIsFinishedFromAnyPoint) {
  std::vector<std::string> order{kSegment1, kSidecar1, kSegment3, kCheckpoint, kWal, kManifest};
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
    EXPECT_FALSE(machine.disk.exists(kPaths.topic("events")));
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

TEST(Recovery, AnUncleanStopWritesTheTailAgain) {
  Machine machine;
  put_active(machine);
  machine.disk.faults.sync_fail = 0;
  ASSERT_TRUE(machine.open().ok());
  machine.disk.power_loss();
  EXPECT_EQ(machine.content(kSegment1), kEx1 + kEx2);
  EXPECT_EQ(machine.content(kWal), frame(finish(1)));
}

TEST(Recovery, AReadErrorNamesItsFile) {
  Machine machine;
  put_active(machine);
  machine.disk.faults.read_io_error = 1'024;
  const Opened opened = machine.open();
  ASSERT_FALSE(opened.ok());
  EXPECT_FALSE(opened.faults[0].file.empty());
}

TEST(Recovery, ARecordOfManyPiecesIsReadWithoutHoldingIt) {
  Machine machine;
  put_active(machine);
  Log log;
  log.add(1, 1, std::string(5 << 20, 'x'));
  log.add({2, kTime, kFirstId + 1, kTimeMs, 2}, {std::string(1'048'000, 'y'), "z", std::string(3'000'000, 'w')});
  machine.put(kSegment1, log.bytes);
  const Opened opened = machine.open();
  ASSERT_TRUE(opened.ok()) << opened.faults[0].message();
  EXPECT_EQ(opened.topic("events").active.messages, log.segment.messages);
  EXPECT_EQ(opened.topic("events").active.info.crc, crc32c(bytes_of(log.bytes)));
}

}  // namespace
}  // namespace rq::storage::testing
