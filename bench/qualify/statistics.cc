#include "bench/qualify/statistics.h"

#include <algorithm>
#include <cmath>

#include "core/base/check.h"
#include "core/base/random.h"

namespace rq::qualify {

double geometric_mean(const std::vector<double>& ratios) {
  RQ_CHECK(!ratios.empty());
  double sum = 0;
  for (const double ratio : ratios) sum += std::log(ratio);
  return std::exp(sum / static_cast<double>(ratios.size()));
}

double quantile(const std::vector<double>& sorted, double p) {
  RQ_CHECK(!sorted.empty() && p >= 0 && p <= 1);
  const double at = p * static_cast<double>(sorted.size() - 1);
  const auto low = static_cast<std::size_t>(at);
  const std::size_t high = std::min(low + 1, sorted.size() - 1);
  return sorted[low] + (sorted[high] - sorted[low]) * (at - static_cast<double>(low));
}

std::uint64_t fnv1a64(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

Bootstrap bootstrap(const std::vector<double>& ratios, std::uint64_t iterations, std::uint64_t seed) {
  RQ_CHECK(!ratios.empty() && iterations > 0);
  std::vector<double> logs, means;
  for (const double ratio : ratios) logs.push_back(std::log(ratio));
  means.reserve(iterations);
  Random random(seed);  // SplitMix64
  for (std::uint64_t i = 0; i < iterations; ++i) {
    double sum = 0;
    for (std::size_t k = 0; k < logs.size(); ++k) sum += logs[random.below(logs.size())];
    means.push_back(std::exp(sum / static_cast<double>(logs.size())));
  }
  std::sort(means.begin(), means.end());
  return {quantile(means, 0.05), quantile(means, 0.95)};
}

}  // namespace rq::qualify
