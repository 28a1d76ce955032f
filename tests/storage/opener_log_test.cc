// Opening: segments and positions (page 20 sections 3, 8.2 and 8.3).
#include <gtest/gtest.h>

#include "tests/storage/directory.h"

namespace rq::storage::testing {
namespace {

using namespace examples;

const std::string kSegmentName = "topics/6576656e7473/segments/segment-00000000000000000001.rqlog";

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

TEST(Recovery, S_68_APurgeMayBeInterruptedBetweenSegmentAndSidecar) {
  Machine machine;
  put_three_segments(machine);
  machine.disk.remove(kSegment1);
  const Opened opened = machine.open();
  ASSERT_TRUE(opened.ok()) << opened.faults[0].message();
  EXPECT_FALSE(machine.disk.exists(kSidecar1));
  EXPECT_EQ(opened.topic("events").sealed.size(), 2u);
  EXPECT_EQ(opened.topic("events").sealed[0].first_position, 3u);
  EXPECT_EQ(opened.topic("events").channels[0].ack_floor, 2u);
  EXPECT_EQ(opened.topic("events").next_index, 7u);
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
