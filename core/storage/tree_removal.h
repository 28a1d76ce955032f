// Removes a directory with everything in it: subdirectories first, then its files with `manifest` as the last one, then itself,
// so that an interrupted removal is recognised and finished by the next opening (page 20 section 1.3).
#pragma once

#include <string>
#include <vector>

#include "core/storage/file_read.h"

namespace rq::storage {

class TreeRemoval {
 public:
  void begin(std::string dir);
  bool poll(DiskCall call);

  const io::Error& error() const { return error_; }
  const std::string& error_path() const { return error_path_; }

 private:
  enum class State : std::uint8_t { start, list, remove };
  struct Level {
    std::string path;
    std::vector<io::DirEntry> entries;
    std::size_t next = 0;
    bool synced = false;  // what was removed before its manifest is durable
  };
  bool submit(DiskCall call);
  bool open(DiskCall call, std::string path);

  State state_ = State::start;
  std::vector<Level> levels_;
  std::string path_;
  io::Error error_;
  std::string error_path_;
};

}  // namespace rq::storage
