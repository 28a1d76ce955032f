// The bugs that can be planted to see whether the oracles bite: each with a plan that makes it show, and a bound on the seeds.
#pragma once

#include <cstdint>
#include <vector>

namespace rq::sim {

struct Plant {
  const char* name;
  const char* what;
  const char* plan;         // overrides that make it show
  std::uint64_t seeds_max;  // it is caught within this many seeds from 1
};
const std::vector<Plant>& plants();

}  // namespace rq::sim
