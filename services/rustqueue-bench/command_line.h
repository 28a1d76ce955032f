// The command line of rustqueue-bench (page 60 section 6.1).
#pragma once

#include <optional>

#include "bench/load/options.h"

namespace rq::service {

struct BenchCommandLine {
  load::LoadOptions options;
  bool json = false;
  std::optional<int> exit_status;  // set: --help, --version or wrong use, which was answered
};

BenchCommandLine parse_bench_command_line(int argc, char** argv);

}  // namespace rq::service
