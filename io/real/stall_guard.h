// Whether the loop may write to the page cache itself. Such a write takes microseconds until dirty pages or the journal of the
// file system throttle it; one that took kSlowNs or longer closes the guard, for 1 s at first and up to 64 s when it happens
// again.
#pragma once

#include <algorithm>

#include "core/base/time.h"

namespace rq::real {

class StallGuard {
 public:
  static constexpr std::int64_t kSlowNs = 20 * kMillisecond;
  static constexpr std::int64_t kPauseMinNs = 1 * kSecond;
  static constexpr std::int64_t kPauseMaxNs = 64 * kSecond;

  bool may_write(Instant now) const { return now >= closed_until_; }
  void took(Instant before, Instant after) {
    if (after - before < kSlowNs) {
      pause_ns_ = kPauseMinNs;
      return;
    }
    closed_until_ = after + pause_ns_;
    pause_ns_ = std::min(pause_ns_ * 2, kPauseMaxNs);
  }

 private:
  Instant closed_until_{};
  std::int64_t pause_ns_ = kPauseMinNs;
};

}  // namespace rq::real
