#include "bench/load/latency.h"

#include <algorithm>
#include <bit>

#include "core/base/check.h"

namespace rq::load {

// Values below 2 * kSteps have a slot of their own; each later power of two is cut into kSteps slots.
std::size_t Latency::slot_of(std::uint64_t us) {
  if (us < 2 * kSteps) return us;
  const auto shift = static_cast<std::uint32_t>(std::bit_width(us)) - 1 - kStepBits;
  return (shift << kStepBits) + (us >> shift);
}

std::uint64_t Latency::highest_in(std::size_t slot) {
  if (slot < 2 * kSteps) return slot;
  const std::uint64_t shift = (slot >> kStepBits) - 1;
  return ((slot - (shift << kStepBits) + 1) << shift) - 1;
}

Latency::Latency() : slots_(slot_of(kMaxUs) + 1) {}

void Latency::record_us(std::uint64_t us) {
  us = std::clamp<std::uint64_t>(us, 1, kMaxUs);
  ++slots_[slot_of(us)];
  ++count_;
  max_us_ = std::max(max_us_, us);
}

std::uint64_t Latency::value_at(std::uint32_t per_mille) const {
  RQ_CHECK(per_mille >= 1 && per_mille <= 1'000);
  const std::uint64_t wanted = count_ / 1'000 * per_mille + (count_ % 1'000 * per_mille + 999) / 1'000;
  std::uint64_t seen = 0;
  for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
    seen += slots_[slot];
    if (seen >= wanted && seen > 0) return std::min(highest_in(slot), max_us_);
  }
  return 0;
}

}  // namespace rq::load
