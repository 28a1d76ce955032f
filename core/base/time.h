// The two clocks, as different types that never mix (design: ports). Everything is nanoseconds.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>

namespace rq {

inline constexpr std::int64_t kMicrosecond = 1'000;
inline constexpr std::int64_t kMillisecond = 1'000'000;
inline constexpr std::int64_t kSecond = 1'000'000'000;

// A point on the monotonic clock; never jumps. Timeouts and in-flight deadlines use it.
struct Instant {
  std::int64_t ns = 0;
  auto operator<=>(const Instant&) const = default;
  static constexpr Instant never() { return {std::numeric_limits<std::int64_t>::max()}; }
};

// Saturates at Instant::never(), so a huge timeout is a deadline that does not come.
constexpr Instant operator+(Instant at, std::int64_t ns) {
  std::int64_t sum = 0;
  return __builtin_add_overflow(at.ns, ns, &sum) ? Instant::never() : Instant{sum};
}
constexpr std::int64_t operator-(Instant a, Instant b) { return a.ns - b.ns; }

// A point on the wall clock since the Unix epoch; may jump either way. Message timestamps, delays, TTL and retention use it.
struct WallTime {
  std::int64_t ns = 0;
  auto operator<=>(const WallTime&) const = default;
  constexpr std::int64_t ms() const { return ns / kMillisecond; }
};

// Both clocks, read once a turn and frozen while it runs.
struct Now {
  Instant mono;
  WallTime wall;
};

}  // namespace rq
