#include "sim/stats_watch.h"

#include <fmt/format.h>

#include <boost/json.hpp>

namespace rq::sim {
namespace {

std::uint64_t number(const boost::json::value& row, const char* key) { return row.at(key).to_number<std::uint64_t>(); }

std::string name_of(std::string_view topic, std::string_view channel) {
  return channel.empty() ? std::string(topic) : fmt::format("{}/{}", topic, channel);
}

}  // namespace

std::string StatsWatch::look(const boost::json::value& document) {
  const auto backwards = [&](const std::string& name, const char* key, std::uint64_t& seen, std::uint64_t shown) -> std::string {
    const std::uint64_t before = std::exchange(seen, shown);
    if (shown >= before) return {};
    return fmt::format("{}: {} was {} and is {}", name, key, before, shown);
  };
  const auto changed = [](const std::string& name, const Seen& seen, const boost::json::value& row) -> std::string {
    const bool shown = row.at("paused").as_bool();
    if (seen.pause_doubtful || seen.paused.value_or(shown) == shown) return {};
    return fmt::format("{}: paused is {} and was answered otherwise", name, shown);
  };
  for (const boost::json::value& topic : document.at("topics").as_array()) {
    const std::string topic_name(topic.at("topic_name").as_string());
    if (topic_name.ends_with("#ephemeral")) continue;  // goes with its last Channel
    Seen& of_topic = seen_[topic_name];
    if (of_topic.removing || of_topic.doubtful) continue;
    std::string wrong;
    wrong = backwards(topic_name, "message_count", of_topic.messages, number(topic, "message_count"));
    if (wrong.empty()) wrong = changed(topic_name, of_topic, topic);
    if (!wrong.empty()) return wrong;
    for (const boost::json::value& channel : topic.at("channels").as_array()) {
      const std::string name = topic_name + "/" + std::string(channel.at("channel_name").as_string());
      const std::uint64_t in_flight = number(channel, "in_flight_count"), deferred = number(channel, "deferred_count");
      if (in_flight > (1ull << 40) || deferred > (1ull << 40) || number(channel, "depth") > (1ull << 40))
        return fmt::format("{}: a gauge fell below zero (I-33)", name);
      if (name.ends_with("#ephemeral")) continue;  // does not survive a restart
      Seen& of_channel = seen_[name];
      if (of_channel.removing || of_channel.doubtful) continue;
      wrong = backwards(name, "message_count", of_channel.messages, number(channel, "message_count"));
      if (wrong.empty()) wrong = backwards(name, "requeue_count", of_channel.requeues, number(channel, "requeue_count"));
      if (wrong.empty()) wrong = backwards(name, "timeout_count", of_channel.timeouts, number(channel, "timeout_count"));
      if (wrong.empty()) wrong = changed(name, of_channel, channel);
      if (!wrong.empty()) return wrong;
    }
  }
  return {};
}

template <class Change>
void StatsWatch::change(std::string_view topic, std::string_view channel, Change change) {
  const std::string name = name_of(topic, channel);
  const std::string inside = name + "/";
  change(seen_[name]);
  for (auto& [key, seen] : seen_)
    if (key.starts_with(inside)) change(seen);
}

void StatsWatch::pause_sent(std::string_view topic, std::string_view channel) { seen_[name_of(topic, channel)].paused.reset(); }

void StatsWatch::pause_ended(std::string_view topic, std::string_view channel, std::optional<bool> paused, bool answered) {
  Seen& seen = seen_[name_of(topic, channel)];
  seen.paused = paused;
  seen.pause_doubtful = seen.pause_doubtful || !answered;
}

void StatsWatch::removal_sent(std::string_view topic, std::string_view channel) {
  change(topic, channel, [](Seen& seen) { seen.removing = true; });
}

void StatsWatch::removal_ended(std::string_view topic, std::string_view channel, bool answered) {
  change(topic, channel, [answered](Seen& seen) {
    seen = {.doubtful = seen.doubtful || !answered, .pause_doubtful = seen.pause_doubtful, .paused = {}};
  });
}

}  // namespace rq::sim
