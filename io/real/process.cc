#include "io/real/process.h"

#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "core/base/check.h"

namespace rq::real {

std::int64_t process_id() { return ::getpid(); }

std::uint64_t raise_file_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 1024;
  const rlim_t before = limit.rlim_cur;
  limit.rlim_cur = limit.rlim_max;
  if (before == limit.rlim_max || ::setrlimit(RLIMIT_NOFILE, &limit) == 0) return limit.rlim_max;
  return before;
}

std::uint64_t entropy() {
  std::uint64_t value = 0;
  RQ_CHECK(::getrandom(&value, sizeof value, 0) == static_cast<ssize_t>(sizeof value));
  return value;
}

std::map<std::string, std::string> environment(std::string_view prefix) {
  std::map<std::string, std::string> found;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos || !text.starts_with(prefix)) continue;
    found.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return found;
}

std::string environment_value(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

}  // namespace rq::real
