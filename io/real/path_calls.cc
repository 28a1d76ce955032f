#include "io/real/path_calls.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>

#include "io/real/crash_points.h"
#include "io/real/errors.h"

namespace rq::real {
namespace {

constexpr int kFlags = O_CLOEXEC | O_NOCTTY | O_NONBLOCK;  // a FIFO in the data directory must not hang the open

int flags_of(io::OpenMode mode) {
  switch (mode) {
    case io::OpenMode::read:
      return O_RDONLY;
    case io::OpenMode::append:
      return O_WRONLY | O_APPEND | O_CREAT;
    case io::OpenMode::append_new:
      return O_WRONLY | O_APPEND | O_CREAT | O_EXCL;
    case io::OpenMode::rewrite:
      return O_RDWR;
    case io::OpenMode::create:
      return O_WRONLY | O_APPEND | O_CREAT | O_TRUNC;
  }
  return O_RDONLY;
}

int open_retried(const char* path, int flags) {
  int fd = 0;
  do fd = ::open(path, flags | kFlags, 0666);  // the rest is the umask's
  while (fd < 0 && errno == EINTR);
  return fd;
}

io::FileKind kind_of(mode_t mode) {
  if (S_ISREG(mode)) return io::FileKind::file;
  if (S_ISDIR(mode)) return io::FileKind::directory;
  if (S_ISLNK(mode)) return io::FileKind::symlink;
  return io::FileKind::other;
}

void open_file(PathCall& call, int flags) {
  const int fd = open_retried(call.path.c_str(), flags);
  struct stat facts {};
  if (fd < 0 || ::fstat(fd, &facts) != 0) {
    call.error = error_from(errno, "open");
  } else if (S_ISDIR(facts.st_mode)) {
    call.error = error_from(EISDIR, "open");
  } else if (call.kind == PathKind::lock && ::flock(fd, (call.mode == io::OpenMode::read ? LOCK_SH : LOCK_EX) | LOCK_NB) != 0) {
    call.error = error_from(errno, "lock");
    if (call.error.os == EWOULDBLOCK) call.error.code = io::Errc::locked;
  }
  if (!call.error) {
    call.opened.fd = fd;
    call.opened.end = static_cast<std::uint64_t>(facts.st_size);
    return;
  }
  if (fd >= 0) ::close(fd);
}

void stat_path(PathCall& call) {
  struct stat facts {};
  const int result = call.follow ? ::stat(call.path.c_str(), &facts) : ::lstat(call.path.c_str(), &facts);
  if (result != 0) {
    call.error = error_from(errno, "stat");
    return;
  }
  call.stat->kind = kind_of(facts.st_mode);
  call.stat->bytes = call.stat->kind == io::FileKind::file ? static_cast<std::uint64_t>(facts.st_size) : 0;
}

void list_directory(PathCall& call) {
  call.entries->clear();
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir(call.path.c_str()), &::closedir);
  if (!directory) {
    call.error = error_from(errno, "list");
    return;
  }
  for (;;) {
    errno = 0;
    const dirent* entry = ::readdir(directory.get());
    if (entry == nullptr) break;
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    struct stat facts {};
    if (::fstatat(::dirfd(directory.get()), entry->d_name, &facts, AT_SYMLINK_NOFOLLOW) != 0) {
      if (errno == ENOENT) continue;  // unlinked meanwhile
      break;
    }
    const io::FileKind kind = kind_of(facts.st_mode);
    call.entries->push_back(
        {std::string(name), kind, kind == io::FileKind::file ? static_cast<std::uint64_t>(facts.st_size) : 0});
  }
  if (errno != 0) {
    call.error = error_from(errno, "list");
    call.entries->clear();
    return;
  }
  std::sort(call.entries->begin(), call.entries->end(),
            [](const io::DirEntry& a, const io::DirEntry& b) { return a.name < b.name; });
}

void sync_directory(PathCall& call) {
  const int fd = open_retried(call.path.c_str(), O_RDONLY | O_DIRECTORY);
  if (fd < 0) {
    call.error = error_from(errno, "sync_dir");
    return;
  }
  int result = 0;
  do result = ::fsync(fd);
  while (result != 0 && errno == EINTR);
  if (result != 0) call.error = error_from(errno, "sync_dir");
  ::close(fd);
}

void make_directory(PathCall& call) {
  if (::mkdir(call.path.c_str(), 0777) == 0) return;
  const int os = errno;
  struct stat facts {};
  if (os == EEXIST && ::stat(call.path.c_str(), &facts) == 0 && S_ISDIR(facts.st_mode)) return;
  call.error = error_from(os, "make_dir");
}

void measure_usage(PathCall& call) {
  struct statvfs facts {};
  if (::statvfs(call.path.c_str(), &facts) != 0) {
    call.error = error_from(errno, "usage");
    return;
  }
  call.usage->total = std::uint64_t{facts.f_frsize} * facts.f_blocks;
  call.usage->available = std::uint64_t{facts.f_frsize} * facts.f_bavail;
}

}  // namespace

void execute_path(PathCall& call) noexcept {
  switch (call.kind) {
    case PathKind::open:
      return open_file(call, flags_of(call.mode));
    case PathKind::lock:
      return open_file(call, call.mode == io::OpenMode::read ? O_RDONLY : O_RDWR | O_CREAT);
    case PathKind::rename:
      if (::rename(call.path.c_str(), call.to.c_str()) != 0) call.error = error_from(errno, "rename");
      return;
    case PathKind::unlink:
      RQ_CRASH_PATH("collect", call.path.c_str());
      if (::unlink(call.path.c_str()) != 0) call.error = error_from(errno, "unlink");
      RQ_CRASH_PATH("collected", call.path.c_str());
      return;
    case PathKind::make_dir:
      return make_directory(call);
    case PathKind::remove_dir:
      if (::rmdir(call.path.c_str()) != 0) call.error = error_from(errno, "remove_dir");
      return;
    case PathKind::stat:
      return stat_path(call);
    case PathKind::list:
      return list_directory(call);
    case PathKind::sync_dir:
      return sync_directory(call);
    case PathKind::usage:
      return measure_usage(call);
  }
}

}  // namespace rq::real
