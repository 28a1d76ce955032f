// Latency histogram with the 16 product buckets 100 us .. 10 s (page 30 section 14) and one for everything above.
#pragma once

#include <array>
#include <cstdint>

namespace rq {

struct Histogram {
  // Upper bounds in microseconds, inclusive.
  static constexpr std::array<std::uint64_t, 16> kBoundsUs = {100,       250,       500,       1'000,     2'500,   5'000,
                                                              10'000,    25'000,    50'000,    100'000,   250'000, 500'000,
                                                              1'000'000, 2'500'000, 5'000'000, 10'000'000};
  std::array<std::uint64_t, 17> buckets{};  // not cumulative; the last one is over 10 s
  std::uint64_t count = 0;
  std::uint64_t sum_us = 0;

  void add_us(std::uint64_t us) {
    std::size_t i = 0;
    while (i < kBoundsUs.size() && us > kBoundsUs[i]) ++i;
    ++buckets[i];
    ++count;
    sum_us += us;
  }
};

}  // namespace rq
