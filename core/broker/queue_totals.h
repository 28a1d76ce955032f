// Sums over all Topics and Channels of one statistics snapshot (page 31 sections 5.5 to 5.7 and 7.3).
#pragma once

#include <cstdint>
#include <vector>

#include "core/queue/engine.h"

namespace rq::broker {

struct QueueTotals {
  std::uint64_t topics = 0, messages = 0, segments = 0, segment_bytes = 0;
  std::uint64_t unsynced_messages = 0, unsynced_bytes = 0;
  std::uint64_t sync_lag_ms = 0;  // the largest
  std::uint64_t channels = 0, depth = 0, in_flight = 0, deferred = 0, ack_gap = 0;
  bool any() const { return messages > 0 || depth > 0 || in_flight > 0; }
};

QueueTotals totals_of(const std::vector<queue::TopicStats>& topics);

}  // namespace rq::broker
