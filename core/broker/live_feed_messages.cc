// The one message of a live feed: from its delivery to its end, and what a change of the policy does to it.
#include <optional>
#include <utility>

#include "core/base/check.h"
#include "core/base/probe.h"
#include "core/broker/live_feed.h"

namespace rq::broker {

void LiveFeed::on_policy_changed(Now now) {
  mark_dirty();
  if (phase_ != Phase::live) return;
  if (was_reliable()) return end(live_end::kTtlRequired, now);
  if (!message_) return;
  const std::optional<queue::DeliveryPolicy> policy = env_.engine.policy_of(topic_);
  if (!policy) return;  // its Topic is being deleted, which ends this feed
  const std::uint64_t ttl_ns = policy->ttl_seconds * static_cast<std::uint64_t>(kSecond);
  std::int64_t expires = 0;
  if (__builtin_add_overflow(message_->timestamp_ns, ttl_ns, &expires)) expires = INT64_MAX;
  message_->expires = WallTime{expires};
  message_->expires_mono = now.mono + (expires - now.wall.ns);
  env_.engine.touch(consumer_, message_->id, now);  // its lease ended with the old TTL
}

void LiveFeed::on_delivery(const queue::Delivery& delivery, Now now) {
  mark_dirty();
  RQ_CHECK(delivery.consumer == consumer_);
  if (message_) message_expired(now);  // the queue let go of it: its time is up
  const auto release = [&] {
    env_.engine.cancel(delivery.consumer, delivery.id, delivery.token);
    env_.engine.written(delivery.consumer, delivery.body.size());
  };
  if (phase_ != Phase::live || delivery.expires <= now.wall) return release();
  if (auth_due(now)) {
    release();
    env_.engine.set_ready(consumer_, 0);
    return ask(std::move(secret_), now);
  }
  if (!env_.frame_memory.take(kLiveHeaderBytes + delivery.body.size())) {
    RQ_SOMETIMES(true, "live feed: no frame memory");
    release();
    ++env_.counters.websocket_capacity_rejections;
    return end(live_end::kFrameMemory, now);
  }
  begin_message(delivery, now);
}

void LiveFeed::begin_message(const queue::Delivery& delivery, Now now) {
  message_ = Message{.id = delivery.id,
                     .token = delivery.token,
                     .timestamp_ns = delivery.timestamp_ns,
                     .body_bytes = delivery.body.size(),
                     .expires = delivery.expires,
                     .expires_mono = now.mono + (delivery.expires.ns - now.wall.ns),
                     .since = now.mono};
  std::string header;
  ws::put_frame_header(header, ws::Opcode::binary, kLiveHeaderBytes + delivery.body.size());
  put_live_header(header, delivery.attempts, delivery.timestamp_ns, delivery.id);
  output_.message(std::move(header), delivery.body);
}

void LiveFeed::message_written(Now now) {
  const Message message = *std::exchange(message_, std::nullopt);
  env_.frame_memory.give(kLiveHeaderBytes + message.body_bytes);
  ++env_.counters.websocket_messages;
  env_.counters.websocket_bytes += message.body_bytes;
  ++messages_sent_;
  env_.engine.written(consumer_, message.body_bytes);
  const queue::Code code = env_.engine.finish(consumer_, message.id, now);
  // One that left in the meantime is no matter; a closed Topic is.
  if (code != queue::Code::ok && code != queue::Code::not_in_flight) end(end_for(code), now);
  if (next_tick_ <= now.mono) next_tick_ = now.mono + interval_ns();  // no ping while it was written
}

// One that was not begun: nobody has seen it. One that went out whole this turn was seen.
void LiveFeed::give_message_back() {
  if (std::exchange(message_done_, false)) message_written(env_.now);
  if (!message_) return;
  const Message message = *std::exchange(message_, std::nullopt);
  env_.frame_memory.give(kLiveHeaderBytes + message.body_bytes);
  if (!output_.in_message() && output_.has_message()) output_.drop_message();
  env_.engine.cancel(consumer_, message.id, message.token);
  env_.engine.written(consumer_, message.body_bytes);
}

void LiveFeed::message_expired(Now now) {
  if (std::exchange(message_done_, false)) return message_written(now);
  if (!output_.in_message()) return give_message_back();
  RQ_SOMETIMES(true, "live feed: a message expires while it is written");
  close();
}

}  // namespace rq::broker
