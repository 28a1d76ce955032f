// A live feed until it is live: the 101 or a refusal, AUTH, the subscription.
#include <fmt/format.h>

#include <utility>

#include "core/base/check.h"
#include "core/base/probe.h"
#include "core/broker/live_feed.h"
#include "core/broker/peer_address.h"
#include "core/http/response.h"

namespace rq::broker {

void LiveFeed::begin(std::optional<std::string> secret, Now now) {
  mark_dirty();
  if (secret) return ask(std::move(*secret), now);
  upgrade();
  if (!env_.auth.enabled()) return subscribe(now);
  phase_ = Phase::waiting;
  auth_deadline_ = now.mono + static_cast<std::int64_t>(env_.config.limits.auth_timeout_ms) * kMillisecond;
  say(auth_required_control());
}

void LiveFeed::upgrade() {
  upgraded_ = true;
  output_.controls() += fmt::format(
      "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {}\r\n"
      "Sec-WebSocket-Protocol: {}\r\n\r\n",
      accept_, kLiveProtocol);
}

// --- AUTH

void LiveFeed::ask(std::string secret, Now now) {
  if (phase_ != Phase::live) phase_ = Phase::asking;
  asking_ = true;
  secret_ = std::move(secret);
  env_.auth.ask(kAuthSlots | slot_, {without_port(remote_), false, "", secret_}, now);
}

void LiveFeed::on_auth(AuthAnswer answer, Now now) {
  mark_dirty();
  if (!std::exchange(asking_, false)) return;
  switch (answer.verdict) {
    case AuthVerdict::granted:
      break;
    case AuthVerdict::denied:
      return auth_failed(live_end::kUnauthorized, now);
    case AuthVerdict::overloaded:
      return auth_failed(live_end::kAuthOverloaded, now);
    case AuthVerdict::failed:
      return auth_failed(live_end::kAuthFailed, now);
  }
  lease_ = std::move(answer.lease);
  if (!lease_->allows(AuthGrants::Permission::subscribe, topic_, kLiveAuthChannel))
    return auth_failed(live_end::kUnauthorized, now);
  if (phase_ == Phase::live) return env_.engine.set_ready(consumer_, 1);
  if (!upgraded_) upgrade();
  subscribe(now);
}

void LiveFeed::auth_failed(const LiveEnd& why, Now now) {
  ++env_.counters.websocket_auth_failures;
  ++env_.counters.auth_failures;
  if (upgraded_) return end(why, now);
  refuse(why.code == live_end::kUnauthorized.code ? 403 : 503, why, now);
}

void LiveFeed::refuse(int status, const LiveEnd& why, Now now) {
  http::ResponseFraming framing;
  framing.keep_alive = false;
  framing.date = date_;
  http::write_response(output_.controls(), http::error_response(status, why.code, why.detail), framing);
  begin_closing(now);
}

// --- the subscription

bool LiveFeed::was_reliable() const {
  const std::optional<queue::DeliveryPolicy> policy = env_.engine.policy_of(topic_);
  return policy && (!policy->ttl_discard || env_.engine.reliable_epoch_of(topic_) != epoch_);
}

void LiveFeed::subscribe(Now now) {
  if (was_reliable()) return end(live_end::kTtlRequired, now);
  phase_ = Phase::subscribing;
  subscribing_ = true;
  queue::SubscribeOptions options;
  options.live_feed = true;
  const std::uint64_t lease_ms = env_.config.queue.message_timeout_ms + env_.config.limits.tcp_command_timeout_ms;
  options.message_timeout_ms = static_cast<std::int64_t>(std::min<std::uint64_t>(lease_ms, INT64_MAX / kMillisecond));
  env_.engine.subscribe(topic_, fmt::format("ws.{}.{}#ephemeral", env_.config.node.id, number_), options,
                        make_waiter(WaiterKind::live_feed, slot_), now);
}

// What a refusal of the queue means for a feed.
const LiveEnd& LiveFeed::end_for(queue::Code code) {
  switch (code) {
    case queue::Code::channel_limit:
      return live_end::kChannelLimit;
    case queue::Code::management_unavailable:
      return live_end::kOwnerChanged;
    case queue::Code::storage:
      return live_end::kShutdown;
    default:
      return live_end::kTopicClosed;
  }
}

void LiveFeed::on_subscribed(const queue::SubscribeDone& done, Now now) {
  mark_dirty();
  subscribing_ = false;
  if (phase_ != Phase::subscribing) {
    env_.engine.unsubscribe(done.consumer, now);
    return;
  }
  consumer_ = done.consumer;
  if (done.outcome.code == queue::Code::channel_limit) ++env_.counters.websocket_capacity_rejections;
  if (!done.outcome.ok()) return end(end_for(done.outcome.code), now);
  if (was_reliable()) return end(live_end::kTtlRequired, now);
  phase_ = Phase::live;
  say(ready_control(topic_, number_));
  next_tick_ = now.mono + interval_ns();
  last_frame_ = now.mono;
  env_.engine.set_ready(consumer_, 1);
}

}  // namespace rq::broker
