#include "io/real/log_writer.h"

#include <limits.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "io/real/thread.h"

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
    if (!thread_.joinable()) thread_ = start_thread("rq-log", [this] { run(); });
  }
  something_.notify_one();
  return true;
}

bool LogWriter::drain(std::chrono::milliseconds limit) {
  std::unique_lock lock(mutex_);
  return nothing_.wait_for(lock, limit, [this] { return queue_.empty() && !busy_; });
}

std::uint64_t LogWriter::lost() {
  const std::lock_guard lock(mutex_);
  return lost_;
}

void LogWriter::run() {
  std::string lines;
  bool torn = false;  // the last thing written is a piece of a line
  std::unique_lock lock(mutex_);
  for (;;) {
    something_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
    if (stopping_) return;
    lines = torn ? "\n" : "";
    lines += queue_;
    queue_.clear();
    busy_ = true;
    lock.unlock();
    std::string_view left = lines;
    const Written written = write_all(left);
    if (left.size() < lines.size()) torn = lines[lines.size() - left.size() - 1] != '\n';
    lock.lock();
    busy_ = false;
    if (written == Written::failed) lost_ += static_cast<std::uint64_t>(std::count(left.begin(), left.end(), '\n'));
    reader_gone_ = reader_gone_ || written == Written::reader_gone;
    if (reader_gone_) queue_.clear();
    nothing_.notify_all();
  }
}

// A pipe that poll() calls writable takes PIPE_BUF bytes without waiting, so the thread never hangs in write().
LogWriter::Written LogWriter::write_all(std::string_view& text) {
  while (!text.empty()) {
    pollfd ready{fd_, POLLOUT, 0};
    if (::poll(&ready, 1, kPollMs) == 0) {
      const std::lock_guard lock(mutex_);
      if (stopping_) return Written::failed;
      continue;
    }
    const ssize_t written = ::write(fd_, text.data(), std::min<std::size_t>(text.size(), PIPE_BUF));
    if (written < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (written < 0 && errno == EPIPE) return Written::reader_gone;
    if (written <= 0) return Written::failed;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return Written::all;
}

}  // namespace rq::real
