// Deterministic integer randomness. The same seed and stream name give the same draws everywhere.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/base/hash.h"

namespace rq {

// SplitMix64: small, fast, good enough for simulation and jitter; not for secrets.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed), origin_(seed) {}

  std::uint64_t next() { return mix64(state_ += 0x9e3779b97f4a7c15ULL); }

  // Uniform in [0, bound); bound > 0. The bias of the multiplication is below 2^-32 for bounds under 2^32.
  std::uint64_t below(std::uint64_t bound) {
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::uint64_t>((static_cast<Wide>(next()) * bound) >> 64);
  }
  // Uniform in [low, high], both included.
  std::uint64_t between(std::uint64_t low, std::uint64_t high) { return low + below(high - low + 1); }
  // True with probability numerator / 1024.
  bool chance(std::uint32_t per_1024) { return below(1024) < per_1024; }

  // An independent child stream; depends on the seed and the name only, not on earlier draws.
  Random split(std::string_view name) const { return Random(mix64(origin_ ^ hash64(name))); }

 private:
  std::uint64_t state_;
  std::uint64_t origin_;
};

}  // namespace rq
