// Takes the summary of a sealed segment from its sidecar, validating every metadata entry page by page (page 20 section 4.2), and
// the checksum of the whole body, so that damage which scrub would report is repaired by the start behind it.
// Whatever is wrong, the sidecar is only a cache: the caller then scans the segment (D-40).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/storage/segment_scan.h"
#include "core/storage/sidecar.h"

namespace rq::storage {

class SidecarLoad {
 public:
  void begin(std::string path, std::uint64_t file_bytes, std::uint64_t segment_bytes, LogIndex base, SegmentVisitor* visitor);
  bool poll(DiskCall call);

  // After the end: null when the sidecar is good, otherwise what is wrong with it.
  const char* defect() const { return defect_; }
  const SegmentInfo& info() const { return info_; }

 private:
  enum class State : std::uint8_t { start, open, header, locations, metadata, page, close };
  const char* take_page(ConstBuf page);
  void next_piece(DiskCall call);
  const char* take_entry(const MessageMeta& meta);
  void read(DiskCall call, std::uint64_t at, std::uint64_t bytes);

  State state_ = State::start;
  std::string path_;
  std::uint64_t file_bytes_ = 0;
  std::uint64_t segment_bytes_ = 0;
  SegmentVisitor* visitor_ = nullptr;
  io::FileId file_ = io::FileId::none;
  std::vector<std::byte> buffer_;
  std::uint64_t want_ = 0;
  std::uint64_t at_ = 0;        // end of what was asked for
  std::uint32_t body_crc_ = 0;  // of what was read behind the header
  SidecarHeader header_;
  std::uint32_t messages_ = 0;
  std::uint64_t next_ = 0;  // ordinal of the next entry
  LogIndex last_log_index_ = 0;
  SegmentInfo info_;
  const char* defect_ = nullptr;
};

}  // namespace rq::storage
