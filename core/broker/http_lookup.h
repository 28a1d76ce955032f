// /lookup, /topics, /channels and /nodes: a Broker answers for itself as nsqlookupd would (page 31 section 4.3, page 10 section
// 7, D-32).
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "core/broker/http_routes.h"
#include "core/broker/rendering.h"

namespace rq::broker {

struct LookupView {
  std::string_view address;  // broadcast; outlives the answer
  std::uint64_t tcp_port = 0, http_port = 0;
  bool accepting = true;  // false: draining or stopping, consumers are to look elsewhere
};

// 400 without the Topic that the route needs, 404 for one that is not there.
std::optional<http::Response> lookup_refusal(Route route, const http::Query& query, const queue::Engine& engine);
// `topics`: the one asked for, or all, by name.
std::unique_ptr<Rendering> lookup_answer(Route route, const LookupView& self, std::vector<queue::TopicStats> topics);

}  // namespace rq::broker
