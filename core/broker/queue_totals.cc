#include "core/broker/queue_totals.h"

#include <algorithm>

namespace rq::broker {

QueueTotals totals_of(const std::vector<queue::TopicStats>& topics) {
  QueueTotals sums;
  sums.topics = topics.size();
  for (const queue::TopicStats& topic : topics) {
    sums.messages += topic.message_count;
    sums.segments += topic.segment_count;
    sums.segment_bytes += topic.segment_bytes;
    sums.unsynced_messages += topic.unsynced_messages;
    sums.unsynced_bytes += topic.unsynced_bytes;
    sums.sync_lag_ms = std::max(sums.sync_lag_ms, topic.sync_lag_ms);
    for (const queue::ChannelStats& channel : topic.channels) {
      ++sums.channels;
      sums.depth += channel.depth;
      sums.in_flight += channel.in_flight_count;
      sums.deferred += channel.deferred_count;
      sums.ack_gap += channel.ack_gap;
    }
  }
  return sums;
}

}  // namespace rq::broker
