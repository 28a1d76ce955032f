#include "core/broker/native_topics.h"

namespace rq::broker {
namespace {

class NativeStats final : public NativeTopics {
 public:
  NativeStats(std::uint64_t node_id, WallTime now, std::vector<queue::TopicStats> topics)
      : NativeTopics(std::move(topics)), node_id_(node_id), now_(now) {}

 private:
  void begin() override {
    json_.begin_object();
    json_.key("complete").value(true).key("node_id").value(node_id_).key("collected_at_ms").value(now_.ms());
    json_.key("topics").begin_array();
  }
  void end() override { json_.end_array().end_object(); }

  const std::uint64_t node_id_;
  const WallTime now_;
};

}  // namespace

void NativeTopics::begin_topic(const queue::TopicStats& topic) {
  json_.begin_object();
  json_.key("name").value(topic.name).key("paused").value(topic.paused);
  json_.key("delivery_mode").value(topic.ttl_discard ? "TTL_DISCARD" : "RELIABLE").key("message_ttl_seconds");
  if (topic.message_ttl_seconds) {
    json_.value(*topic.message_ttl_seconds);
  } else {
    json_.null();
  }
  json_.key("ttl_discarded_messages").value(topic.ttl_discarded_messages);
  json_.key("published_count").value(topic.published_count).key("message_count").value(topic.message_count);
  json_.key("segment_count").value(topic.segment_count).key("segment_bytes").value(topic.segment_bytes);
  json_.key("last_durable_position").value(topic.last_durable_position);
  json_.key("unsynced_messages").value(topic.unsynced_messages).key("unsynced_bytes").value(topic.unsynced_bytes);
  json_.key("sync_lag_ms").value(topic.sync_lag_ms).key("channels").begin_array();
}

void NativeTopics::begin_channel(const queue::TopicStats&, const queue::ChannelStats& channel) {
  json_.begin_object();
  json_.key("name").value(channel.name).key("depth").value(channel.depth).key("message_count").value(channel.message_count);
  json_.key("in_flight_count").value(channel.in_flight_count).key("deferred_count").value(channel.deferred_count);
  json_.key("requeue_count").value(channel.requeue_count).key("timeout_count").value(channel.timeout_count);
  json_.key("paused").value(channel.paused).key("ephemeral").value(channel.ephemeral);
  json_.key("ack_cursor").value(channel.ack_cursor).key("ack_gap").value(channel.ack_gap);
  json_.end_object();
}

void NativeTopics::end_topic(const queue::TopicStats&) { json_.end_array().end_object(); }

std::unique_ptr<Rendering> native_stats_json(std::uint64_t node_id, WallTime now, std::vector<queue::TopicStats> topics) {
  return std::make_unique<NativeStats>(node_id, now, std::move(topics));
}

}  // namespace rq::broker
