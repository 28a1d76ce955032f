#include "io/real/file_calls.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>

#include "io/real/crash_points.h"
#include "io/real/errors.h"

namespace rq::real {
namespace {

constexpr std::uint64_t kStepBytes = 1 << 20;  // larger writes are made in such steps, each with early write-back
constexpr std::size_t kVectorMax = 256;        // pieces of one writev; below IOV_MAX
static_assert(kVectorMax <= IOV_MAX);

template <class Call>
ssize_t retried(Call call) {
  ssize_t result = 0;
  do result = call();
  while (result < 0 && errno == EINTR);
  return result;
}

// Starts write-back and does not wait; its result says nothing about durability.
void start_write_back(int fd, std::uint64_t from, std::uint64_t end) {
  (void)::sync_file_range(fd, static_cast<off_t>(from), static_cast<off_t>(end - from), SYNC_FILE_RANGE_WRITE);
}

// Writes a run of append calls as if it were one, and gives each its own result.
class AppendRun {
 public:
  AppendRun(FileHandle& file, FileCall* first, FileCall* end) : file_(file), call_(first), end_(end) {
    for (FileCall* call = first; call != end; call = call->next) total_ += call->bytes;
  }

  void execute() {
    if (!file_.fault) write_all();
    for (; call_ != end_; call_ = call_->next) {
      call_->error = file_.fault;
      call_->value = taken_;
      taken_ = 0;
    }
  }

 private:
  void write_all() {
    const bool stepped = total_ > kStepBytes;
    std::uint64_t step_start = file_.end;
    skip_empty();
    while (call_ != end_) {
      const std::uint64_t room = stepped ? kStepBytes - (file_.end - step_start) : total_;
      const ssize_t written = write_some(room);
      if (written <= 0) {
        // writev of something never takes nothing on a regular file; treat it as a full device
        file_.fault = error_from(written < 0 ? errno : ENOSPC, "append");
        file_.torn = true;
        return;
      }
      file_.end += static_cast<std::uint64_t>(written);
      advance(static_cast<std::uint64_t>(written));
      if (stepped && file_.end - step_start >= kStepBytes) {
        start_write_back(file_.fd, step_start, file_.end);
        step_start = file_.end;
      }
    }
  }

  ssize_t write_some(std::uint64_t room) {
    iovec vector[kVectorMax];
    std::size_t count = 0;
    std::uint64_t skip = piece_taken_;
    std::size_t piece = piece_;
    for (FileCall* call = call_; call != end_ && count < kVectorMax && room > 0; call = call->next, piece = 0) {
      for (; piece < call->pieces.size() && count < kVectorMax && room > 0; ++piece) {
        const ConstBuf bytes = call->pieces[piece].subspan(static_cast<std::size_t>(skip));
        skip = 0;
        if (bytes.empty()) continue;
        const std::uint64_t length = std::min<std::uint64_t>(bytes.size(), room);
        vector[count++] = {const_cast<std::byte*>(bytes.data()), static_cast<std::size_t>(length)};
        room -= length;
      }
    }
    return retried([&] { return ::writev(file_.fd, vector, static_cast<int>(count)); });
  }

  void advance(std::uint64_t written) {
    while (written > 0) {
      const std::uint64_t left = call_->pieces[piece_].size() - piece_taken_;
      const std::uint64_t step = std::min(left, written);
      written -= step;
      taken_ += step;
      piece_taken_ += step;
      if (piece_taken_ == call_->pieces[piece_].size()) {
        piece_taken_ = 0;
        ++piece_;
        skip_empty();
      }
    }
  }

  // Moves to the next byte to write, finishing calls on the way.
  void skip_empty() {
    while (call_ != end_) {
      while (piece_ < call_->pieces.size() && call_->pieces[piece_].empty()) ++piece_;
      if (piece_ < call_->pieces.size()) return;
      call_->value = call_->bytes;
      call_ = call_->next;
      piece_ = 0;
      taken_ = 0;
    }
  }

  FileHandle& file_;
  FileCall* call_;  // the one being written
  FileCall* end_;
  std::uint64_t total_ = 0;
  std::uint64_t taken_ = 0;        // bytes of *call_ written
  std::size_t piece_ = 0;          // the piece being written
  std::uint64_t piece_taken_ = 0;  // bytes of it written
};

void execute_read(FileHandle& file, FileCall& call) {
  while (call.value < call.into.size()) {
    const MutBuf rest = call.into.subspan(static_cast<std::size_t>(call.value));
    const ssize_t got =
        retried([&] { return ::pread(file.fd, rest.data(), rest.size(), static_cast<off_t>(call.at + call.value)); });
    if (got < 0) {
      call.error = error_from(errno, "read");
      return;
    }
    if (got == 0) break;
    call.value += static_cast<std::uint64_t>(got);
  }
  if (call.value == 0 && !call.into.empty()) call.error = {io::Errc::eof, 0, "read"};
}

void execute_rewrite(FileHandle& file, FileCall& call) {
  ConstBuf rest = call.pieces.front();
  while (!rest.empty()) {
    const ssize_t written =
        retried([&] { return ::pwrite(file.fd, rest.data(), rest.size(), static_cast<off_t>(call.at + call.value)); });
    if (written <= 0) {
      call.error = error_from(written < 0 ? errno : ENOSPC, "rewrite");
      file.fault = call.error;
      return;
    }
    call.value += static_cast<std::uint64_t>(written);
    rest = rest.subspan(static_cast<std::size_t>(written));
  }
  file.end = std::max(file.end, call.at + call.value);
  if (call.value >= kStepBytes) start_write_back(file.fd, call.at, call.at + call.value);
}

void execute_truncate(FileHandle& file, FileCall& call) {
  if (retried([&] { return ::ftruncate(file.fd, static_cast<off_t>(call.at)); }) != 0) {
    call.error = error_from(errno, "truncate");
    return;
  }
  file.end = call.at;
  if (file.torn) {
    file.torn = false;
    file.fault = {};
  }
}

// Blocks behind the end of the file; cutting the file at its own length gives them back.
void execute_reserve(FileHandle& file, FileCall& call) {
  ssize_t result = 0;
  if (call.at == 0) {
    result = retried([&] { return ::ftruncate(file.fd, static_cast<off_t>(file.end)); });
  } else {
    result = retried(
        [&] { return ::fallocate(file.fd, FALLOC_FL_KEEP_SIZE, static_cast<off_t>(file.end), static_cast<off_t>(call.at)); });
  }
  if (result == 0) {
    call.value = call.at;
    return;
  }
  if (errno == EOPNOTSUPP) return;  // a file system that cannot: 0 bytes are reserved
  call.error = error_from(errno, "reserve");
}

void execute_sync(FileHandle& file, FileCall& call) {
  if (!file.fault && call.sync_here) {
    const bool full = call.how == io::Durability::full;
    if (retried([&] { return full ? ::fsync(file.fd) : ::fdatasync(file.fd); }) != 0) {
      file.fault = error_from(errno, full ? "fsync" : "fdatasync");
      file.torn = false;
    }
  }
  call.error = file.fault;
}

}  // namespace

void execute_calls(FileHandle& file, FileCall* calls) noexcept {
  while (calls != nullptr) {
    FileCall& call = *calls;
    calls = call.next;
    switch (call.kind) {
      case CallKind::append: {
        while (calls != nullptr && calls->kind == CallKind::append) calls = calls->next;
        AppendRun(file, &call, calls).execute();
        RQ_CRASH_FILE("append", file.fd);
        break;
      }
      case CallKind::read:
        execute_read(file, call);
        break;
      case CallKind::rewrite:
        execute_rewrite(file, call);
        break;
      case CallKind::truncate:
        execute_truncate(file, call);
        break;
      case CallKind::reserve:
        execute_reserve(file, call);
        break;
      case CallKind::sync:
        execute_sync(file, call);
        RQ_CRASH_FILE("synced", file.fd);
        RQ_CRASH_FILE("checkpoint", file.fd);
        break;
      case CallKind::close:
        ::close(file.fd);  // whatever it says, the descriptor is gone; what had to be durable went through a barrier
        file.fd = -1;
        break;
    }
  }
}

}  // namespace rq::real
