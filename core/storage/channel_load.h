// Reads one Channel from its checkpoint and WAL (page 20 sections 6.4 and 8.4 step 1).
#pragma once

#include <optional>
#include <string>

#include "core/storage/file_read.h"
#include "core/storage/image.h"
#include "core/storage/paths.h"

namespace rq::storage {

struct ChannelFound {
  ChannelImage image;      // after replay, before gaps are applied
  bool ephemeral = false;  // both files are to be deleted
  bool wal_missing = false;
  bool wal_torn = false;  // the WAL is longer than image.wal_bytes and is to be cut there
};

class ChannelLoad {
 public:
  // `stem` is the file name without its suffix; `dir` the Topic's channels directory.
  void begin(std::string dir, std::string stem);
  bool poll(DiskCall call);

  // After the end.
  ChannelFound& found() { return found_; }
  const std::optional<Fault>& fault() const { return fault_; }  // with the full path
  bool unreadable() const { return unreadable_; }               // the fault is the disk's: nothing is known of the content

 private:
  enum class State : std::uint8_t { start, checkpoint, wal };
  bool fail(const std::string& path, std::optional<std::uint64_t> offset, std::string what);
  bool take_checkpoint();
  bool replay();

  State state_ = State::start;
  std::string stem_;
  std::string checkpoint_path_;
  std::string wal_path_;
  FileRead file_;
  ChannelFound found_;
  std::optional<Fault> fault_;
  bool unreadable_ = false;
};

}  // namespace rq::storage
