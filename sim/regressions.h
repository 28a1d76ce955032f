// Minimised plans of bugs that were found once: sim/regressions/*.plan, always run. A file holds comment lines that say what went
// wrong, then "seed N" and "plan key=value ..." over the default plan.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace rq::sim {

struct Regression {
  std::uint64_t seed = 0;
  std::string plan;
};
// False: not a plan; `error` says why.
bool parse_regression(std::string_view text, Regression& out, std::string& error);

}  // namespace rq::sim
