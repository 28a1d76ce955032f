// Steps for machines that read the disk one call at a time. A step is polled: the first poll starts it, every later one follows
// the completion of the call that it submitted; true means finished, and then nothing is in flight.
#pragma once

#include <cstdint>
#include <string>

#include "core/io/ports.h"

namespace rq::storage {

// The machine's port and its only Op.
struct DiskCall {
  io::Disk& disk;
  io::Op& op;
};

// Reads a small file as a whole, or its first bytes.
class FileRead {
 public:
  enum class Result : std::uint8_t { ok, missing, too_large, failed };

  // With `prefix`, a longer file is cut to `bytes_max` instead of being too large.
  void begin(std::string path, std::uint64_t bytes_max, bool prefix = false);
  bool poll(DiskCall call);

  Result result() const { return result_; }
  std::string& content() { return content_; }
  std::uint64_t file_bytes() const { return stat_.bytes; }
  const io::Error& error() const { return error_; }

 private:
  enum class State : std::uint8_t { start, stat, open, read, close };
  bool finish(Result result);

  State state_ = State::start;
  Result result_ = Result::ok;
  std::string path_;
  std::uint64_t bytes_max_ = 0;
  bool prefix_ = false;
  io::Stat stat_;
  io::FileId file_ = io::FileId::none;
  std::string content_;
  io::Error error_;
};

}  // namespace rq::storage
