#include "core/storage/record.h"

#include <algorithm>

namespace rq::storage {
namespace {

constexpr std::string_view kMagic = "RQV7";
constexpr std::uint32_t kCrcOffset = 44;
// From here on one CRC pass over the body and a combination beat a second pass.
constexpr std::uint32_t kCombineBytesMin = 1'024;

void put_header(std::string& out, const RecordHeader& header) {
  out.append(kMagic);
  put8(out, kDataFormat);
  put8(out, static_cast<std::uint8_t>(header.kind));
  put16(out, 0);
  put64(out, header.index);
  put64(out, static_cast<std::uint64_t>(header.timestamp_ns));
  put64(out, header.first_id);
  put64(out, static_cast<std::uint64_t>(header.available_at_ms));
  put32(out, header.payload_bytes);
  put32(out, header.crc);
}

std::byte* at(std::string& text, std::size_t offset) { return reinterpret_cast<std::byte*>(text.data()) + offset; }

}  // namespace

std::uint64_t batch_payload_bytes(std::span<const Slice> bodies) {
  std::uint64_t bytes = 4;
  for (const Slice& body : bodies) bytes += std::uint64_t{kBatchItemBytes} + body.size();
  return bytes;
}

EncodedBatch put_batch_frame(std::string& out, const BatchFields& fields, std::span<const Slice> bodies,
                             std::uint64_t record_offset, std::vector<MessageMeta>* metas) {
  const std::uint64_t payload_bytes = batch_payload_bytes(bodies);
  RQ_CHECK(!bodies.empty() && bodies.size() <= kBatchMessagesMax && payload_bytes <= kPayloadBytesMax);
  RecordHeader header;
  header.index = fields.index;
  header.timestamp_ns = fields.timestamp_ns;
  header.first_id = fields.first_id;
  header.available_at_ms = fields.available_at_ms;
  header.payload_bytes = static_cast<std::uint32_t>(payload_bytes);

  const std::size_t start = out.size();
  put_header(out, header);
  put32(out, static_cast<std::uint32_t>(bodies.size()));
  std::uint32_t payload_crc = crc32c({at(out, start + kRecordHeaderBytes), 4});
  std::uint64_t offset = record_offset + kRecordHeaderBytes + 4;
  for (std::size_t i = 0; i < bodies.size(); ++i) {
    const Slice& body = bodies[i];
    RQ_CHECK(!body.empty());
    const std::size_t item = out.size();
    put64(out, fields.first_position + i);
    put64(out, fields.first_id + i);
    put32(out, body.size());
    payload_crc = crc32c({at(out, item), kBatchItemBytes}, payload_crc);
    offset += kBatchItemBytes;
    const bool combine = body.size() >= kCombineBytesMin;
    std::uint32_t body_crc = 0;
    if (combine || metas != nullptr) body_crc = crc32c(body.bytes());
    payload_crc = combine ? crc32c_combine(payload_crc, body_crc, body.size()) : crc32c(body.bytes(), payload_crc);
    if (metas != nullptr)
      metas->push_back({fields.first_position + i, fields.first_id + i, fields.timestamp_ns, fields.available_at_ms, fields.index,
                        offset, body.size(), body_crc});
    offset += body.size();
  }
  const std::uint32_t header_crc = crc32c({at(out, start), kCrcOffset});
  store32(at(out, start + kCrcOffset), crc32c_combine(header_crc, payload_crc, payload_bytes));
  const std::uint32_t stored_crc = crc32c({at(out, start + kCrcOffset), 4}, header_crc);
  return {kRecordHeaderBytes + payload_bytes, crc32c_combine(stored_crc, payload_crc, payload_bytes)};
}

void add_batch_pieces(std::vector<ConstBuf>& out, ConstBuf frame, std::span<const Slice> bodies) {
  RQ_CHECK(frame.size() == batch_frame_bytes(bodies.size()));
  std::size_t head = kRecordHeaderBytes + 4 + kBatchItemBytes;
  for (const Slice& body : bodies) {
    out.push_back(frame.first(head));
    out.push_back(body.bytes());
    frame = frame.subspan(head);
    head = kBatchItemBytes;
  }
}

void put_record(std::string& out, RecordHeader header, ConstBuf payload) {
  RQ_CHECK(payload.size() <= kPayloadBytesMax);
  header.payload_bytes = static_cast<std::uint32_t>(payload.size());
  const std::size_t start = out.size();
  put_header(out, header);
  put_bytes(out, payload);
  store32(at(out, start + kCrcOffset), crc32c(payload, crc32c({at(out, start), kCrcOffset})));
}

const char* record_scan_text(RecordScan scan) {
  switch (scan) {
    case RecordScan::record:
      return "complete record";
    case RecordScan::end:
      return "end of file";
    case RecordScan::torn:
      return "incomplete record";
    case RecordScan::bad_magic:
      return "no record starts here (wrong magic)";
    case RecordScan::bad_version:
      return "record of an unknown version";
    case RecordScan::bad_length:
      return "record payload above 167772160 bytes";
    case RecordScan::bad_kind:
      return "record of an unknown kind";
    case RecordScan::bad_crc:
      return "record checksum mismatch";
  }
  return "";
}

RecordScan scan_record_header(ConstBuf rest, std::uint64_t left, RecordHeader& out) {
  if (left == 0) return RecordScan::end;
  if (left < kRecordHeaderBytes) return RecordScan::torn;
  RQ_CHECK(rest.size() >= kRecordHeaderBytes);
  const std::byte* bytes = rest.data();
  if (text_of(rest.first(4)) != kMagic) return RecordScan::bad_magic;
  if (static_cast<std::uint32_t>(bytes[4]) != kDataFormat) return RecordScan::bad_version;
  const auto kind = static_cast<std::uint8_t>(bytes[5]);
  out.kind = static_cast<RecordKind>(kind);
  out.index = load64(bytes + 8);
  out.timestamp_ns = static_cast<std::int64_t>(load64(bytes + 16));
  out.first_id = load64(bytes + 24);
  out.available_at_ms = static_cast<std::int64_t>(load64(bytes + 32));
  out.payload_bytes = load32(bytes + 40);
  out.crc = load32(bytes + kCrcOffset);
  out.header_crc = crc32c(rest.first(kCrcOffset));
  if (out.payload_bytes > kPayloadBytesMax) return RecordScan::bad_length;
  if (out.payload_bytes > left - kRecordHeaderBytes) return RecordScan::torn;
  if (kind < 1 || kind > 3) return RecordScan::bad_kind;
  return RecordScan::record;
}

RecordScan scan_record(ConstBuf rest, RecordHeader& header, ConstBuf& payload) {
  const RecordScan scan = scan_record_header(rest, rest.size(), header);
  if (scan != RecordScan::record) return scan;
  payload = rest.subspan(kRecordHeaderBytes, header.payload_bytes);
  return crc32c(payload, header.header_crc) == header.crc ? RecordScan::record : RecordScan::bad_crc;
}

BatchParser::BatchParser(const RecordHeader& header) : first_id_(header.first_id), payload_bytes_(header.payload_bytes) {}

std::size_t BatchParser::take_field(ConstBuf bytes) {
  if (count_ != 0 && seen_ == count_) {
    error_ = "publish batch with bytes after its last message";
    return 0;
  }
  const std::uint32_t want = count_ == 0 ? 4 : kBatchItemBytes;
  const std::size_t taken = std::min<std::size_t>(want - field_bytes_, bytes.size());
  std::memcpy(field_ + field_bytes_, bytes.data(), taken);
  field_bytes_ += static_cast<std::uint32_t>(taken);
  offset_ += taken;
  if (field_bytes_ < want) return taken;
  field_bytes_ = 0;
  if (count_ == 0)
    on_count(load32(field_));
  else
    on_item();
  return taken;
}

std::size_t BatchParser::take_body(ConstBuf bytes) {
  const std::size_t taken = std::min<std::size_t>(body_left_, bytes.size());
  item_.body_crc = crc32c(bytes.first(taken), item_.body_crc);
  body_left_ -= static_cast<std::uint32_t>(taken);
  offset_ += taken;
  return taken;
}

void BatchParser::on_count(std::uint32_t count) {
  if (count == 0 || count > kBatchMessagesMax || count > (payload_bytes_ - 4) / kBatchItemBytes) {
    error_ = "publish batch with an impossible message count";
    return;
  }
  count_ = count;
}

void BatchParser::on_item() {
  item_ = {load64(field_), load64(field_ + 8), offset_, load32(field_ + 16), 0};
  if (item_.body_bytes > payload_bytes_ - offset_) {
    error_ = "publish batch with a message that reaches past its end";
    return;
  }
  if (seen_ == 0) first_position_ = item_.position;
  if (item_.position != first_position_ + seen_ || item_.position < first_position_) {
    error_ = "publish batch whose positions are not consecutive";
    return;
  }
  if (item_.id != first_id_ + seen_ || item_.id < first_id_) {
    error_ = seen_ == 0 ? "publish batch whose first message id differs from its header"
                        : "publish batch whose message ids are not consecutive";
    return;
  }
  ++seen_;
  body_left_ = item_.body_bytes;
  item_complete_ = body_left_ == 0;
}

const char* BatchParser::finish() {
  if (error_ == nullptr && offset_ < payload_bytes_) error_ = "publish batch was cut off";
  if (error_ == nullptr && (count_ == 0 || seen_ < count_ || body_left_ > 0))
    error_ = "publish batch shorter than its message count says";
  return error_;
}

}  // namespace rq::storage
