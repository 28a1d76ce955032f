#include "io/real/log_writer.h"

#include <limits.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace rq::real {
namespace {
constexpr int kPollMs = 100;  // how soon a wait for the reader notices the end of the process
}

LogWriter::~LogWriter() {
  drain(kLastWait);
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  something_.notify_one();
  if (thread_.joinable()) thread_.join();
}

bool LogWriter::push(std::string_view lines) {
  {
    const std::lock_guard lock(mutex_);
    if (queue_.size() + lines.size() > queue_bytes_max_) return false;
    if (!reader_gone_) queue_ += lines;
    if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  }
  something_.notify_one();
  return true;
}

bool LogWriter::drain(std::chrono::milliseconds limit) {
  std::unique_lock lock(mutex_);
  return nothing_.wait_for(lock, limit, [this] { return queue_.empty() && !busy_; });
}

void LogWriter::run() {
  std::string lines;
  std::unique_lock lock(mutex_);
  for (;;) {
    something_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
    if (stopping_) return;
    lines.clear();
    std::swap(lines, queue_);
    busy_ = true;
    lock.unlock();
    const bool written = write_all(lines);
    lock.lock();
    busy_ = false;
    reader_gone_ = reader_gone_ || !written;
    if (reader_gone_) queue_.clear();
    nothing_.notify_all();
  }
}

// A pipe that poll() calls writable takes PIPE_BUF bytes without waiting, so the thread never hangs in write().
bool LogWriter::write_all(std::string_view text) {
  while (!text.empty()) {
    pollfd ready{fd_, POLLOUT, 0};
    if (::poll(&ready, 1, kPollMs) == 0) {
      const std::lock_guard lock(mutex_);
      if (stopping_) return true;
      continue;
    }
    const ssize_t written = ::write(fd_, text.data(), std::min<std::size_t>(text.size(), PIPE_BUF));
    if (written < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (written <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

}  // namespace rq::real
