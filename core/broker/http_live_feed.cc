// GET /v1/ws/topics/<topic>: the handshake on the HTTP connection, and its end when the live feed takes the stream over.
#include <utility>

#include "core/base/check.h"
#include "core/broker/http_connection.h"
#include "core/broker/live_feeds.h"
#include "core/broker/live_handshake.h"
#include "core/ws/handshake.h"

namespace rq::broker {

void HttpConnection::act_live_feed() {
  ServerView& view = env_.view;
  const http::Request& request = parser_.request();
  const std::string& topic = routed_->argument;
  if (auto refusal = refuse_live_feed(request, topic, view)) return respond(std::move(*refusal));
  if (!view.live_feeds().room_for(topic)) {
    ++view.counters().websocket_capacity_rejections;
    http::Response response = http::error_response(429, "E_WS_CAPACITY", "no room for another live feed");
    response.nsq_header = false;
    return respond(std::move(response));
  }
  std::optional<std::string> secret;
  if (view.live_feeds().auth_enabled() && request.has_authorization) {
    secret = bearer_secret(request.authorization);
    if (!secret) {
      ++view.counters().websocket_auth_failures;
      ++view.counters().auth_failures;
      http::Response response = http::error_response(401, "E_AUTH_FAILED", "Authorization must be Bearer <secret>");
      response.nsq_header = false;
      return respond(std::move(response));
    }
  }
  hand_over_feed(std::move(secret));
}

// This connection ends without touching the stream.
void HttpConnection::hand_over_feed(std::optional<std::string> secret) {
  RQ_CHECK(!read_.in_flight && !write_.in_flight && pending_.empty() && sending_.empty());
  disarm();
  LiveStart start;
  start.stream = stream_;
  if (!input_.empty()) start.input = Slice::copy_of(input_.bytes());
  start.topic = routed_->argument;
  start.epoch = env_.view.engine().reliable_epoch_of(start.topic);
  start.accept = ws::accept_key(parser_.request().websocket_key);
  start.secret = std::move(secret);
  start.date = env_.date;
  phase_ = Phase::closed;
  input_ = Slice();
  mark_dirty();
  env_.view.live_feeds().add(std::move(start), env_.now);
}

}  // namespace rq::broker
