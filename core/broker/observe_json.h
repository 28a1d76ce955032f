// What the Console reads: /v1/observe/head and /v1/observe (page 31 section 5.7). Names, counters and addresses, never a body.
#pragma once

#include <string>
#include <vector>

#include "core/broker/server_view.h"

namespace rq::broker {

std::string observe_head_json(ServerView& view, WallTime now);
std::string observe_json(ServerView& view, WallTime now, const std::vector<queue::TopicStats>& topics);

}  // namespace rq::broker
