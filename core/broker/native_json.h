// The documents of the native API: registry, capabilities, drain (page 31 sections 1.2, 5.5 and 5.6).
#pragma once

#include <string>
#include <vector>

#include "core/broker/server_view.h"
#include "core/http/response.h"
#include "core/storage/image.h"

namespace rq::broker {

std::string binary_capabilities_json();
std::string capabilities_json(const storage::BrokerImage& identity);

// Sums over Topics and Channels.
struct QueueSums {
  std::uint64_t stored_messages = 0, depth = 0, in_flight = 0;
  bool any() const { return stored_messages > 0 || depth > 0 || in_flight > 0; }
};
QueueSums sums_of(const std::vector<queue::TopicStats>& topics);

std::string registry_head_json(ServerView& view);
std::string registry_json(ServerView& view, const std::vector<queue::TopicStats>& topics);
std::string drain_json(ServerView& view, const std::vector<queue::TopicStats>& topics);
std::string managed_json(const queue::ManagedDone& done);

// The answer to a failed engine call on a native route.
http::Response native_outcome(const queue::Outcome& outcome);

}  // namespace rq::broker
