// The documents of the native API: registry, capabilities, drain (page 31 sections 1.2, 5.5 and 5.6).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/base/json_writer.h"
#include "core/broker/rendering.h"
#include "core/broker/server_view.h"
#include "core/http/response.h"
#include "core/storage/image.h"

namespace rq::broker {

std::string binary_capabilities_json();
void put_capabilities(JsonWriter& json, const storage::BrokerImage& identity);
std::string capabilities_json(const storage::BrokerImage& identity);

// Page 31 section 5.5: what the flags of the registry heads mean.
bool publish_ready(ServerView& view);
bool head_consume_ready(ServerView& view);

std::string registry_head_json(ServerView& view);
std::unique_ptr<Rendering> registry_json(ServerView& view, std::vector<queue::TopicStats> topics);  // view outlives it
std::string drain_json(ServerView& view, const std::vector<queue::TopicStats>& topics);
std::string managed_json(const queue::ManagedDone& done);

// The answer to a failed engine call on a native route.
http::Response native_outcome(const queue::Outcome& outcome);

}  // namespace rq::broker
