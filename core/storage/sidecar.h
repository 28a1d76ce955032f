// The sidecar of a sealed segment (page 20 section 4): a cache that can always be rebuilt from the segment.
//
//   header   | 0 magic "RQI7" | 4 version 2 | 5 zero | 8 segment length u64 | 16 segment CRC u32 | 20 location count u32
//            | 24 metadata length u32 | 28 body CRC u32 (bytes 64 to the end) | 32 first record index u64 | 40 last u64
//            | 48 body length u64 | 56 header CRC u32 (bytes 0..55) | 60 zero | 64 |
//   location | 0 record index u64 | 8 offset u64 | 16 encoded length u64 | 24 |                       once per record
//   metadata | 0 magic "RQTM" | 4 version u32 2 | 8 message count u32 | 12 |
//   entry    | 0 position u64 | 8 id u64 | 16 timestamp ns i64 | 24 available-at ms i64 | 32 record index u64
//            | 40 body offset u64 | 48 body length u32 | 52 body CRC u32 | 56 CRC of bytes 0..55 u32 | 60 |   once per message
#pragma once

#include <cstdint>
#include <string>

#include "core/base/bytes.h"
#include "core/storage/image.h"
#include "core/storage/types.h"

namespace rq::storage {

inline constexpr std::uint32_t kSidecarHeaderBytes = 64;
inline constexpr std::uint32_t kLocationBytes = 24;
inline constexpr std::uint32_t kMetadataHeaderBytes = 12;
inline constexpr std::uint32_t kMetadataEntryBytes = 60;

struct SidecarHeader {
  std::uint64_t segment_bytes = 0;
  std::uint32_t segment_crc = 0;
  std::uint32_t location_count = 0;
  std::uint32_t metadata_bytes = 0;
  std::uint32_t body_crc = 0;
  LogIndex first_index = 0;
  LogIndex last_index = 0;

  std::uint64_t metadata_offset() const { return kSidecarHeaderBytes + std::uint64_t{kLocationBytes} * location_count; }
  std::uint64_t entry_offset(std::uint64_t ordinal) const {
    return metadata_offset() + kMetadataHeaderBytes + std::uint64_t{kMetadataEntryBytes} * ordinal;
  }
  std::uint64_t file_bytes() const { return metadata_offset() + metadata_bytes; }
};

inline constexpr std::uint64_t sidecar_bytes(std::uint64_t records, std::uint64_t messages) {
  return kSidecarHeaderBytes + kLocationBytes * records + kMetadataHeaderBytes + kMetadataEntryBytes * messages;
}

// Makes a sidecar piece by piece, for a segment whose counts are known before: locations and entries are two regions that grow
// side by side, the header comes last.
class SidecarPieces {
 public:
  // Enough for a back end to begin with write-back, so that little is left for the barrier at the end.
  static constexpr std::uint64_t kPieceBytes = 1 << 20;

  SidecarPieces(std::uint64_t records, std::uint64_t messages);
  void add_record(const RecordIndex& record);
  void add_message(const MessageMeta& message);
  std::uint64_t pending_bytes() const { return locations_.size() + entries_.size(); }
  // Takes what was added to one of the regions, and where in the file it stands. False: nothing is pending.
  bool take(std::uint64_t& at, std::string& piece);
  // The first 64 bytes, when all was added and taken.
  std::string header(std::uint64_t segment_bytes, std::uint32_t segment_crc);

 private:
  SidecarHeader header_;
  std::string locations_, entries_;  // added, not taken
  std::uint64_t locations_at_, entries_at_;
  std::uint32_t locations_crc_ = 0, entries_crc_ = 0;
};

// The whole file.
std::string encode_sidecar(const ActiveSegment& segment);

// `head` holds the first 64 bytes. Null when the header is acceptable for a segment of that length, otherwise what is wrong.
const char* decode_sidecar_header(ConstBuf head, std::uint64_t file_bytes, std::uint64_t segment_bytes, SidecarHeader& out);
// 12 bytes; sets the message count. Null when acceptable.
const char* decode_metadata_header(ConstBuf bytes, const SidecarHeader& header, std::uint32_t& message_count);
// 60 bytes; checks the entry by itself (checksum, non-zero fields, body inside the segment). Null when acceptable.
const char* decode_metadata_entry(ConstBuf bytes, std::uint64_t segment_bytes, MessageMeta& out);
// 24 bytes; ordinal counts from 0. Null when acceptable.
const char* decode_location(ConstBuf bytes, const SidecarHeader& header, std::uint32_t ordinal, RecordIndex& out);

}  // namespace rq::storage
