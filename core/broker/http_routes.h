// The routes of the HTTP API (page 10 section 6, page 31 sections 4 and 5): which path means what, with which methods, and the
// answers that need nothing but the request.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/broker/token_store.h"
#include "core/http/query.h"
#include "core/http/request_parser.h"
#include "core/http/response.h"
#include "core/queue/engine.h"

namespace rq::broker {

enum class Route : std::uint8_t {
  ping,
  info,
  pub,
  mpub,
  stats,
  topic_create,
  topic_delete,
  topic_empty,
  topic_pause,
  topic_unpause,
  channel_create,
  channel_delete,
  channel_empty,
  channel_pause,
  channel_unpause,
  config_get,
  config_put,
  storage_scrub,
  health,
  native_stats,
  metrics,
  lookup,
  topics,
  channels,
  nodes,
  registry,
  registry_head,
  capabilities,
  observe,
  observe_head,
  drain_get,
  drain_post,
  manage_topic,    // argument: the action
  manage_channel,  // argument: the action
  fences_sync,
  live_feed,  // argument: the Topic
};

struct Routed {
  Route route = Route::ping;
  http::Target target;
  std::string argument;  // <opt> of /config/<opt>, or the action of /v1/manage/...
};

// The route, or the answer: 400 for an unusable target, 404, 405, the redirect of a misspelt path, OPTIONS.
struct RouteResult {
  std::optional<Routed> routed;
  http::Response answer;
};
RouteResult find_route(const http::Request& request);

// The route takes a body; its bytes are kept.
bool takes_body(Route route);
// Answered while the data directory is still being opened (D-49).
bool serves_while_opening(Route route);
bool is_publish(Route route);
bool is_lookup(Route route);      // /lookup and its kin
bool is_json(Route route);        // takes a JSON body
bool is_management(Route route);  // exists only with security.console_management_enabled
TokenClass token_class(Route route);
// The administration action of a /topic/... or /channel/... route.
std::optional<queue::Admin> admin_action(Route route);

}  // namespace rq::broker
