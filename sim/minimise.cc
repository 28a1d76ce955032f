#include "sim/minimise.h"

namespace rq::sim {

std::string failure_kind(const std::string& failure) {
  const std::size_t colon = failure.find(':');
  if (colon == std::string::npos) return failure;
  if (!failure.starts_with("ledger: ")) return failure.substr(0, colon);
  return failure.substr(0, failure.find(' ', colon + 2));
}

std::string minimise(std::uint64_t seed, const RunOptions& options, const std::string& plan, const std::string& kind) {
  const Swarm plain;
  Swarm kept;
  std::string error;
  if (!kept.apply(plan, error)) return plan;
  for (const Swarm::Key& key : Swarm::keys()) {
    if (kept.*key.value == plain.*key.value) continue;
    Swarm smaller = kept;
    smaller.*key.value = plain.*key.value;
    RunOptions trial = options;
    trial.plain = true;
    trial.overrides = smaller.text();
    trial.trace = false;
    if (failure_kind(run_seed(seed, trial).failure) == kind) kept = smaller;
  }
  return kept.text();
}

}  // namespace rq::sim
