#include "core/broker/live_feeds.h"

#include <memory>
#include <utility>

#include "core/base/check.h"

namespace rq::broker {

bool LiveFeeds::room_for(std::string_view topic) const {
  if (size() >= env_.config.websocket.max_connections) return false;
  const auto found = of_topic_.find(topic);
  return found == of_topic_.end() || found->second < env_.config.websocket.max_connections_per_topic;
}

void LiveFeeds::add(LiveStart start, Now now) {
  ++of_topic_[start.topic];
  std::optional<std::string> secret = std::move(start.secret);
  LiveFeed& feed =
      table_.add([&](std::uint32_t slot) { return std::make_unique<LiveFeed>(env_, slot, ++number_, std::move(start), now); });
  feed.begin(std::move(secret), now);
}

std::uint64_t LiveFeeds::connections() const {
  std::uint64_t upgraded = 0;
  table_.for_each([&](const LiveFeed& feed) { upgraded += feed.upgraded() ? 1 : 0; });
  return upgraded;
}

void LiveFeeds::clients(std::vector<ClientRow>& out) const {
  table_.for_each([&](const LiveFeed& feed) {
    if (feed.upgraded()) out.push_back(feed.row());
  });
}

void LiveFeeds::route(const queue::Events& events, Now now) {
  if (size() == 0) return;
  for (const queue::SubscribeDone& done : events.subscribed) {
    if (waiter_kind(done.waiter) != WaiterKind::live_feed) continue;
    const auto slot = static_cast<std::uint32_t>(static_cast<std::uint64_t>(done.waiter));
    LiveFeed* feed = table_.at(slot);
    RQ_CHECK(feed != nullptr);
    feed->on_subscribed(done, now);
    table_.note_consumer(slot);
  }
  if (!table_.has_consumers()) return;
  in_order(
      events,
      [&](const queue::Delivery& delivery) {
        if (LiveFeed* feed = table_.of_consumer(delivery.consumer)) feed->on_delivery(delivery, now);
      },
      [&](queue::ConsumerId consumer) {
        if (LiveFeed* feed = table_.of_consumer(consumer)) feed->on_policy_changed(now);
      });
  for (const queue::TimedOut& timed_out : events.timed_out)
    if (LiveFeed* feed = table_.of_consumer(timed_out.consumer)) feed->on_timed_out();
  for (const queue::ConsumerClosed& closed : events.closed)
    if (LiveFeed* feed = table_.of_consumer(closed.consumer)) feed->on_consumer_closed(now);
}

void LiveFeeds::on_auth(AuthAnswer answer, Now now) {
  if (LiveFeed* feed = table_.at(answer.slot & ~LiveFeed::kAuthSlots)) feed->on_auth(std::move(answer), now);
}

void LiveFeeds::flush(Now now) {
  table_.flush(now, [&](const LiveFeed& feed) {
    const auto topic = of_topic_.find(feed.topic());
    if (--topic->second == 0) of_topic_.erase(topic);
  });
}

void LiveFeeds::gates_changed(Now now) {
  table_.for_each([&](LiveFeed& feed) { feed.gates_changed(now); });
}

void LiveFeeds::end_all(const LiveEnd& why, Now now) {
  table_.for_each([&](LiveFeed& feed) { feed.end(why, now); });
}

void LiveFeeds::cut_all() {
  table_.for_each([](LiveFeed& feed) { feed.cut(); });
}

}  // namespace rq::broker
