#include "sim/minimise.h"

namespace rq::sim {

std::string failure_kind(const std::string& failure) {
  const std::size_t colon = failure.find(':');
  if (colon == std::string::npos) return failure;
  if (!failure.starts_with("ledger: ")) return failure.substr(0, colon);
  return failure.substr(0, failure.find(' ', colon + 2));
}

std::string minimise(std::uint64_t seed, const RunOptions& options, const std::string& kind) {
  const Swarm plain;
  std::string kept = options.overrides;
  for (const Swarm::Key& key : Swarm::keys()) {
    RunOptions smaller = options;
    smaller.overrides = kept + " " + key.name + "=" + std::to_string(plain.*key.value);
    smaller.trace = false;
    if (failure_kind(run_seed(seed, smaller).failure) == kind) kept = smaller.overrides;
  }
  return kept;
}

}  // namespace rq::sim
