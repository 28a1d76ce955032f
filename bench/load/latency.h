// Latencies from 1 us to 60 s with three significant digits, in constant memory: a logarithmic histogram with 1,024 linear steps
// per power of two.
//
//  I1 A recorded value comes back from value_at() at most 0.1 % too high, never too low.
//  I2 Values below 1 us count as 1 us; values above 60 s count as 60 s.
#pragma once

#include <cstdint>
#include <vector>

namespace rq::load {

class Latency {
 public:
  static constexpr std::uint64_t kMaxUs = 60'000'000;

  Latency();
  void record_us(std::uint64_t us);
  std::uint64_t count() const { return count_; }
  std::uint64_t max_us() const { return max_us_; }  // 0 when nothing was recorded
  // The smallest value that at least `per_mille` thousandths of the samples do not exceed, rounded up to its step and never above
  // max_us(). 0 when nothing was recorded. per_mille: 1 to 1,000.
  std::uint64_t value_at(std::uint32_t per_mille) const;

 private:
  static constexpr std::uint32_t kStepBits = 10;
  static constexpr std::uint64_t kSteps = 1u << kStepBits;
  static std::size_t slot_of(std::uint64_t us);
  static std::uint64_t highest_in(std::size_t slot);

  std::vector<std::uint64_t> slots_;
  std::uint64_t count_ = 0, max_us_ = 0;
};

}  // namespace rq::load
