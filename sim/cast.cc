#include "sim/cast.h"

#include <fmt/format.h>

#include "sim/feed_reader.h"
#include "sim/manager.h"
#include "sim/rude.h"

namespace rq::sim {

void Cast::populate() {
  const Swarm& swarm = stage_.swarm;
  const std::string tcp = swarm.config().network.tcp_address, http = swarm.config().network.http_address;
  administrator_ = add<Administrator>("admin", http);
  if (swarm.manage_gap_ms > 0) add<Manager>("manager", http);
  for (std::int64_t i = 0; i < swarm.producers; ++i)
    producers_.push_back(add<Producer>("producer-" + std::to_string(i), tcp, static_cast<std::uint32_t>(i)));
  if (swarm.ephemeral > 0)
    for (const char* channel : {"one#ephemeral", "two#ephemeral"}) subscribe(std::string(kEphemeralTopic), channel, 1);
  for (std::int64_t i = 0; i < swarm.rude; ++i) {
    const bool over_http = i == 1;
    add<Rude>("rude-" + std::to_string(i), over_http ? http : tcp, over_http);
  }
  for (std::int64_t t = 0; t < swarm.topics; ++t) {
    const std::string topic = "topic" + std::to_string(t);
    for (std::int64_t c = 0; c < swarm.channels; ++c) subscribe(topic, "channel" + std::to_string(c), swarm.consumers);
    if (swarm.ephemeral > 0) subscribe(topic, "passing#ephemeral", 1);
    for (std::int64_t f = 0; f < swarm.feeds; ++f) add<FeedReader>(fmt::format("feed-{}-{}", topic, f), http, topic);
    if (swarm.late_channel_ms > 0)
      stage_.world.at(swarm.late_channel_ms * kMillisecond, [this, topic] { subscribe(topic, "late", 1); });
  }
}

void Cast::subscribe(const std::string& topic, const std::string& channel, std::int64_t count) {
  const Swarm& swarm = stage_.swarm;
  const std::string tcp = swarm.config().network.tcp_address;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::string name = "consumer-" + std::to_string(consumers_.size());
    consumers_.push_back(add<Consumer>(name, tcp, topic, channel));
  }
  const bool moves = swarm.max_attempts > 0 || swarm.retention_s > 0;
  const std::string suffix = swarm.config().queue.dead_letter_suffix;
  if (moves && !topic.ends_with(suffix) && !channel.ends_with("#ephemeral"))
    subscribe(topic + "." + channel + suffix, "letters", 1);
}

void Cast::poke_all() {
  for (Process* actor : actors_) actor->poke();
}

void Cast::partition(Random& draws) {
  const std::size_t which = draws.below(actors_.size());
  const std::string name = actors_[which]->name();
  const std::uint64_t ways = draws.below(3);
  if (ways != 0) stage_.world.partition(name, "broker");
  if (ways != 1) stage_.world.partition("broker", name);
  for (Consumer* consumer : consumers_) consumer->doubt();
  stage_.world.at(static_cast<std::int64_t>(draws.below(5'000)) * kMillisecond, [this] {
    if (!stage_.calm) stage_.world.heal();  // the audit cuts the clients off on purpose
  });
}

void Cast::cut_off() {
  for (Process* actor : actors_) stage_.world.partition(actor->name(), "broker");
}

bool Cast::drained() {
  if (stage_.ledger.missing() > 0) return false;
  for (const Producer* producer : producers_)
    if (!producer->idle()) return false;
  // One that has yet to create its Channel brings a backlog of its own.
  for (const Consumer* consumer : consumers_)
    if (!consumer->subscribed()) return false;
  const auto& backlog = administrator_->backlog();
  return backlog && backlog->durable == 0;
}

}  // namespace rq::sim
