#include "core/broker/live_feeds.h"

#include <utility>

#include "core/base/check.h"

namespace rq::broker {

bool LiveFeeds::room_for(std::string_view topic) const {
  if (count_ >= env_.config.websocket.max_connections) return false;
  const auto found = of_topic_.find(topic);
  return found == of_topic_.end() || found->second < env_.config.websocket.max_connections_per_topic;
}

void LiveFeeds::add(LiveStart start, Now now) {
  std::uint32_t slot = static_cast<std::uint32_t>(slots_.size());
  if (free_.empty()) {
    slots_.emplace_back();
    consumer_of_.push_back(queue::ConsumerId::none);
  } else {
    slot = free_.back();
    free_.pop_back();
  }
  ++count_;
  ++of_topic_[start.topic];
  std::optional<std::string> secret = std::move(start.secret);
  slots_[slot] = std::make_unique<LiveFeed>(env_, slot, ++number_, std::move(start), now);
  slots_[slot]->begin(std::move(secret), now);
  touch(slot);
}

void LiveFeeds::remove(std::uint32_t slot) {
  const auto topic = of_topic_.find(slots_[slot]->topic());
  if (--topic->second == 0) of_topic_.erase(topic);
  deadlines_.remove(slot);
  slots_[slot].reset();
  free_.push_back(slot);
  --count_;
}

std::uint64_t LiveFeeds::connections() const {
  std::uint64_t upgraded = 0;
  for (const auto& feed : slots_) upgraded += feed != nullptr && feed->upgraded() ? 1 : 0;
  return upgraded;
}

void LiveFeeds::clients(std::vector<ClientRow>& out) const {
  for (const auto& feed : slots_)
    if (feed != nullptr && feed->upgraded()) out.push_back(feed->row());
}

void LiveFeeds::touch(std::uint32_t slot) {
  LiveFeed& feed = *slots_[slot];
  if (feed.touched) return;
  feed.touched = true;
  touched_.push_back(slot);
}

LiveFeed* LiveFeeds::of_consumer(queue::ConsumerId consumer) {
  const auto found = consumers_.find(static_cast<std::uint64_t>(consumer));
  if (found == consumers_.end()) return nullptr;
  LiveFeed* feed = at(found->second);
  return feed != nullptr && feed->consumer() == consumer ? feed : nullptr;
}

void LiveFeeds::route(const queue::Events& events, Now now) {
  if (count_ == 0) return;
  for (const queue::SubscribeDone& done : events.subscribed) {
    if (waiter_kind(done.waiter) != WaiterKind::live_feed) continue;
    const auto slot = static_cast<std::uint32_t>(static_cast<std::uint64_t>(done.waiter));
    LiveFeed* feed = at(slot);
    RQ_CHECK(feed != nullptr);
    feed->on_subscribed(done, now);
    if (feed->consumer() == queue::ConsumerId::none) continue;
    consumers_.emplace(static_cast<std::uint64_t>(feed->consumer()), slot);
    consumer_of_[slot] = feed->consumer();
  }
  if (consumers_.empty()) return;
  std::size_t changes = 0;
  const auto change_policies = [&](std::size_t deliveries) {
    for (; changes < events.policy_changes.size() && events.policy_changes[changes].deliveries <= deliveries; ++changes)
      if (LiveFeed* found = of_consumer(events.policy_changes[changes].consumer)) found->on_policy_changed(now);
  };
  for (std::size_t i = 0; i < events.deliveries.size(); ++i) {
    change_policies(i);
    if (LiveFeed* feed = of_consumer(events.deliveries[i].consumer)) feed->on_delivery(events.deliveries[i], now);
  }
  change_policies(events.deliveries.size());
  for (const queue::TimedOut& timed_out : events.timed_out)
    if (LiveFeed* feed = of_consumer(timed_out.consumer)) feed->on_timed_out();
  for (const queue::ConsumerClosed& closed : events.closed)
    if (LiveFeed* feed = of_consumer(closed.consumer)) feed->on_consumer_closed(now);
}

void LiveFeeds::on_auth(AuthAnswer answer, Now now) {
  if (LiveFeed* feed = at(answer.slot & ~LiveFeed::kAuthSlots)) feed->on_auth(std::move(answer), now);
}

bool LiveFeeds::resume(Now now) {
  if (env_.dirty.empty()) return false;
  std::swap(work_, env_.dirty);
  for (const std::uint32_t slot : work_) {
    LiveFeed* feed = at(slot);
    if (feed == nullptr) continue;
    feed->dirty = false;
    touch(slot);
    feed->resume(now);
  }
  work_.clear();
  return true;
}

void LiveFeeds::flush(Now now) {
  for (const std::uint32_t slot : touched_) {
    LiveFeed& feed = *slots_[slot];
    feed.touched = false;
    feed.flush(now);
    if (consumer_of_[slot] != feed.consumer()) {
      consumers_.erase(static_cast<std::uint64_t>(consumer_of_[slot]));
      consumer_of_[slot] = queue::ConsumerId::none;
    }
    if (feed.can_be_destroyed()) {
      remove(slot);
    } else {
      deadlines_.lower(slot, feed.next_deadline());
    }
  }
  touched_.clear();
}

void LiveFeeds::expire(Now now) {
  while (deadlines_.earliest() <= now.mono) {
    const std::uint32_t slot = deadlines_.pop();
    LiveFeed& feed = *slots_[slot];
    const Instant deadline = feed.next_deadline();
    if (deadline > now.mono) {
      deadlines_.lower(slot, deadline);
      continue;
    }
    feed.expire(now);
    touch(slot);  // flush() sets the next deadline
  }
}

void LiveFeeds::gates_changed(Now now) {
  for (const auto& feed : slots_)
    if (feed != nullptr) feed->gates_changed(now);
}

void LiveFeeds::end_all(const LiveEnd& why, Now now) {
  for (const auto& feed : slots_)
    if (feed != nullptr) feed->end(why, now);
}

void LiveFeeds::cut_all() {
  for (const auto& feed : slots_)
    if (feed != nullptr) feed->cut();
}

}  // namespace rq::broker
