// /stats as nsqd prints it in JSON. Keys stand in the order of page 10 section 6.6; keys of our own follow.
#include "core/base/json_writer.h"
#include "core/broker/stats_walk.h"

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

class StatsJson final : public StatsWalk {
 public:
  explicit StatsJson(StatsView view) : StatsWalk(std::move(view)) {}

 private:
  void begin() override {
    json_.begin_object();
    json_.key("version").value(view_.version).key("health").value(view_.health).key("start_time").value(view_.start_time_unix);
    json_.key("topics").begin_array();
  }
  void begin_topic(const queue::TopicStats& topic) override {
    json_.begin_object();
    json_.key("topic_name").value(topic.name);
    json_.key("channels").begin_array();
  }
  void begin_channel(const queue::TopicStats& topic, const queue::ChannelStats& channel) override {
    const std::uint64_t depth = waiting_depth(topic, channel);
    json_.begin_object();
    json_.key("channel_name").value(channel.name).key("depth").value(depth).key("backend_depth").value(depth);
    json_.key("in_flight_count").value(channel.in_flight_count);
    json_.key("deferred_count").value(channel.deferred_count - channel.held_deferred);
    json_.key("message_count").value(routed_count(topic, channel)).key("requeue_count").value(channel.requeue_count);
    json_.key("timeout_count").value(channel.timeout_count).key("client_count").value(std::uint64_t{channel.consumers.size()});
    json_.key("clients").begin_array();
  }
  void consumer(const ClientRow& row) override { put_client(json_, row, view_.query.topic); }
  void end_channel(const queue::ChannelStats& channel) override {
    json_.end_array();
    json_.key("paused").value(channel.paused);
    put_latency(json_);
    json_.key("name").value(channel.name).key("memory_depth").value(0);
    json_.key("blocked_by_ack_window").value(channel.blocked_by_ack_window);
    json_.end_object();
  }
  void end_topic(const queue::TopicStats& topic) override {
    json_.end_array();
    json_.key("depth").value(topic.unrouted_depth).key("backend_depth").value(topic.unrouted_depth);
    json_.key("message_count").value(topic.published_count).key("message_bytes").value(topic.published_bytes);
    json_.key("paused").value(topic.paused);
    put_latency(json_);
    json_.key("name").value(topic.name).key("memory_depth").value(0);
    json_.end_object();
  }
  void end_topics() override {
    json_.end_array();
    if (view_.query.include_mem) {
      json_.key("memory").begin_object();
      for (const std::string_view key : kMemoryKeys) json_.key(key).value(0);
      json_.end_object();
    }
    json_.key("producers").begin_array();
  }
  void producer(const ClientRow& row) override { put_client(json_, row, view_.query.topic); }
  void end() override { json_.end_array().end_object(); }

  JsonWriter json_{text_};
};

}  // namespace

std::unique_ptr<Rendering> stats_json(StatsView view) { return std::make_unique<StatsJson>(std::move(view)); }

}  // namespace rq::broker
