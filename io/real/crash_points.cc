#include "io/real/crash_points.h"

#ifdef RQ_CRASH_INJECTION
#include <limits.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

namespace rq::real {
namespace {

struct Plan {
  std::string point;
  std::atomic<long> left{0};
  Plan() {
    const char* text = std::getenv("RQ_CRASH_AT");
    if (text == nullptr) return;
    const char* colon = std::strchr(text, ':');
    point.assign(text, colon == nullptr ? std::strlen(text) : static_cast<std::size_t>(colon - text));
    left = colon == nullptr ? 0 : std::atol(colon + 1);
  }
};

Plan& plan() {
  static Plan the_plan;
  return the_plan;
}

// Which files a point is about.
bool concerns(std::string_view point, std::string_view path) {
  return path.ends_with(point == "checkpoint" ? ".checkpoint.tmp" : ".rqlog");
}

}  // namespace

void crash_point_of_path(const char* point, const char* path) {
  Plan& current = plan();
  if (current.point != point || !concerns(point, path)) return;
  if (current.left.fetch_sub(1) == 0) ::kill(::getpid(), SIGKILL);
}

void crash_point_of_file(const char* point, int fd) {
  if (plan().point != point) return;
  char path[PATH_MAX];
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  const ssize_t length = ::readlink(link.c_str(), path, sizeof path - 1);
  if (length <= 0) return;
  path[length] = '\0';
  crash_point_of_path(point, path);
}

}  // namespace rq::real
#endif
