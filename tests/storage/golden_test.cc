// The worked examples of page 20, byte for byte.
#include <gtest/gtest.h>

#include "core/storage/format_files.h"
#include "core/storage/manifest.h"
#include "core/storage/wal.h"
#include "tests/storage/examples.h"

namespace rq::storage {
namespace {

using namespace examples;

TEST(Golden, S_02_PublishRecordsOfExamples1And2) {
  EXPECT_EQ(batch(kEx1Fields, {"hello"}), kEx1);
  EXPECT_EQ(batch(kEx2Fields, {"a", "bc"}), kEx2);
  EXPECT_EQ(crc32c(bytes_of(kEx1 + kEx2)), 0xeed37fafu);
}

TEST(Golden, TheEncoderReportsTheCrcOfTheWholeRecord) {
  for (const std::size_t bytes : {1u, 5u, 1'023u, 1'024u, 70'000u}) {
    const std::vector<std::string> bodies{std::string(bytes, 'x'), "tail"};
    const std::vector<Slice> held = slices(bodies);
    std::string frame;
    const EncodedBatch encoded = put_batch_frame(frame, kEx2Fields, held);
    const std::string record = batch(kEx2Fields, bodies);
    EXPECT_EQ(encoded.encoded_bytes, record.size());
    EXPECT_EQ(encoded.crc, crc32c(bytes_of(record)));
    RecordHeader header;
    ConstBuf payload;
    EXPECT_EQ(scan_record(bytes_of(record), header, payload), RecordScan::record);
  }
}

TEST(Golden, S_02_RecordsWithoutMessagesOfExample3) {
  RecordHeader header;
  header.index = 3;
  header.timestamp_ns = kTime;
  header.kind = RecordKind::eviction_gap;
  std::string gap;
  put_record(gap, header, {});
  EXPECT_EQ(gap,
            unhex("52515637 07 02 0000 0000000000000003 17979cfe362a0000 0000000000000000 0000000000000000 00000000 512535ca"));
  header.kind = RecordKind::noop;
  std::string noop;
  put_record(noop, header, {});
  EXPECT_EQ(noop,
            unhex("52515637 07 03 0000 0000000000000003 17979cfe362a0000 0000000000000000 0000000000000000 00000000 71db34b4"));
}

TEST(Golden, S_02_SidecarOfExample4) {
  ActiveSegment segment;
  const std::string first = batch(kEx1Fields, {"hello"}, 0, &segment.messages);
  const std::string second = batch(kEx2Fields, {"a", "bc"}, first.size(), &segment.messages);
  segment.records = {{1, 0, first.size()}, {2, first.size(), second.size()}};
  segment.info.bytes = first.size() + second.size();
  segment.info.crc = crc32c(bytes_of(first + second));
  EXPECT_EQ(encode_sidecar(segment), kEx4);
}

TEST(Golden, S_02_CheckpointsOfExamples5And6) {
  ChannelImage fresh;
  fresh.name = "workers";
  EXPECT_EQ(encode_checkpoint(fresh), kEx5);
  EXPECT_EQ(encode_checkpoint(ex6_channel()), kEx6);
}

TEST(Golden, S_02_WalFramesOfExample7) {
  using Kind = WalCommand::Kind;
  const auto frame = [](const WalCommand& command) {
    std::string out;
    put_wal_frame(out, command);
    return out;
  };
  const std::int64_t until = 1'700'000'005'000;
  EXPECT_EQ(frame({Kind::finish, 1, kFirstId, 0, 0, false, 0}),
            unhex("52435737 00000011 eb5f0635 01 0000000000000001 0001000000000001"));
  EXPECT_EQ(frame({Kind::requeue, 2, kFirstId + 1, until, 1, false, 0}),
            unhex("52435737 0000001b 3d02a3c1 02 0000000000000002 0001000000000002 0000018bcfe57b88 0001"));
  EXPECT_EQ(frame({Kind::pause, 0, 0, 0, 0, true, 0}), unhex("52435737 00000002 37ed5c48 03 01"));
  EXPECT_EQ(frame({Kind::pause, 0, 0, 0, 0, false, 0}), unhex("52435737 00000002 c586df4b 03 00"));
  EXPECT_EQ(frame({Kind::empty, 3, 0, 0, 0, false, 0}), unhex("52435737 00000009 767a5964 04 0000000000000003"));
  EXPECT_EQ(frame({Kind::evict, 3, 0, 0, 0, false, 0}), unhex("52435737 00000009 82448f2c 05 0000000000000003"));
  EXPECT_EQ(frame({Kind::timeout, 0, 0, 0, 0, false, 2}), unhex("52435737 00000009 69800006 06 0000000000000002"));
  EXPECT_EQ(frame({Kind::requeue_counted, 2, kFirstId + 1, until, 1, false, 1}),
            unhex("52435737 00000023 9da7898c 07 0000000000000002 0001000000000002 0000018bcfe57b88 0001 0000000000000001"));
}

TEST(Golden, S_02_FormatAndCompatibilityFiles) {
  EXPECT_EQ(encode_format(), unhex("7b0a20202276657273696f6e223a20370a7d"));
  EXPECT_EQ(
      encode_compatibility({}),
      unhex("7b0a202022646174615f666f726d6174223a20372c0a2020226163746976655f7772697465725f666561747572655f6c6576656c223a20312c"
            "0a2020226d696e696d756d5f7265616465725f666561747572655f6c6576656c223a20312c0a20202267656e65726174696f6e223a20310a"
            "7d"));
  EXPECT_EQ(encode_broker_meta({1, 1'048'577, 2}), R"({"format":7,"node_id":1,"next_sequence":1048577,"registry_revision":2})");
}

TEST(Golden, ManifestOfATtlTopic) {
  Manifest manifest;
  manifest.name = "events";
  manifest.next_position = 4;
  manifest.ttl_discard = true;
  manifest.message_ttl_seconds = 60;
  manifest.expired_through = 1;
  manifest.ttl_discarded_messages = 1;
  EXPECT_EQ(encode_manifest(manifest),
            R"({"format":7,"name":"events","paused":false,"deleted":false,"next_position":4,"delivery_mode":"TTL_DISCARD",)"
            R"("message_ttl_seconds":60,"expired_through_position":1,"ttl_discarded_messages":1})");
}

}  // namespace
}  // namespace rq::storage
