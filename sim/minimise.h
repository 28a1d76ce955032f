// Makes a failing plan smaller: switches one key after another back to its default and keeps what still fails the same way.
#pragma once

#include <cstdint>
#include <string>

#include "sim/runner.h"

namespace rq::sim {

// The plan as "key=value ..." over the default one (RunOptions::plain); `kind` is what the failure has to begin with.
std::string minimise(std::uint64_t seed, const RunOptions& options, const std::string& plan, const std::string& kind);
// The part of a failure that names what went wrong, without its details: "ledger: L4", "audit".
std::string failure_kind(const std::string& failure);

}  // namespace rq::sim
