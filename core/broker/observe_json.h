// What the Console reads: /v1/observe/head and /v1/observe (page 31 section 5.7). Names, counters and addresses, never a body.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/broker/rendering.h"
#include "core/broker/server_view.h"

namespace rq::broker {

std::string observe_head_json(ServerView& view, WallTime now);
std::unique_ptr<Rendering> observe_json(ServerView& view, WallTime now,
                                        std::vector<queue::TopicStats> topics);  // view outlives it

}  // namespace rq::broker
