// Decoders against good, bad and random input.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "core/storage/checkpoint.h"
#include "core/storage/manifest.h"
#include "core/storage/names.h"
#include "core/storage/paths.h"
#include "core/storage/wal.h"
#include "tests/storage/examples.h"

namespace rq::storage {
namespace {

using namespace examples;

const char* parse(std::string record) {
  RecordHeader header;
  ConstBuf payload;
  // The checksum is not what these cases are about: it is made right again.
  RecordHeader raw;
  scan_record_header(bytes_of(record), record.size(), raw);
  std::string fixed;
  raw.kind = RecordKind::publish_batch;
  put_record(fixed, raw, bytes_of(std::string_view(record).substr(kRecordHeaderBytes)));
  if (scan_record(bytes_of(fixed), header, payload) != RecordScan::record) return "not a record";
  return visit_batch(header, payload, [](const BatchItem&) {});
}

TEST(Batch, S_26_DefectiveBatchesAreRefusedWithoutAllocation) {
  const auto with = [](std::size_t at, std::string_view bytes) {
    std::string record = kEx2;
    record.replace(kRecordHeaderBytes + at, bytes.size(), bytes);
    return record;
  };
  using namespace std::string_view_literals;
  EXPECT_EQ(parse(kEx2), nullptr);
  EXPECT_NE(parse(with(0, "\0\0\0\0"sv)), nullptr);               // no message
  EXPECT_NE(parse(with(0, "\xff\xff\xff\xff"sv)), nullptr);       // more messages than the payload can hold
  EXPECT_NE(parse(kEx2 + "x"), nullptr);                          // trailing byte
  EXPECT_NE(parse(with(4 + 15, "\x07"sv)), nullptr);              // first id differs from the header's
  EXPECT_NE(parse(with(4 + 21 + 7, "\x05"sv)), nullptr);          // positions 2 and 5
  EXPECT_NE(parse(with(4 + 21 + 15, "\x05"sv)), nullptr);         // ids 2 and 5
  EXPECT_NE(parse(with(4 + 16, "\xff\xff\xff\xff"sv)), nullptr);  // body longer than the payload
  EXPECT_NE(parse(with(0, "\0\0\0\1"sv)), nullptr);               // fewer messages than are there
}

TEST(Record, S_25_FlagsAreIgnored) {
  std::string record = kEx1;
  record[6] = '\x12';
  record[7] = '\x34';
  store32(reinterpret_cast<std::byte*>(record.data()) + 44,
          crc32c(bytes_of(std::string_view(record).substr(48)), crc32c(bytes_of(std::string_view(record).substr(0, 44)))));
  RecordHeader header;
  ConstBuf payload;
  EXPECT_EQ(scan_record(bytes_of(record), header, payload), RecordScan::record);
}

TEST(Record, TheLengthIsLookedAtBeforeKindAndChecksum) {
  RecordHeader header;
  ConstBuf payload;
  std::string record = kEx1;
  record[5] = 9;
  EXPECT_EQ(scan_record(bytes_of(record), header, payload), RecordScan::bad_kind);
  record.pop_back();
  EXPECT_EQ(scan_record(bytes_of(record), header, payload), RecordScan::torn);
  record = kEx1;
  store32(reinterpret_cast<std::byte*>(record.data()) + 40, kPayloadBytesMax + 1);
  EXPECT_EQ(scan_record(bytes_of(record), header, payload), RecordScan::bad_length);
  EXPECT_EQ(scan_record({}, header, payload), RecordScan::end);
  EXPECT_EQ(scan_record(bytes_of(std::string(47, '\0')), header, payload), RecordScan::torn);
  EXPECT_EQ(scan_record(bytes_of(std::string(48, '\0')), header, payload), RecordScan::bad_magic);
}

TEST(Names, FollowTheRule) {
  EXPECT_TRUE(valid_name("a"));
  EXPECT_TRUE(valid_name("A-z_0.9"));
  EXPECT_TRUE(valid_name("jobs#ephemeral"));
  EXPECT_TRUE(valid_name(std::string(64, 'x')));
  EXPECT_TRUE(valid_name(std::string(54, 'x').append("#ephemeral")));
  EXPECT_FALSE(valid_name(std::string(55, 'x').append("#ephemeral")));
  for (const char* name : {"", "#ephemeral", "a b", "a#b", "a/b", "\xc3\xa4"}) EXPECT_FALSE(valid_name(name)) << name;
  EXPECT_FALSE(valid_name(std::string(65, 'x')));
}

TEST(Paths, NamesBecomeHex) {
  const DataPaths paths("/d/");
  EXPECT_EQ(paths.checkpoint("events", "workers"), "/d/topics/6576656e7473/channels/776f726b657273.checkpoint");
  EXPECT_EQ(paths.segment("jobs#ephemeral", 1),
            "/d/topics/6a6f627323657068656d6572616c/segments/segment-00000000000000000001.rqlog");
  EXPECT_EQ(paths.relative(paths.manifest("orders.v1")), "topics/6f72646572732e7631/manifest");
}

TEST(Paths, S_24_SegmentNamesHaveTwentyDigits) {
  LogIndex base = 0;
  EXPECT_EQ(parse_segment_name("segment-00000000000000000042.rqlog", base), SegmentName::segment);
  EXPECT_EQ(base, 42u);
  EXPECT_EQ(parse_segment_name("segment-18446744073709551615.rqlog", base), SegmentName::segment);
  EXPECT_EQ(parse_segment_name("segment-18446744073709551616.rqlog", base), SegmentName::malformed);
  EXPECT_EQ(parse_segment_name("segment-1.rqlog", base), SegmentName::malformed);
  EXPECT_EQ(parse_segment_name("segment-.rqlog", base), SegmentName::malformed);
  EXPECT_EQ(parse_segment_name("notes.txt", base), SegmentName::other);
  EXPECT_EQ(parse_segment_name("segment-00000000000000000042.rqidx", base), SegmentName::other);
}

Decoded<Checkpoint> checkpoint_of(std::string_view json) {
  std::string file;
  put_frame(file, "RCC7", bytes_of(json));
  return decode_checkpoint(bytes_of(file));
}

TEST(CheckpointFile, S_57_OptionalKeysHaveDefaults) {
  const auto checkpoint = checkpoint_of(
      R"( {"format":7,"name":"w","barrier_position":4,"ack_floor_position":9,"acknowledged":[12,11,12],"requeued_until":{},)"
      R"("paused":true,"ephemeral":false,"of_the_future":{"format":8,"format":9}}
)");
  ASSERT_TRUE(checkpoint) << checkpoint.error();
  EXPECT_EQ(checkpoint->channel.message_count_origin, 4u);
  EXPECT_EQ(checkpoint->channel.acknowledged, (std::vector<Position>{11, 12}));
  EXPECT_TRUE(checkpoint->channel.paused);
}

TEST(CheckpointFile, S_57_DefectsAreRefused) {
  const std::string good(kEx6.substr(kFrameHeaderBytes));
  const auto with = [&good](std::string_view from, std::string_view to) {
    std::string json = good;
    json.replace(json.find(from), from.size(), to);
    return json;
  };
  EXPECT_TRUE(checkpoint_of(good));
  EXPECT_TRUE(checkpoint_of(with("\"message_count_origin_position\":4", "\"message_count_origin_position\":null")));
  EXPECT_FALSE(checkpoint_of(with("\"format\":7", "\"format\":8")));
  EXPECT_FALSE(checkpoint_of(with("\"format\":7", "\"format\":7.0")));
  EXPECT_FALSE(checkpoint_of(with("\"format\":7", "\"format\":7e0")));
  EXPECT_FALSE(checkpoint_of(with("\"format\":7", "\"format\":7,\"format\":7")));
  EXPECT_FALSE(checkpoint_of(with("\"paused\":false,", "")));
  EXPECT_FALSE(checkpoint_of(with("\"ack_floor_position\":9", "\"ack_floor_position\":3")));
  EXPECT_FALSE(checkpoint_of(with("\"message_count_origin_position\":4", "\"message_count_origin_position\":5")));
  EXPECT_FALSE(checkpoint_of(with("\"attempts\":{\"10\":2}", "\"attempts\":{\"10\":65536}")));
  EXPECT_FALSE(checkpoint_of(with("{\"10\":2}", "{\"010\":2}")));
  EXPECT_FALSE(checkpoint_of(with("[11,12]", "[11,-12]")));
  EXPECT_FALSE(checkpoint_of(with("\"requeue_count\":3", "\"requeue_count\":18446744073709551616")));
  EXPECT_FALSE(checkpoint_of(with("\"workers\"", "\"work ers\"")));
  EXPECT_FALSE(checkpoint_of(with("\"workers\"", "\"work\xff\"")));
  EXPECT_FALSE(checkpoint_of(good + "x"));
  EXPECT_FALSE(decode_checkpoint(bytes_of(kEx6 + " ")));
  EXPECT_FALSE(decode_checkpoint(bytes_of(std::string_view(kEx6).substr(0, 11))));
}

TEST(CheckpointFile, TheLargestWindowFits) {
  ChannelImage channel;
  channel.name = std::string(64, 'n');
  const std::uint64_t empty = encode_checkpoint(channel).size();
  for (std::uint64_t i = 0; i < 1'000; ++i) {
    channel.requeued_until_ms[UINT64_MAX - i] = INT64_MIN;
    channel.attempts[UINT64_MAX - i] = UINT16_MAX;
  }
  const std::uint64_t position = (encode_checkpoint(channel).size() - empty + 999) / 1'000;
  EXPECT_LE(empty + position * kAckGapMax, kCheckpointFileBytesMax);
}

TEST(CheckpointFile, NumbersUpTo64BitsSurvive) {
  ChannelImage channel = ex6_channel();
  channel.acknowledged = {UINT64_MAX - 1, UINT64_MAX};
  channel.requeued_until_ms = {{UINT64_MAX, INT64_MIN}, {10, INT64_MAX}};
  channel.attempts = {{UINT64_MAX, 65'535}};
  channel.requeue_count = UINT64_MAX;
  const std::string file = encode_checkpoint(channel);
  const auto decoded = decode_checkpoint(bytes_of(file));
  ASSERT_TRUE(decoded) << decoded.error();
  EXPECT_EQ(encode_checkpoint(decoded->channel), file);
}

TEST(ManifestFile, S_49_WithoutTtlKeysItIsReliable) {
  const auto manifest =
      decode_manifest(bytes_of(R"({"format":7,"name":"events","paused":false,"next_position":1,"unrouted_from_position":1})"));
  ASSERT_TRUE(manifest);
  EXPECT_FALSE(manifest->ttl_discard);
  EXPECT_FALSE(manifest->deleted);
  EXPECT_EQ(manifest->unrouted_from, 1u);
  EXPECT_EQ(manifest->expired_through, 0u);
  EXPECT_EQ(manifest->ttl_discarded_messages, 0u);
}

TEST(ManifestFile, S_45_S_48_ContradictionsAreRefused) {
  const auto with = [](std::string_view more) {
    std::string json(R"({"format":7,"name":"events","paused":false,"deleted":false,"next_position":4)");
    return decode_manifest(bytes_of(json.append(more).append("}")));
  };
  EXPECT_TRUE(with(""));
  EXPECT_TRUE(with(R"(,"unrouted_from_position":4)"));
  EXPECT_FALSE(with(R"(,"unrouted_from_position":0)"));
  EXPECT_FALSE(with(R"(,"unrouted_from_position":5)"));
  EXPECT_TRUE(with(R"(,"delivery_mode":"TTL_DISCARD","message_ttl_seconds":1,"expired_through_position":3)"));
  EXPECT_FALSE(with(R"(,"delivery_mode":"TTL_DISCARD")"));
  EXPECT_FALSE(with(R"(,"delivery_mode":"TTL_DISCARD","message_ttl_seconds":0)"));
  EXPECT_FALSE(with(R"(,"delivery_mode":"RELIABLE","message_ttl_seconds":1)"));
  EXPECT_FALSE(with(R"(,"delivery_mode":"reliable")"));
  EXPECT_FALSE(with(R"(,"expired_through_position":4)"));
}

TEST(Compatibility, S_08_S_09_S_10_S_11_LevelsOnlyRise) {
  const Compatibility fresh;
  EXPECT_EQ(*raise_level(fresh, 1), fresh);
  EXPECT_EQ(*raise_level(fresh, 2), (Compatibility{2, 2, 2}));
  EXPECT_FALSE(raise_level(Compatibility{2, 2, 2}, 1));
  EXPECT_FALSE(raise_level(fresh, 0));
  EXPECT_FALSE(raise_level(fresh, 3));
  EXPECT_TRUE(check_reader_level(Compatibility{1, 3, 1}));
  EXPECT_FALSE(check_reader_level(Compatibility{1, 2, 1}));
}

TEST(Lock, OnlyACleanStopIsClean) {
  EXPECT_TRUE(is_clean_lock(lock_content(77, true)));
  for (const char* content : {"", "77\n", "77\nclean", "77\nclean\n\n", "clean\n", "\nclean\n", "x\nclean\n"})
    EXPECT_FALSE(is_clean_lock(content)) << content;
}

// --- properties

rc::Gen<std::string> body() {
  return rc::gen::mapcat(rc::gen::inRange<std::size_t>(1, 3'000),
                         [](std::size_t bytes) { return rc::gen::container<std::string>(bytes, rc::gen::arbitrary<char>()); });
}

RC_GTEST_PROP(RecordProperties, ABatchIsReadBackFromPiecesOfAnySize, ()) {
  const auto bodies = *rc::gen::resize(8, rc::gen::nonEmpty(rc::gen::container<std::vector<std::string>>(body())));
  const BatchFields fields{*rc::gen::inRange<LogIndex>(1, 1u << 30), *rc::gen::arbitrary<std::int64_t>(),
                           *rc::gen::inRange<MessageId>(1, 1ull << 60), *rc::gen::arbitrary<std::int64_t>(),
                           *rc::gen::inRange<Position>(1, 1ull << 60)};
  std::vector<MessageMeta> metas;
  const std::string record = batch(fields, bodies, 1'000, &metas);
  RecordHeader header;
  ConstBuf payload;
  RC_ASSERT(scan_record(bytes_of(record), header, payload) == RecordScan::record);
  RC_ASSERT(header.encoded_bytes() == record.size());
  const std::size_t step = *rc::gen::inRange<std::size_t>(1, 200);
  BatchParser parser(header);
  std::vector<MessageMeta> seen;
  while (!payload.empty()) {
    const std::size_t taken = std::min(step, payload.size());
    parser.feed(payload.first(taken), [&](const BatchItem& item) {
      seen.push_back({item.position, item.id, header.timestamp_ns, header.available_at_ms, header.index,
                      1'000 + kRecordHeaderBytes + item.payload_offset, item.body_bytes, item.body_crc});
    });
    payload = payload.subspan(taken);
  }
  RC_ASSERT(parser.finish() == nullptr);
  RC_ASSERT(seen == metas);
  for (std::size_t i = 0; i < metas.size(); ++i)
    RC_ASSERT(record.substr(metas[i].body_offset - 1'000, metas[i].body_bytes) == bodies[i]);
}

RC_GTEST_PROP(RecordProperties, AnyFlippedBitOfARecordIsNoticed, ()) {
  const auto bodies = *rc::gen::resize(4, rc::gen::nonEmpty(rc::gen::container<std::vector<std::string>>(body())));
  std::string record = batch(kEx1Fields, bodies);
  const std::size_t bit = *rc::gen::inRange<std::size_t>(0, record.size() * 8);
  record[bit / 8] = static_cast<char>(record[bit / 8] ^ (1 << (bit % 8)));
  RecordHeader header;
  ConstBuf payload;
  RC_ASSERT(scan_record(bytes_of(record), header, payload) != RecordScan::record);
}

RC_GTEST_PROP(WalProperties, CommandsComeBackAsTheyWere, ()) {
  WalCommand command;
  command.kind = static_cast<WalCommand::Kind>(*rc::gen::inRange(1, 8));
  using Kind = WalCommand::Kind;
  const bool requeue = command.kind == Kind::requeue || command.kind == Kind::requeue_counted;
  if (command.kind != Kind::pause && command.kind != Kind::timeout) command.position = *rc::gen::arbitrary<std::uint64_t>();
  if (requeue || command.kind == Kind::finish) command.id = *rc::gen::arbitrary<std::uint64_t>();
  if (requeue) command.available_at_ms = *rc::gen::arbitrary<std::int64_t>();
  if (requeue) command.attempts = *rc::gen::arbitrary<std::uint16_t>();
  if (command.kind == Kind::pause) command.paused = *rc::gen::arbitrary<bool>();
  if (command.kind == Kind::timeout || command.kind == Kind::requeue_counted)
    command.count = *rc::gen::arbitrary<std::uint64_t>();
  std::string frame;
  put_wal_frame(frame, command);
  WalCommand read;
  std::uint32_t consumed = 0;
  RC_ASSERT(read_wal_frame(bytes_of(frame), read, consumed) == WalRead::command);
  RC_ASSERT(consumed == frame.size());
  RC_ASSERT(read == command);
  const std::size_t cut = *rc::gen::inRange<std::size_t>(1, frame.size());
  RC_ASSERT(read_wal_frame(bytes_of(std::string_view(frame).substr(0, cut)), read, consumed) == WalRead::torn);
}

RC_GTEST_PROP(SidecarProperties, EveryEntryIsReadBack, ()) {
  ActiveSegment segment;
  Position position = *rc::gen::inRange<Position>(1, 1'000);
  std::string log;
  const auto count = *rc::gen::inRange<LogIndex>(1, 12);
  for (LogIndex i = 0; i < count; ++i) {
    const auto bodies = *rc::gen::resize(4, rc::gen::nonEmpty(rc::gen::container<std::vector<std::string>>(body())));
    const std::string record = batch({i + 5, 77, kFirstId + position, 78, position}, bodies, log.size(), &segment.messages);
    segment.records.push_back({i + 5, log.size(), record.size()});
    log += record;
    position += bodies.size();
  }
  segment.info.bytes = log.size();
  segment.info.crc = crc32c(bytes_of(log));
  const std::string file = encode_sidecar(segment);
  RC_ASSERT(file.size() == sidecar_bytes(segment.records.size(), segment.messages.size()));
  SidecarHeader header;
  RC_ASSERT(decode_sidecar_header(bytes_of(file), file.size(), log.size(), header) == nullptr);
  RC_ASSERT(header.segment_crc == segment.info.crc && header.first_index == 5u && header.last_index == count + 4);
  RC_ASSERT(header.body_crc == crc32c(bytes_of(std::string_view(file).substr(kSidecarHeaderBytes))));
  std::uint32_t messages = 0;
  const std::string_view view(file);
  RC_ASSERT(decode_metadata_header(bytes_of(view.substr(header.metadata_offset())), header, messages) == nullptr);
  RC_ASSERT(messages == segment.messages.size());
  for (std::uint32_t i = 0; i < messages; ++i) {
    MessageMeta meta;
    RC_ASSERT(decode_metadata_entry(bytes_of(view.substr(header.entry_offset(i))), log.size(), meta) == nullptr);
    RC_ASSERT(meta == segment.messages[i]);
  }
  for (std::uint32_t i = 0; i < header.location_count; ++i) {
    RecordIndex location;
    RC_ASSERT(decode_location(bytes_of(view.substr(kSidecarHeaderBytes + kLocationBytes * i)), header, i, location) == nullptr);
    RC_ASSERT(location.offset == segment.records[i].offset);
  }
  std::string damaged = file.substr(0, kSidecarHeaderBytes);
  const auto bit = *rc::gen::inRange<std::size_t>(0, 60 * 8);  // the last four bytes are covered by no check
  damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
  RC_ASSERT(decode_sidecar_header(bytes_of(damaged), file.size(), log.size(), header) != nullptr);
}

RC_GTEST_PROP(DocumentProperties, ManifestsComeBackAsTheyWere, ()) {
  Manifest manifest;
  manifest.name = *rc::gen::element<std::string>("a", "orders.v1", "jobs#ephemeral");
  manifest.paused = *rc::gen::arbitrary<bool>();
  manifest.next_position = *rc::gen::inRange<Position>(2, UINT64_MAX);
  if (*rc::gen::arbitrary<bool>()) manifest.unrouted_from = *rc::gen::inRange<Position>(1, manifest.next_position);
  manifest.ttl_discard = *rc::gen::arbitrary<bool>();
  if (manifest.ttl_discard) manifest.message_ttl_seconds = *rc::gen::inRange<std::uint64_t>(1, UINT64_MAX);
  manifest.expired_through = *rc::gen::inRange<Position>(0, manifest.next_position);
  manifest.ttl_discarded_messages = *rc::gen::arbitrary<std::uint64_t>();
  const auto decoded = decode_manifest(bytes_of(encode_manifest(manifest)));
  RC_ASSERT(decoded.has_value());
  RC_ASSERT(*decoded == manifest);
}

RC_GTEST_PROP(DocumentProperties, CheckpointsComeBackAsTheyWere, ()) {
  ChannelImage channel;
  channel.name = "workers";
  channel.barrier = *rc::gen::inRange<Position>(0, 1'000);
  channel.ack_floor = channel.barrier + *rc::gen::inRange<Position>(0, 1'000);
  channel.message_count_origin = *rc::gen::inRange<Position>(0, channel.barrier + 1);
  const auto acknowledged = *rc::gen::arbitrary<std::set<Position>>();
  channel.acknowledged.assign(acknowledged.begin(), acknowledged.end());
  channel.requeued_until_ms = *rc::gen::arbitrary<std::map<Position, std::int64_t>>();
  channel.attempts = *rc::gen::arbitrary<std::map<Position, std::uint16_t>>();
  channel.requeue_count = *rc::gen::arbitrary<std::uint64_t>();
  channel.timeout_count = *rc::gen::arbitrary<std::uint64_t>();
  channel.paused = *rc::gen::arbitrary<bool>();
  const auto decoded = decode_checkpoint(bytes_of(encode_checkpoint(channel)));
  RC_ASSERT(decoded.has_value());
  RC_ASSERT(decoded->channel.acknowledged == channel.acknowledged);
  RC_ASSERT(decoded->channel.requeued_until_ms == channel.requeued_until_ms);
  RC_ASSERT(decoded->channel.attempts == channel.attempts);
  RC_ASSERT(encode_checkpoint(decoded->channel) == encode_checkpoint(channel));
}

}  // namespace
}  // namespace rq::storage
