// Records of a segment file (page 20 section 3). One record holds all messages of one publish request.
//
//   header  | 0 magic "RQV7" | 4 version 7 | 5 kind u8 | 6 flags u16, written 0, ignored | 8 record index u64
//           | 16 timestamp ns i64 | 24 first message id u64 | 32 available-at ms i64 | 40 payload length u32
//           | 44 CRC-32C over bytes 0..43 and the payload u32 | 48 payload |
//   payload | 0 message count u32 | then for each: position u64 | id u64 | body length u32 | body |
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/crc32c.h"
#include "core/base/slice.h"
#include "core/storage/types.h"

namespace rq::storage {

enum class RecordKind : std::uint8_t { publish_batch = 1, eviction_gap = 2, noop = 3 };

struct RecordHeader {
  RecordKind kind = RecordKind::publish_batch;
  LogIndex index = 0;
  std::int64_t timestamp_ns = 0;
  MessageId first_id = 0;
  std::int64_t available_at_ms = 0;
  std::uint32_t payload_bytes = 0;
  std::uint32_t crc = 0;         // as stored
  std::uint32_t header_crc = 0;  // of bytes 0..43 as they were read: the start of the record's CRC
  std::uint64_t encoded_bytes() const { return std::uint64_t{kRecordHeaderBytes} + payload_bytes; }
};

// --- writing

struct BatchFields {
  LogIndex index = 0;
  std::int64_t timestamp_ns = 0;
  MessageId first_id = 0;
  std::int64_t available_at_ms = 0;
  Position first_position = 0;
};

// Payload length of a PublishBatch with these bodies.
std::uint64_t batch_payload_bytes(std::span<const Slice> bodies);

struct EncodedBatch {
  std::uint64_t encoded_bytes = 0;  // header and payload
  std::uint32_t crc = 0;            // of the whole encoded record, for crc32c_combine() into the segment CRC
};

// Appends the frame of a PublishBatch to `out`: the header, the count and the item headers back to back, without the bodies, so
// that bodies are written from where they are. `metas`, when not null, gets one entry per message; body offsets count from
// `record_offset`, where the record will start in its segment. 1 to 65,536 bodies, none empty, payload within 160 MiB.
EncodedBatch put_batch_frame(std::string& out, const BatchFields& fields, std::span<const Slice> bodies,
                             std::uint64_t record_offset = 0, std::vector<MessageMeta>* metas = nullptr);
inline constexpr std::uint64_t batch_frame_bytes(std::size_t messages) {
  return kRecordHeaderBytes + 4 + std::uint64_t{kBatchItemBytes} * messages;
}
// The record as pieces to append in order: frame parts and bodies in turn. `frame` is what put_batch_frame() appended.
void add_batch_pieces(std::vector<ConstBuf>& out, ConstBuf frame, std::span<const Slice> bodies);

// A record without messages or with a given payload (EvictionGap and Noop are read, never written by the Broker).
void put_record(std::string& out, RecordHeader header, ConstBuf payload);

// --- reading

enum class RecordScan {
  record,
  end,        // no byte left
  torn,       // fewer than 48 bytes, or the payload reaches past the end of the file
  bad_magic,  // the rest fails closed, in this order (page 20 section 8.2)
  bad_version,
  bad_length,  // more than 160 MiB
  bad_kind,
  bad_crc,
};
const char* record_scan_text(RecordScan scan);  // what a Fault says

// Looks at the header of the next record. `rest` holds the first 48 of the `left` bytes up to the end of the file, or all of
// them when they are fewer. Everything but the CRC is checked.
RecordScan scan_record_header(ConstBuf rest, std::uint64_t left, RecordHeader& out);
// The next record of an image that is in memory as a whole.
RecordScan scan_record(ConstBuf rest, RecordHeader& header, ConstBuf& payload);

struct BatchItem {
  Position position = 0;
  MessageId id = 0;
  std::uint64_t payload_offset = 0;  // of the body, from the start of the payload
  std::uint32_t body_bytes = 0;
  std::uint32_t body_crc = 0;
};

// Takes a PublishBatch payload apart, piece by piece, without holding it: nothing is allocated, and every field is checked
// before it is believed. Feed all bytes in order; the visitor gets each item when its body is complete.
class BatchParser {
 public:
  explicit BatchParser(const RecordHeader& header);

  template <class Visitor>
  void feed(ConstBuf bytes, Visitor&& visit) {
    while (!bytes.empty() && error_ == nullptr) {
      if (body_left_ > 0) {
        bytes = bytes.subspan(take_body(bytes));
        if (body_left_ == 0) visit(std::as_const(item_));
      } else {
        bytes = bytes.subspan(take_field(bytes));
        if (item_complete_) visit(std::as_const(item_));  // a body of no bytes
      }
      item_complete_ = false;
    }
  }
  // Null when the payload was complete and right; otherwise what is wrong, a string literal.
  const char* finish();
  std::uint32_t message_count() const { return count_; }

 private:
  std::size_t take_field(ConstBuf bytes);
  std::size_t take_body(ConstBuf bytes);
  void on_count(std::uint32_t count);
  void on_item();

  MessageId first_id_;
  std::uint64_t payload_bytes_;
  std::uint64_t offset_ = 0;  // bytes consumed
  std::uint32_t count_ = 0;
  std::uint32_t seen_ = 0;  // items whose header was read
  Position first_position_ = 0;
  BatchItem item_;
  std::uint32_t body_left_ = 0;
  bool item_complete_ = false;
  std::byte field_[kBatchItemBytes];
  std::uint32_t field_bytes_ = 0;
  const char* error_ = nullptr;
};

// Visits a payload that is in memory as a whole; returns what is wrong, or null.
template <class Visitor>
const char* visit_batch(const RecordHeader& header, ConstBuf payload, Visitor&& visit) {
  BatchParser parser(header);
  parser.feed(payload, visit);
  return parser.finish();
}

}  // namespace rq::storage
