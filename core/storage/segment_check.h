// Checks one sealed segment and its sidecar against what was recorded when it was sealed (page 20 section 8.6, page 30
// section 6.2): the segment's length, every record, the checksum of the whole file; the sidecar's length, header and body
// checksum.
//
//  I1 One call in flight, one buffer of at most 1 MiB, whatever the sizes of files and records are.
//  I2 Polled as in file_read.h. Between two polls the caller may wait as long as it likes: that is how the reading is paced.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/storage/segment_scan.h"
#include "core/storage/sidecar.h"

namespace rq::storage {

class SegmentCheck {
 public:
  // `recorded` is the summary made at sealing or taken from the sidecar when the directory was opened.
  void begin(std::string segment_path, std::string sidecar_path, const SegmentInfo& recorded);
  bool poll(DiskCall call);
  // The next polls only close what is open; the result is void.
  void give_up();

  std::uint64_t bytes_read() const { return sidecar_read_ + scan_.bytes_read(); }
  // After the end.
  std::uint64_t records() const { return scan_.info().record_count; }
  const std::optional<Fault>& fault() const { return fault_; }  // with the full path
  bool out_of_handles() const { return out_of_handles_; }       // nothing was found out: begin again a moment later

 private:
  enum class State : std::uint8_t { start, stat, scan, sidecar_stat, sidecar_open, sidecar_read, sidecar_close, end };
  bool finish();
  bool fail(const std::string& path, std::optional<std::uint64_t> offset, std::string what);
  bool failed_call(const std::string& path, const io::Error& error);
  bool take_stat(DiskCall call);
  bool take_scan(DiskCall call);
  bool take_sidecar_stat(DiskCall call);
  bool take_sidecar_piece(DiskCall call);
  void read_sidecar(DiskCall call);

  State state_ = State::start;
  std::string segment_path_, sidecar_path_;
  SegmentInfo recorded_;
  io::Stat stat_;
  SegmentScan scan_;
  SidecarHeader header_;
  io::FileId file_ = io::FileId::none;
  std::vector<std::byte> buffer_;
  std::uint64_t sidecar_read_ = 0;
  std::uint32_t body_crc_ = 0;
  bool given_up_ = false;
  bool out_of_handles_ = false;
  std::optional<Fault> fault_;
};

}  // namespace rq::storage
