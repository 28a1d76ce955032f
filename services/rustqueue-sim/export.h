// `rustqueue-sim --export DIR`: what a seed left on the Broker's disk, as real files, for a decoder that knows nothing of this
// code.
#pragma once

#include <cstdint>
#include <string>

#include "sim/runner.h"

namespace rq::sim {

// Writes DIR/seed-<seed>-<moment>/... for each of them. False when a file cannot be written.
bool export_directories(const std::string& to, std::uint64_t seed, const RunResult& run);

}  // namespace rq::sim
