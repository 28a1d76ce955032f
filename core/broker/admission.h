// Publish byte budgets (page 30 section 2.3, D-18) and the switches that gate what clients may do.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/base/check.h"

namespace rq::broker {

inline constexpr std::uint64_t kAdmissionUnitBytes = 4'096;

constexpr std::uint64_t admission_units(std::uint64_t bytes) {
  return (bytes + kAdmissionUnitBytes - 1) / kAdmissionUnitBytes * kAdmissionUnitBytes;
}
// PUB and DPUB: messages = 1; MPUB: min(65,536, (len - 4) / 5), known before the body is read.
inline constexpr std::uint64_t kRecordChargeBytes = 52, kMessageChargeBytes = 128;  // beside the body
constexpr std::uint64_t publish_working_bytes(std::uint64_t body_bytes, std::uint64_t messages) {
  return body_bytes + kRecordChargeBytes + kMessageChargeBytes * messages;
}
constexpr std::uint64_t publish_charge(std::uint64_t body_bytes, std::uint64_t messages) {
  return admission_units(publish_working_bytes(body_bytes, messages));
}
constexpr std::uint64_t control_charge(std::uint64_t body_bytes) { return admission_units(2 * body_bytes); }

class ByteBudget {
 public:
  explicit ByteBudget(std::uint64_t limit) : limit_(limit) {}
  bool take(std::uint64_t bytes) {
    if (bytes > limit_ - used_) return false;
    used_ += bytes;
    return true;
  }
  void give(std::uint64_t bytes) {
    RQ_CHECK(bytes <= used_);
    used_ -= bytes;
  }
  // Bodies of IDENTIFY and AUTH: from the same budget, but no publishes (page 31 section 3.4).
  bool take_control(std::uint64_t bytes) {
    if (!take(bytes)) return false;
    control_ += bytes;
    return true;
  }
  void give_control(std::uint64_t bytes) {
    RQ_CHECK(bytes <= control_);
    control_ -= bytes;
    give(bytes);
  }
  std::uint64_t used() const { return used_; }
  std::uint64_t used_by_publishes() const { return used_ - control_; }

 private:
  std::uint64_t limit_;
  std::uint64_t used_ = 0;
  std::uint64_t control_ = 0;  // of it
};

struct Gates {
  bool draining = false;       // publishes refused
  bool frozen = false;         // deliveries stopped
  bool stopping = false;       // both
  bool disk_pressure = false;  // publishes throttled
  bool accepting() const { return !draining && !stopping; }
  bool delivering() const { return !frozen && !stopping; }
};

}  // namespace rq::broker
