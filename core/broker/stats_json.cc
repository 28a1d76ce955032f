// /stats as nsqd prints it in JSON, and the native /v1/stats. Keys stand in the order of page 10 section 6.6; keys of our own
// follow.
#include <algorithm>
#include <array>

#include "core/base/json_writer.h"
#include "core/broker/stats_view.h"

namespace rq::broker {
namespace {

// nsqadmin stops working on a Topic or Channel without this object (D-36).
void put_latency(JsonWriter& json) {
  json.key("e2e_processing_latency").begin_object();
  json.key("count").value(0).key("percentiles").null();
  json.end_object();
}

void put_client(JsonWriter& json, const ClientRow& row, const std::string& topic_filter) {
  json.begin_object();
  json.key("client_id").value(row.client_id).key("hostname").value(row.hostname).key("version").value("V2");
  json.key("remote_address").value(row.remote_address).key("state").value(row.state);
  json.key("ready_count").value(row.ready_count).key("in_flight_count").value(row.in_flight_count);
  json.key("message_count").value(row.message_count).key("finish_count").value(row.finish_count);
  json.key("requeue_count").value(row.requeue_count).key("connect_ts").value(row.connect_ts);
  json.key("sample_rate").value(row.sample_rate).key("deflate").value(row.deflate).key("snappy").value(row.snappy);
  json.key("user_agent").value(row.user_agent);
  if (row.authed) json.key("authed").value(true);
  if (!row.auth_identity.empty()) json.key("auth_identity").value(row.auth_identity);
  if (!row.auth_identity_url.empty()) json.key("auth_identity_url").value(row.auth_identity_url);
  bool counts = false;
  for (const auto& [topic, count] : row.pub_counts) {
    if (!topic_filter.empty() && topic != topic_filter) continue;
    if (!counts) json.key("pub_counts").begin_array();
    counts = true;
    json.begin_object().key("topic").value(topic).key("count").value(count).end_object();
  }
  if (counts) json.end_array();
  json.key("tls").value(row.tls).key("tls_cipher_suite").value(row.tls_cipher_suite).key("tls_version").value(row.tls_version);
  json.key("tls_negotiated_protocol").value("").key("tls_negotiated_protocol_is_mutual").value(row.tls);
  json.end_object();
}

void put_channel(JsonWriter& json, const StatsView& view, const ClientIndex& index, const queue::TopicStats& topic,
                 const queue::ChannelStats& channel) {
  const std::uint64_t depth = waiting_depth(topic, channel);
  json.begin_object();
  json.key("channel_name").value(channel.name).key("depth").value(depth).key("backend_depth").value(depth);
  json.key("in_flight_count").value(channel.in_flight_count).key("deferred_count").value(channel.deferred_count);
  json.key("message_count").value(routed_count(topic, channel)).key("requeue_count").value(channel.requeue_count);
  json.key("timeout_count").value(channel.timeout_count).key("client_count").value(std::uint64_t{channel.consumers.size()});
  json.key("clients").begin_array();
  if (view.query.include_clients) {
    for (const queue::ConsumerId consumer : channel.consumers)
      if (const ClientRow* row = index.find(consumer)) put_client(json, *row, view.query.topic);
  }
  json.end_array();
  json.key("paused").value(channel.paused);
  put_latency(json);
  json.key("name").value(channel.name).key("memory_depth").value(0);
  json.key("blocked_by_ack_window").value(channel.blocked_by_ack_window);
  json.end_object();
}

void put_topic(JsonWriter& json, const StatsView& view, const ClientIndex& index, const queue::TopicStats& topic) {
  json.begin_object();
  json.key("topic_name").value(topic.name);
  json.key("channels").begin_array();
  for (const queue::ChannelStats& channel : topic.channels) put_channel(json, view, index, topic, channel);
  json.end_array();
  json.key("depth").value(topic.unrouted_depth).key("backend_depth").value(topic.unrouted_depth);
  json.key("message_count").value(topic.published_count).key("message_bytes").value(topic.published_bytes);
  json.key("paused").value(topic.paused);
  put_latency(json);
  json.key("name").value(topic.name).key("memory_depth").value(0);
  json.end_object();
}

}  // namespace

std::uint64_t waiting_depth(const queue::TopicStats& topic, const queue::ChannelStats& channel) {
  const std::uint64_t held_back = topic.paused ? topic.unrouted_depth : 0;
  const std::uint64_t taken = channel.in_flight_count + channel.deferred_count + held_back;
  return channel.depth > taken ? channel.depth - taken : 0;
}

std::uint64_t routed_count(const queue::TopicStats& topic, const queue::ChannelStats& channel) {
  if (!topic.paused) return channel.message_count;
  // What is not durable yet is in no count (D-25).
  const std::uint64_t held_back = topic.unrouted_depth - std::min(topic.unrouted_depth, topic.visible_unsynced);
  return channel.message_count - std::min(channel.message_count, held_back);
}

ClientIndex::ClientIndex(const std::vector<ClientRow>& clients) {
  for (const ClientRow& row : clients)
    if (row.consumer != queue::ConsumerId::none) rows_.emplace_back(static_cast<std::uint64_t>(row.consumer), &row);
  std::sort(rows_.begin(), rows_.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
}

const ClientRow* ClientIndex::find(queue::ConsumerId consumer) const {
  const auto id = static_cast<std::uint64_t>(consumer);
  const auto at =
      std::lower_bound(rows_.begin(), rows_.end(), id, [](const auto& row, std::uint64_t b) { return row.first < b; });
  return at != rows_.end() && at->first == id ? at->second : nullptr;
}

std::string stats_json(const StatsView& view) {
  static constexpr std::array<std::string_view, 9> kMemory = {"heap_objects",        "heap_idle_bytes",   "heap_in_use_bytes",
                                                              "heap_released_bytes", "gc_pause_usec_100", "gc_pause_usec_99",
                                                              "gc_pause_usec_95",    "next_gc_bytes",     "gc_total_runs"};
  const ClientIndex index(view.clients);
  std::string out;
  JsonWriter json(out);
  json.begin_object();
  json.key("version").value(view.version).key("health").value(view.health).key("start_time").value(view.start_time_unix);
  json.key("topics").begin_array();
  for (const queue::TopicStats& topic : view.topics) put_topic(json, view, index, topic);
  json.end_array();
  if (view.query.include_mem) {
    json.key("memory").begin_object();
    for (const std::string_view key : kMemory) json.key(key).value(0);
    json.end_object();
  }
  json.key("producers").begin_array();
  if (view.query.include_clients) {
    for (const ClientRow& row : view.clients)
      if (!row.pub_counts.empty()) put_client(json, row, view.query.topic);
  }
  json.end_array();
  json.end_object();
  return out;
}

namespace {

void put_native_channel(JsonWriter& json, const queue::ChannelStats& channel) {
  json.begin_object();
  json.key("name").value(channel.name).key("depth").value(channel.depth).key("message_count").value(channel.message_count);
  json.key("in_flight_count").value(channel.in_flight_count).key("deferred_count").value(channel.deferred_count);
  json.key("requeue_count").value(channel.requeue_count).key("timeout_count").value(channel.timeout_count);
  json.key("paused").value(channel.paused).key("ephemeral").value(channel.ephemeral);
  json.key("ack_cursor").value(channel.ack_cursor).key("ack_gap").value(channel.ack_gap);
  json.end_object();
}

}  // namespace

void put_native_topics(JsonWriter& json, const std::vector<queue::TopicStats>& topics) {
  json.begin_array();
  for (const queue::TopicStats& topic : topics) {
    json.begin_object();
    json.key("name").value(topic.name).key("paused").value(topic.paused);
    json.key("delivery_mode").value(topic.ttl_discard ? "TTL_DISCARD" : "RELIABLE").key("message_ttl_seconds");
    if (topic.message_ttl_seconds) {
      json.value(*topic.message_ttl_seconds);
    } else {
      json.null();
    }
    json.key("ttl_discarded_messages").value(topic.ttl_discarded_messages);
    json.key("published_count").value(topic.published_count).key("message_count").value(topic.message_count);
    json.key("segment_count").value(topic.segment_count).key("segment_bytes").value(topic.segment_bytes);
    json.key("last_durable_position").value(topic.last_durable_position);
    json.key("unsynced_messages").value(topic.unsynced_messages).key("unsynced_bytes").value(topic.unsynced_bytes);
    json.key("sync_lag_ms").value(topic.sync_lag_ms).key("channels").begin_array();
    for (const queue::ChannelStats& channel : topic.channels) put_native_channel(json, channel);
    json.end_array().end_object();
  }
  json.end_array();
}

std::string native_stats_json(std::uint64_t node_id, WallTime now, const std::vector<queue::TopicStats>& topics) {
  std::string out;
  JsonWriter json(out);
  json.begin_object();
  json.key("complete").value(true).key("node_id").value(node_id).key("collected_at_ms").value(now.ms());
  json.key("topics");
  put_native_topics(json, topics);
  json.end_object();
  return out;
}

}  // namespace rq::broker
