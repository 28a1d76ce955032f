// Detailed series: one line for each Topic or Channel and family, within a budget (page 31 section 7.4).
#include <fmt/format.h>

#include <utility>

#include "core/broker/metrics.h"
#include "core/broker/metrics_text.h"

namespace rq::broker {
namespace {

using Topic = queue::TopicStats;
using Channel = queue::ChannelStats;

constexpr std::uint64_t kTopicSeries = 6, kChannelSeries = 4;

struct TopicFamily {
  const char* name;
  const char* type;
  const char* help;
  std::string (*value)(const Topic&);
};
constexpr TopicFamily kTopicFamilies[] = {
    {"rustqueue_topic_messages", "gauge", "Stored messages of the Topic.",
     +[](const Topic& t) { return std::to_string(t.message_count); }},
    {"rustqueue_topic_last_durable_position", "gauge", "Its last durable position.",
     +[](const Topic& t) { return std::to_string(t.last_durable_position); }},
    {"rustqueue_topic_publish_unsynced_messages", "gauge", "Its messages a power loss could take.",
     +[](const Topic& t) { return std::to_string(t.unsynced_messages); }},
    {"rustqueue_topic_publish_unsynced_bytes", "gauge", "Their bytes.",
     +[](const Topic& t) { return std::to_string(t.unsynced_bytes); }},
    {"rustqueue_topic_publish_sync_lag_seconds", "gauge", "Age of the oldest of them.",
     +[](const Topic& t) { return seconds_text(t.sync_lag_ms * 1'000); }},
    {"rustqueue_topic_ttl_discarded_messages_total", "counter", "Its messages discarded at their TTL.",
     +[](const Topic& t) { return std::to_string(t.ttl_discarded_messages); }},
};
static_assert(std::size(kTopicFamilies) == kTopicSeries);

struct ChannelFamily {
  const char* name;
  const char* help;
  std::uint64_t (*value)(const Channel&);
};
constexpr ChannelFamily kChannelFamilies[] = {
    {"rustqueue_channel_depth", "Outstanding messages of the Channel.", +[](const Channel& c) { return c.depth; }},
    {"rustqueue_channel_in_flight", "In flight.", +[](const Channel& c) { return c.in_flight_count; }},
    {"rustqueue_channel_deferred", "Deferred.", +[](const Channel& c) { return c.deferred_count; }},
    {"rustqueue_channel_ack_gap", "Finished above the oldest unfinished one.", +[](const Channel& c) { return c.ack_gap; }},
};
static_assert(std::size(kChannelFamilies) == kChannelSeries);

}  // namespace

std::string metrics_label(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\' || c == '"') out.push_back('\\');
    if (c == '\n') {
      out += "\\n";
    } else {
      out.push_back(c);
    }
  }
  return out;
}

// A Topic that does not fit takes its Channels with it.
DetailedSeries::DetailedSeries(MetricsText& out, const std::vector<Topic>& topics, std::uint64_t budget) {
  std::uint64_t wanted = 0, emitted = 0;
  for (const Topic& topic : topics) {
    wanted += kTopicSeries + kChannelSeries * topic.channels.size();
    if (budget - emitted < kTopicSeries) continue;
    emitted += kTopicSeries;
    topics_.push_back(&topic);
    for (const Channel& channel : topic.channels) {
      if (budget - emitted < kChannelSeries) break;
      emitted += kChannelSeries;
      channels_.emplace_back(&topic, &channel);
    }
  }
  out.gauge("rustqueue_detailed_queue_metric_series", "Detailed series below.", emitted);
  out.gauge("rustqueue_detailed_queue_metric_series_omitted", "Detailed series left out.", wanted - emitted);
}

bool DetailedSeries::step(MetricsText& out) {
  const bool of_topics = family_ < kTopicSeries;
  const std::size_t rows = of_topics ? topics_.size() : channels_.size();
  if (rows == 0 || family_ == kTopicSeries + kChannelSeries) return false;
  if (of_topics) {
    const TopicFamily& family = kTopicFamilies[family_];
    if (row_ == 0) out.family(family.name, family.type, family.help);
    const Topic& topic = *topics_[row_];
    out.sample(family.name, fmt::format("topic=\"{}\"", metrics_label(topic.name)), family.value(topic));
  } else {
    const ChannelFamily& family = kChannelFamilies[family_ - kTopicSeries];
    if (row_ == 0) out.family(family.name, "gauge", family.help);
    const auto& [topic, channel] = channels_[row_];
    out.sample(family.name, fmt::format("topic=\"{}\",channel=\"{}\"", metrics_label(topic->name), metrics_label(channel->name)),
               std::to_string(family.value(*channel)));
  }
  if (++row_ == rows) {
    row_ = 0;
    ++family_;
  }
  return true;
}

}  // namespace rq::broker
