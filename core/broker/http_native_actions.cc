// The native routes for registry, drain and management (page 31 sections 5.1, 5.5 to 5.7 and 5.9).
#include <fmt/format.h>

#include <utility>

#include "core/base/check.h"
#include "core/broker/http_connection.h"
#include "core/broker/json_body.h"
#include "core/broker/native_json.h"
#include "core/broker/observe_json.h"
#include "core/broker/stats_view.h"

namespace rq::broker {

// Before a body is read: an unknown client learns nothing about it.
std::optional<http::Response> HttpConnection::refusal() const {
  if (is_management(routed_->route) && !env_.view.config().security.console_management_enabled)
    return http::error_response(404, "NOT_FOUND");
  if (routed_->route == Route::live_feed && !env_.view.config().websocket.enabled) return http::error_response(404, "NOT_FOUND");
  const http::Request& request = parser_.request();
  switch (env_.view.check_token(token_class(routed_->route), request.authorization, request.token)) {
    case TokenStore::Verdict::ok:
      return std::nullopt;
    case TokenStore::Verdict::unauthorized:
      return http::error_response(401, "E_UNAUTHORIZED");
    case TokenStore::Verdict::unavailable:
      break;
  }
  return http::error_response(503, "E_AUTH_UNAVAILABLE");
}

// Waits for what is already on its way to the registry, so that the revision covers every answer given before.
void HttpConnection::act_registry() {
  const bool head = routed_->route == Route::registry_head || routed_->route == Route::observe_head;
  if (env_.view.engine().fault() != nullptr) {
    if (head) return respond(native_head());
    ++env_.view.counters().storage_errors;
    return respond(http::error_response(503, "E_STORAGE"));
  }
  env_.view.engine().registry(!head, wait(0, 0));
}

void HttpConnection::act_drain() {
  if (routed_->route == Route::drain_post) {
    const Slice body = body_.take();
    JsonBody<DrainRequest> parsed = parse_drain(parser_.request().content_type, body.bytes());
    if (parsed.refusal) return respond(std::move(*parsed.refusal));
    env_.view.set_drain(parsed.value.enabled, parsed.value.freeze_deliveries);
  }
  if (env_.view.engine().fault() != nullptr) {
    ++env_.view.counters().storage_errors;
    return respond(http::error_response(503, "E_STORAGE"));
  }
  env_.view.engine().stats({}, {}, wait(0, 0), env_.now);
}

void HttpConnection::native_stats_done(queue::StatsDone& done) {
  const std::uint64_t bytes = memory_of(done.topics);
  switch (routed_->route) {
    case Route::registry:
      return answer_with(registry_json(env_.view, std::move(done.topics)), http::kJson, bytes);
    case Route::observe:
      return answer_with(observe_json(env_.view, env_.now.wall, std::move(done.topics)), http::kJson, bytes);
    case Route::registry_head:
    case Route::observe_head:
      return respond(native_head());
    default:
      return respond(http::json_response(drain_json(env_.view, done.topics)));
  }
}

http::Response HttpConnection::native_head() const {
  return http::json_response(routed_->route == Route::registry_head ? registry_head_json(env_.view)
                                                                    : observe_head_json(env_.view, env_.now.wall));
}

void HttpConnection::act_managed() {
  const Slice body = body_.take();
  JsonBody<queue::ManagedRequest> parsed =
      parse_managed(routed_->route == Route::manage_channel, routed_->argument, parser_.request().content_type, body.bytes());
  if (parsed.refusal) return respond(std::move(*parsed.refusal));
  const queue::ManagedRequest& request = parsed.value;
  operation_ = request.on_channel ? request.topic + "/" + request.channel : request.topic;
  const queue::WaiterId waiter = wait(0, 0);
  if (request.action == queue::ManagedAction::remove)
    env_.waiters[waiter_].removes =
        std::make_unique<RemovedName>(RemovedName{request.topic, request.on_channel ? request.channel : std::string()});
  env_.view.engine().manage(std::move(parsed.value), waiter);
}

void HttpConnection::managed_done(const queue::ManagedDone& done) {
  RQ_CHECK(phase_ == Phase::waiting);
  waiter_ = 0;
  if (!done.outcome.ok()) return respond(native_outcome(done.outcome));
  env_.host.log.log(
      io::Level::info, "management_applied",
      fmt::format("target={} action={} changed={} revision={}", operation_, routed_->argument, done.changed, done.revision));
  respond(http::json_response(managed_json(done)));
}

void HttpConnection::act_fences() {
  const Slice body = body_.take();
  JsonBody<queue::FenceSnapshot> parsed = parse_fences(parser_.request().content_type, body.bytes());
  if (parsed.refusal) return respond(std::move(*parsed.refusal));
  env_.view.engine().sync_fences(parsed.value, wait(0, 0));
}

}  // namespace rq::broker
