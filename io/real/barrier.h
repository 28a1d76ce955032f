// How a barrier is made durable (docs/performance.md, "Barriers"): fdatasync of each file, several at once, or one syncfs.
// syncfs wins from a handful of files up, but it writes what strangers left in the page cache, too, and kernels before 5.8 lose
// its errors; so by itself it is chosen only when the data directory is a mount of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace rq::real {

enum class BarrierStrategy : std::uint8_t { automatic, fdatasync, syncfs };  // storage.barrier

inline constexpr std::size_t kSyncfsFilesMin = 8;
inline constexpr std::uint64_t kSyncfsDirtyBytesMax = 1 << 20;  // of any one file

class SyncfsGate {
 public:
  SyncfsGate(BarrierStrategy strategy, std::string data_path) : strategy_(strategy), data_path_(std::move(data_path)) {}
  ~SyncfsGate();
  SyncfsGate(const SyncfsGate&) = delete;
  SyncfsGate& operator=(const SyncfsGate&) = delete;

  // Opens the data directory, so that errors from then on are reported by syncfs. Does nothing when it is open, missing, or when
  // syncfs is out of the question. Called before the first file below it is written.
  void arm();
  bool chosen(std::size_t files, std::uint64_t largest_dirty_bytes) const {
    return fd_ >= 0 && files >= kSyncfsFilesMin && largest_dirty_bytes <= kSyncfsDirtyBytesMax;
  }
  int fd() const { return fd_; }

 private:
  BarrierStrategy strategy_;
  std::string data_path_;
  bool decided_ = false;
  int fd_ = -1;
};

std::string kernel_release();  // "6.1.0-18-amd64"; empty when it cannot be had
bool kernel_reports_syncfs_errors(const char* release);
// Why the strategy that was asked for is not used; empty when it is.
std::string syncfs_refusal(BarrierStrategy asked, const std::string& release);

}  // namespace rq::real
