// Copies a file's end into another file, makes that durable, piece by piece. The source is not changed. What the disk does not
// give back is skipped block by block and stands as zeros in the copy.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/storage/file_read.h"
#include "core/storage/types.h"

namespace rq::storage {

class FileCopy {
 public:
  // Bytes from `at` to the end of `from`; `to` is created or overwritten.
  void begin(std::string from, std::uint64_t at, std::string to);
  bool poll(DiskCall call);
  // After the end.
  const std::optional<Fault>& fault() const { return fault_; }
  std::uint64_t unreadable_bytes() const { return unreadable_; }

 private:
  enum class State : std::uint8_t { start, stat, open_from, open_to, read, append, barrier, close_to, close_from };
  bool fail(DiskCall call, const std::string& path, const io::Error& error);
  bool end(DiskCall call);
  bool read(DiskCall call);
  bool append(DiskCall call);
  bool take_read(DiskCall call, const io::Error& error);

  State state_ = State::start;
  std::string from_path_, to_path_;
  std::uint64_t at_ = 0;
  io::Stat stat_;
  std::uint64_t piece_bytes_ = 0, unreadable_ = 0;
  io::FileId from_ = io::FileId::none, to_ = io::FileId::none;
  std::vector<std::byte> buffer_;
  std::uint64_t got_ = 0;
  std::optional<Fault> fault_;
};

}  // namespace rq::storage
