#include "bench/print.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace rq::bench {

int print_report(std::string_view text, int status) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0) return status;
  fmt::print(stderr, "Error: the report cannot be written: {}\n", std::strerror(errno));
  return 1;
}

}  // namespace rq::bench
