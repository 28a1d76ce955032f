// Makes the ends of logs durable before anything in them counts (D-41): cuts torn tails, and after an unclean stop writes the
// last bytes again in place, since a failed fsync may have left clean pages that never reached the disk. One barrier covers all
// files, or one for each batch when there are more than may be open.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "core/storage/file_read.h"
#include "core/storage/types.h"

namespace rq::storage {

inline constexpr std::uint64_t kTailBytes = 16 << 20;
inline constexpr std::size_t kTailBatchFiles = 128;

struct LogTail {
  std::string path;
  std::uint64_t bytes = 0;         // its length, once cut
  bool cut = false;                // the file is longer
  std::uint64_t rewrite_from = 0;  // bytes from here on are written again; `bytes` for none
  std::string added;               // goes behind the last byte
};

class TailSync {
 public:
  // Takes tails from a list that several of them share.
  TailSync(std::deque<LogTail>& tails, std::size_t& next) : tails_(tails), next_(next) {}
  bool poll(DiskCall call);
  const std::optional<Fault>& fault() const { return fault_; }  // with the full path
  // It ended because there was no file handle for a first file, which went back to the end of the list: others hold them all.
  const std::optional<Fault>& starved() const { return starved_; }

 private:
  enum class State : std::uint8_t { idle, open, cut, read, rewrite, add, barrier, close };
  bool open_next(DiskCall call);
  bool go_on(DiskCall call);
  bool flush(DiskCall call);
  bool close_one(DiskCall call);
  void fail(const io::Error& error);

  std::deque<LogTail>& tails_;
  std::size_t& next_;
  const LogTail* tail_ = nullptr;
  State state_ = State::idle;
  std::uint64_t at_ = 0;
  std::vector<std::byte> buffer_;
  std::uint64_t piece_ = 0;
  std::vector<io::BarrierFile> files_;
  std::string batch_path_;  // its first file, which a failed barrier names
  std::optional<Fault> fault_, starved_;
};

}  // namespace rq::storage
