#include "core/storage/sidecar.h"

#include "core/base/check.h"
#include "core/base/crc32c.h"

namespace rq::storage {
namespace {

constexpr std::string_view kMagic = "RQI7";
constexpr std::string_view kMetadataMagic = "RQTM";
constexpr std::uint32_t kVersion = 2;
constexpr std::uint32_t kHeaderCrcOffset = 56;
constexpr std::uint32_t kEntryCrcOffset = 56;

}  // namespace

void SidecarBuilder::add_record(const RecordIndex& record) {
  if (locations_.empty()) first_index_ = record.index;
  last_index_ = record.index;
  put64(locations_, record.index);
  put64(locations_, record.offset);
  put64(locations_, record.encoded_bytes);
}

void SidecarBuilder::add_message(const MessageMeta& message) {
  if (entries_.empty()) entries_.assign(kMetadataHeaderBytes, '\0');
  const std::size_t start = entries_.size();
  put64(entries_, message.position);
  put64(entries_, message.id);
  put64(entries_, static_cast<std::uint64_t>(message.timestamp_ns));
  put64(entries_, static_cast<std::uint64_t>(message.available_at_ms));
  put64(entries_, message.log_index);
  put64(entries_, message.body_offset);
  put32(entries_, message.body_bytes);
  put32(entries_, message.body_crc);
  put32(entries_, crc32c(bytes_of(std::string_view(entries_).substr(start))));
}

std::array<ConstBuf, 3> SidecarBuilder::finish(std::uint64_t segment_bytes, std::uint32_t segment_crc) {
  RQ_CHECK(head_.empty());
  if (entries_.empty()) entries_.assign(kMetadataHeaderBytes, '\0');
  const auto messages = static_cast<std::uint32_t>((entries_.size() - kMetadataHeaderBytes) / kMetadataEntryBytes);
  auto* metadata = reinterpret_cast<std::byte*>(entries_.data());
  std::memcpy(metadata, kMetadataMagic.data(), kMetadataMagic.size());
  store32(metadata + 4, kVersion);
  store32(metadata + 8, messages);
  head_.append(kMagic);
  put8(head_, kVersion);
  head_.append(3, '\0');
  put64(head_, segment_bytes);
  put32(head_, segment_crc);
  put32(head_, static_cast<std::uint32_t>(locations_.size() / kLocationBytes));
  put32(head_, static_cast<std::uint32_t>(entries_.size()));
  put32(head_, crc32c(bytes_of(entries_), crc32c(bytes_of(locations_))));
  put64(head_, first_index_);
  put64(head_, last_index_);
  put64(head_, locations_.size() + entries_.size());
  put32(head_, crc32c(bytes_of(head_)));
  put32(head_, 0);
  return {bytes_of(head_), bytes_of(locations_), bytes_of(entries_)};
}

std::string encode_sidecar(const ActiveSegment& segment) {
  SidecarBuilder builder;
  for (const RecordIndex& record : segment.records) builder.add_record(record);
  for (const MessageMeta& message : segment.messages) builder.add_message(message);
  std::string out;
  for (const ConstBuf piece : builder.finish(segment.info.bytes, segment.info.crc)) put_bytes(out, piece);
  return out;
}

const char* decode_sidecar_header(ConstBuf head, std::uint64_t file_bytes, std::uint64_t segment_bytes, SidecarHeader& out) {
  if (file_bytes < kSidecarHeaderBytes || file_bytes > kSidecarBytesMax || head.size() < kSidecarHeaderBytes) return "size";
  const std::byte* at = head.data();
  if (text_of(head.first(4)) != kMagic || static_cast<std::uint32_t>(at[4]) != kVersion) return "magic or version";
  if (crc32c(head.first(kHeaderCrcOffset)) != load32(at + kHeaderCrcOffset)) return "header checksum";
  out.segment_bytes = load64(at + 8);
  out.segment_crc = load32(at + 16);
  out.location_count = load32(at + 20);
  out.metadata_bytes = load32(at + 24);
  out.body_crc = load32(at + 28);
  out.first_index = load64(at + 32);
  out.last_index = load64(at + 40);
  if (out.file_bytes() != file_bytes || load64(at + 48) != file_bytes - kSidecarHeaderBytes) return "length fields";
  if (out.location_count == 0) {
    if (out.first_index != 0 || out.last_index != 0) return "record indexes";
  } else if (out.last_index < out.first_index || out.last_index - out.first_index != out.location_count - 1) {
    return "record indexes";
  }
  if (out.segment_bytes != segment_bytes) return "segment length";
  return nullptr;
}

const char* decode_metadata_header(ConstBuf bytes, const SidecarHeader& header, std::uint32_t& message_count) {
  if (bytes.size() < kMetadataHeaderBytes) return "metadata size";
  if (text_of(bytes.first(4)) != kMetadataMagic || load32(bytes.data() + 4) != kVersion) return "metadata magic or version";
  message_count = load32(bytes.data() + 8);
  if (message_count == 0) return "metadata without messages";
  if (header.metadata_bytes != kMetadataHeaderBytes + std::uint64_t{kMetadataEntryBytes} * message_count)
    return "metadata length";
  return nullptr;
}

const char* decode_metadata_entry(ConstBuf bytes, std::uint64_t segment_bytes, MessageMeta& out) {
  if (bytes.size() < kMetadataEntryBytes) return "metadata size";
  const std::byte* at = bytes.data();
  if (crc32c(bytes.first(kEntryCrcOffset)) != load32(at + kEntryCrcOffset)) return "metadata entry checksum";
  out.position = load64(at);
  out.id = load64(at + 8);
  out.timestamp_ns = static_cast<std::int64_t>(load64(at + 16));
  out.available_at_ms = static_cast<std::int64_t>(load64(at + 24));
  out.log_index = load64(at + 32);
  out.body_offset = load64(at + 40);
  out.body_bytes = load32(at + 48);
  out.body_crc = load32(at + 52);
  if (out.position == 0 || out.id == 0 || out.body_bytes == 0) return "metadata entry with a zero field";
  if (out.body_offset > segment_bytes || out.body_bytes > segment_bytes - out.body_offset)
    return "metadata entry outside the segment";
  return nullptr;
}

const char* decode_location(ConstBuf bytes, const SidecarHeader& header, std::uint32_t ordinal, RecordIndex& out) {
  if (bytes.size() < kLocationBytes || ordinal >= header.location_count) return "location size";
  out = {load64(bytes.data()), load64(bytes.data() + 8), load64(bytes.data() + 16)};
  if (out.index != header.first_index + ordinal || out.encoded_bytes == 0) return "location";
  if (out.offset > header.segment_bytes || out.encoded_bytes > header.segment_bytes - out.offset)
    return "location outside the segment";
  return nullptr;
}

}  // namespace rq::storage
