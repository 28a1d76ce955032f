#include "io/real/barrier.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cstdio>

namespace rq::real {
namespace {

bool is_mount_point(const std::string& path) {
  struct stat self {
  }, parent{};
  if (::stat(path.c_str(), &self) != 0 || ::stat((path + "/..").c_str(), &parent) != 0) return false;
  return self.st_dev != parent.st_dev || self.st_ino == parent.st_ino;
}

}  // namespace

bool kernel_reports_syncfs_errors(const char* release) {
  unsigned major = 0, minor = 0;
  if (std::sscanf(release, "%u.%u", &major, &minor) != 2) return false;
  return major > 5 || (major == 5 && minor >= 8);
}

std::string kernel_release() {
  utsname system{};
  return ::uname(&system) == 0 ? system.release : "";
}

std::string syncfs_refusal(BarrierStrategy asked, const std::string& release) {
  if (asked != BarrierStrategy::syncfs || kernel_reports_syncfs_errors(release.c_str())) return {};
  return "storage.barrier is syncfs, and kernel " + (release.empty() ? "(unknown)" : release) + " does not report its errors";
}

SyncfsGate::~SyncfsGate() {
  if (fd_ >= 0) ::close(fd_);
}

void SyncfsGate::arm() {
  if (decided_) return;
  const bool possible =
      strategy_ != BarrierStrategy::fdatasync && !data_path_.empty() && kernel_reports_syncfs_errors(kernel_release().c_str());
  if (!possible) {
    decided_ = true;
    return;
  }
  const int fd = ::open(data_path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;  // not made yet: asked again at the next open
  decided_ = true;
  if (strategy_ == BarrierStrategy::automatic && !is_mount_point(data_path_)) {
    ::close(fd);
    return;
  }
  fd_ = fd;
}

}  // namespace rq::real
