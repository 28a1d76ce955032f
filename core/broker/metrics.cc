#include "core/broker/metrics.h"

#include <fmt/format.h>

namespace rq::broker {
namespace {

constexpr std::uint64_t kTopicSeries = 6, kChannelSeries = 4;  // page 31 section 7.4

using Out = std::back_insert_iterator<std::string>;

void put_scalar(Out out, const char* name, const char* type, std::uint64_t value) {
  fmt::format_to(out, "# TYPE {} {}\n{} {}\n", name, type, name, value);
}

// Decimal seconds of a count of microseconds, exact, without trailing zeros.
std::string seconds_text(std::uint64_t us) {
  std::string text = fmt::format("{}.{:06}", us / 1'000'000, us % 1'000'000);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

void put_histogram(Out out, const char* name, const char* help, const Histogram& histogram) {
  fmt::format_to(out, "# HELP {} {}\n# TYPE {} histogram\n", name, help, name);
  std::uint64_t cumulative = 0;
  for (std::size_t i = 0; i < Histogram::kBoundsUs.size(); ++i) {
    cumulative += histogram.buckets[i];
    fmt::format_to(out, "{}_bucket{{le=\"{}\"}} {}\n", name, seconds_text(Histogram::kBoundsUs[i]), cumulative);
  }
  fmt::format_to(out, "{}_bucket{{le=\"+Inf\"}} {}\n{}_sum {}\n{}_count {}\n", name, histogram.count, name,
                 seconds_text(histogram.sum_us), name, histogram.count);
}

struct Sums {
  std::uint64_t messages = 0, unsynced_messages = 0, unsynced_bytes = 0, sync_lag_ms = 0;
  std::uint64_t channels = 0, depth = 0, in_flight = 0, deferred = 0, ack_gap = 0;
};

Sums sums_of(const std::vector<queue::TopicStats>& topics) {
  Sums sums;
  for (const queue::TopicStats& topic : topics) {
    sums.messages += topic.message_count;
    sums.unsynced_messages += topic.unsynced_messages;
    sums.unsynced_bytes += topic.unsynced_bytes;
    if (topic.sync_lag_ms > sums.sync_lag_ms) sums.sync_lag_ms = topic.sync_lag_ms;
    for (const queue::ChannelStats& channel : topic.channels) {
      ++sums.channels;
      sums.depth += channel.depth;
      sums.in_flight += channel.in_flight_count;
      sums.deferred += channel.deferred_count;
      sums.ack_gap += channel.ack_gap;
    }
  }
  return sums;
}

std::string label(std::string_view text) {
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

// Which rows get detailed series, in order of their names; a Topic that does not fit takes its Channels with it.
struct Chosen {
  std::vector<const queue::TopicStats*> topics;
  std::vector<std::pair<const queue::TopicStats*, const queue::ChannelStats*>> channels;
  std::uint64_t wanted = 0, emitted = 0;
};

Chosen choose(const MetricsInput& input) {
  Chosen chosen;
  const std::uint64_t budget = input.detailed ? input.max_detailed_series : 0;
  for (const queue::TopicStats& topic : input.topics) {
    chosen.wanted += kTopicSeries + kChannelSeries * topic.channels.size();
    if (budget - chosen.emitted < kTopicSeries) continue;
    chosen.emitted += kTopicSeries;
    chosen.topics.push_back(&topic);
    for (const queue::ChannelStats& channel : topic.channels) {
      if (budget - chosen.emitted < kChannelSeries) break;
      chosen.emitted += kChannelSeries;
      chosen.channels.emplace_back(&topic, &channel);
    }
  }
  return chosen;
}

void put_detailed(Out out, const Chosen& chosen) {
  using Topic = queue::TopicStats;
  using Channel = queue::ChannelStats;
  if (chosen.topics.empty()) return;
  struct TopicFamily {
    const char* name;
    const char* type;
    std::uint64_t (*value)(const Topic&);
  };
  static constexpr TopicFamily kTopicFamilies[] = {
      {"rustqueue_topic_messages", "gauge", +[](const Topic& t) { return t.message_count; }},
      {"rustqueue_topic_last_durable_position", "gauge", +[](const Topic& t) { return std::uint64_t{t.last_durable_position}; }},
      {"rustqueue_topic_publish_unsynced_messages", "gauge", +[](const Topic& t) { return t.unsynced_messages; }},
      {"rustqueue_topic_publish_unsynced_bytes", "gauge", +[](const Topic& t) { return t.unsynced_bytes; }},
      {"rustqueue_topic_ttl_discarded_messages_total", "counter", +[](const Topic& t) { return t.ttl_discarded_messages; }},
  };
  for (const TopicFamily& family : kTopicFamilies) {
    fmt::format_to(out, "# TYPE {} {}\n", family.name, family.type);
    for (const Topic* topic : chosen.topics)
      fmt::format_to(out, "{}{{topic=\"{}\"}} {}\n", family.name, label(topic->name), family.value(*topic));
  }
  constexpr const char* kLag = "rustqueue_topic_publish_sync_lag_seconds";
  fmt::format_to(out, "# TYPE {} gauge\n", kLag);
  for (const Topic* topic : chosen.topics)
    fmt::format_to(out, "{}{{topic=\"{}\"}} {}\n", kLag, label(topic->name), seconds_text(topic->sync_lag_ms * 1'000));
  struct ChannelFamily {
    const char* name;
    std::uint64_t (*value)(const Channel&);
  };
  static constexpr ChannelFamily kChannelFamilies[] = {
      {"rustqueue_channel_depth", +[](const Channel& c) { return c.depth; }},
      {"rustqueue_channel_in_flight", +[](const Channel& c) { return c.in_flight_count; }},
      {"rustqueue_channel_deferred", +[](const Channel& c) { return c.deferred_count; }},
      {"rustqueue_channel_ack_gap", +[](const Channel& c) { return c.ack_gap; }},
  };
  for (const ChannelFamily& family : kChannelFamilies) {
    fmt::format_to(out, "# TYPE {} gauge\n", family.name);
    for (const auto& [topic, channel] : chosen.channels)
      fmt::format_to(out, "{}{{topic=\"{}\",channel=\"{}\"}} {}\n", family.name, label(topic->name), label(channel->name),
                     family.value(*channel));
  }
}

}  // namespace

std::string metrics_text(const MetricsInput& input) {
  const queue::EngineMetrics& engine = input.engine;
  const BrokerCounters& counters = input.counters;
  const Sums sums = sums_of(input.topics);
  const Chosen chosen = choose(input);
  std::string text;
  const Out out(text);

  put_histogram(out, "rustqueue_storage_fsync_duration_seconds", "Making one publish group durable.", engine.barrier_us);
  put_histogram(out, "rustqueue_publish_ack_duration_seconds", "Whole publish inside the Broker.", engine.publish_ack_us);
  put_histogram(out, "rustqueue_channel_ack_duration_seconds", "Whole FIN or REQ.", engine.channel_ack_us);
  put_histogram(out, "rustqueue_payload_read_duration_seconds", "Payload from cache or disk.", engine.payload_read_us);
  put_histogram(out, "rustqueue_storage_scrub_duration_seconds", "One scrub run.", engine.scrub_us);

  const struct {
    const char* name;
    const char* type;
    std::uint64_t value;
  } scalars[] = {
      {"rustqueue_tcp_connections", "gauge", input.tcp_connections},
      {"rustqueue_http_connections", "gauge", input.http_connections},
      {"rustqueue_http_requests_total", "counter", counters.http_requests_total},
      {"rustqueue_publish_messages_total", "counter", counters.publish_messages},
      {"rustqueue_publish_bytes_total", "counter", counters.publish_bytes},
      {"rustqueue_publish_inflight_bytes", "gauge", input.publish_bytes_in_flight},
      {"rustqueue_publish_throttled_requests_total", "counter", counters.publish_throttled_requests},
      {"rustqueue_publish_throttled_bytes_total", "counter", counters.publish_throttled_bytes},
      {"rustqueue_delivered_messages_total", "counter", counters.delivered_messages},
      {"rustqueue_finished_messages_total", "counter", engine.finished_messages},
      {"rustqueue_requeued_messages_total", "counter", engine.requeued_messages},
      {"rustqueue_dead_letter_messages_total", "counter", engine.dead_letter_messages},
      {"rustqueue_retention_expired_messages_total", "counter", engine.retention_expired_messages},
      {"rustqueue_protocol_errors_total", "counter", counters.protocol_errors},
      {"rustqueue_auth_failures_total", "counter", counters.auth_failures},
      {"rustqueue_storage_errors_total", "counter", input.storage_errors},
      {"rustqueue_disk_pressure", "gauge", input.disk_pressure ? std::uint64_t{1} : std::uint64_t{0}},
      {"rustqueue_protective_evictions_total", "counter", engine.protective_evictions},
      {"rustqueue_protective_evicted_messages_total", "counter", engine.protective_evicted_messages},
      {"rustqueue_publish_group_commits_total", "counter", engine.publish_commits},
      {"rustqueue_publish_group_requests_total", "counter", engine.publish_requests},
      {"rustqueue_publish_group_max_requests", "gauge", engine.publish_group_max},
      {"rustqueue_channel_group_commits_total", "counter", engine.channel_commits},
      {"rustqueue_channel_group_requests_total", "counter", engine.channel_requests},
      {"rustqueue_channel_group_max_requests", "gauge", engine.channel_group_max},
      {"rustqueue_topics", "gauge", input.topics.size()},
      {"rustqueue_channels", "gauge", sums.channels},
      {"rustqueue_topic_messages_total", "gauge", sums.messages},
      {"rustqueue_ttl_discarded_messages_total", "counter", engine.ttl_discarded_messages},
      {"rustqueue_publish_unsynced_messages", "gauge", sums.unsynced_messages},
      {"rustqueue_publish_unsynced_bytes", "gauge", sums.unsynced_bytes},
      {"rustqueue_channel_depth_total", "gauge", sums.depth},
      {"rustqueue_channel_in_flight_total", "gauge", sums.in_flight},
      {"rustqueue_channel_deferred_total", "gauge", sums.deferred},
      {"rustqueue_channel_ack_gap_total", "gauge", sums.ack_gap},
      {"rustqueue_delivery_inflight_bytes", "gauge", engine.delivery_bytes},
      {"rustqueue_delivery_inflight_messages", "gauge", engine.in_flight_messages},
      {"rustqueue_delivery_budget_waiters", "gauge", engine.delivery_waiters},
      {"rustqueue_delivery_budget_waits_total", "counter", engine.delivery_waits},
      {"rustqueue_detailed_queue_metric_series", "gauge", chosen.emitted},
      {"rustqueue_detailed_queue_metric_series_omitted", "gauge", chosen.wanted - chosen.emitted},
  };
  for (const auto& scalar : scalars) put_scalar(out, scalar.name, scalar.type, scalar.value);
  constexpr const char* kLag = "rustqueue_publish_sync_lag_seconds";
  fmt::format_to(out, "# TYPE {} gauge\n{} {}\n", kLag, kLag, seconds_text(sums.sync_lag_ms * 1'000));
  put_detailed(out, chosen);
  return text;
}

}  // namespace rq::broker
