// The statistics of a comparison in pairs (page 60 section 6.2): geometric mean of ratios, and its bootstrap over pairs.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace rq::qualify {

// exp(mean(log)); every ratio is above 0, and there is at least one.
double geometric_mean(const std::vector<double>& ratios);
// Linear interpolation at p * (n - 1) of sorted values; p in [0, 1], at least one value.
double quantile(const std::vector<double>& sorted, double p);

std::uint64_t fnv1a64(std::string_view text);

struct Bootstrap {
  double p05 = 0, p95 = 0;
};
// Resamples pairs with replacement. The same ratios, count and seed give the same result, bit for bit, on one machine and build.
Bootstrap bootstrap(const std::vector<double>& ratios, std::uint64_t iterations, std::uint64_t seed);

}  // namespace rq::qualify
