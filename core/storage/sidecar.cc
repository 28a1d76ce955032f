#include "core/storage/sidecar.h"

#include <array>

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

SidecarPieces::SidecarPieces(std::uint64_t records, std::uint64_t messages) {
  RQ_CHECK(sidecar_bytes(records, messages) <= kSidecarBytesMax);
  header_.location_count = static_cast<std::uint32_t>(records);
  header_.metadata_bytes = static_cast<std::uint32_t>(kMetadataHeaderBytes + kMetadataEntryBytes * messages);
  locations_at_ = kSidecarHeaderBytes;
  entries_at_ = header_.metadata_offset();
  entries_.append(kMetadataMagic);
  put32(entries_, kVersion);
  put32(entries_, static_cast<std::uint32_t>(messages));
}

void SidecarPieces::add_record(const RecordIndex& record) {
  if (header_.first_index == 0) header_.first_index = record.index;
  header_.last_index = record.index;
  std::array<std::byte, kLocationBytes> location;
  store64(location.data(), record.index);
  store64(location.data() + 8, record.offset);
  store64(location.data() + 16, record.encoded_bytes);
  locations_.append(text_of(location));
}

void SidecarPieces::add_message(const MessageMeta& message) {
  std::array<std::byte, kMetadataEntryBytes> entry;  // a rotation waits for a million of them: no growing field by field
  std::byte* const at = entry.data();
  store64(at, message.position);
  store64(at + 8, message.id);
  store64(at + 16, static_cast<std::uint64_t>(message.timestamp_ns));
  store64(at + 24, static_cast<std::uint64_t>(message.available_at_ms));
  store64(at + 32, message.log_index);
  store64(at + 40, message.body_offset);
  store32(at + 48, message.body_bytes);
  store32(at + 52, message.body_crc);
  store32(at + kEntryCrcOffset, crc32c(ConstBuf(entry).first(kEntryCrcOffset)));
  entries_.append(text_of(entry));
}

bool SidecarPieces::take(std::uint64_t& at, std::string& piece) {
  const bool location = !locations_.empty();
  std::string& region = location ? locations_ : entries_;
  if (region.empty()) return false;
  std::uint64_t& region_at = location ? locations_at_ : entries_at_;
  std::uint32_t& crc = location ? locations_crc_ : entries_crc_;
  crc = crc32c(bytes_of(region), crc);
  at = region_at;
  region_at += region.size();
  piece.swap(region);
  region.clear();
  return true;
}

std::string SidecarPieces::header(std::uint64_t segment_bytes, std::uint32_t segment_crc) {
  RQ_CHECK(locations_at_ == header_.metadata_offset() && entries_at_ == header_.file_bytes());
  std::string out(kMagic);
  put8(out, kVersion);
  out.append(3, '\0');
  put64(out, segment_bytes);
  put32(out, segment_crc);
  put32(out, header_.location_count);
  put32(out, header_.metadata_bytes);
  put32(out, crc32c_combine(locations_crc_, entries_crc_, header_.metadata_bytes));
  put64(out, header_.first_index);
  put64(out, header_.last_index);
  put64(out, header_.file_bytes() - kSidecarHeaderBytes);
  put32(out, crc32c(bytes_of(out)));
  put32(out, 0);
  return out;
}

std::string encode_sidecar(const ActiveSegment& segment) {
  SidecarPieces pieces(segment.records.size(), segment.messages.size());
  for (const RecordIndex& record : segment.records) pieces.add_record(record);
  for (const MessageMeta& message : segment.messages) pieces.add_message(message);
  std::string out(sidecar_bytes(segment.records.size(), segment.messages.size()), '\0');
  std::uint64_t at = 0;
  for (std::string piece; pieces.take(at, piece);) out.replace(at, piece.size(), piece);
  return out.replace(0, kSidecarHeaderBytes, pieces.header(segment.info.bytes, segment.info.crc));
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
