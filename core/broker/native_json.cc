#include "core/broker/native_json.h"

#include "core/broker/http_publish.h"
#include "core/broker/queue_totals.h"
#include "core/broker/stats_walk.h"

namespace rq::broker {
namespace {

void put_binary(JsonWriter& json) {
  json.begin_object().key("binary_version").value(RQ_VERSION).key("data_format").value(storage::kDataFormat);
  json.key("minimum_reader_feature_level").value(storage::kFeatureLevelMin);
  json.key("maximum_reader_feature_level").value(storage::kFeatureLevelMax);
  json.key("maximum_writer_feature_level").value(kWriterLevelMax).key("maximum_message_bytes").value(kMessageBytesCeiling);
  json.key("maximum_batch_bytes").value(kBatchBytesCeiling).key("websocket_ttl_live_v1").value(true);
  json.end_object();
}

void put_head(JsonWriter& json, ServerView& view, bool consume_ready) {
  json.key("format").value(storage::kDataFormat).key("revision").value(view.engine().registry_revision());
  json.key("node_id").value(view.config().node.id).key("ready").value(consume_ready);
  json.key("publish_ready").value(publish_ready(view)).key("consume_ready").value(consume_ready);
}

class Registry final : public StatsWalk {
 public:
  Registry(ServerView& server, std::vector<queue::TopicStats> topics)
      : StatsWalk(topics_only(std::move(topics))), server_(server) {}

 private:
  void begin() override {
    const Config& config = server_.config();
    const QueueTotals sums = totals_of(view_.topics);
    json_.begin_object();
    put_head(json_, server_, head_consume_ready(server_) && (server_.accepting() || sums.any()));
    json_.key("broadcast_address").value(config.node.broadcast_address).key("tcp_port").value(config.network.advertised_tcp_port);
    json_.key("http_port").value(config.network.advertised_http_port).key("stored_messages").value(sums.messages);
    json_.key("depth").value(sums.depth).key("in_flight").value(sums.in_flight).key("topics").begin_array();
  }
  void begin_topic(const queue::TopicStats& topic) override {
    json_.begin_object().key("name").value(topic.name).key("paused").value(topic.paused).key("channels").begin_array();
  }
  void begin_channel(const queue::TopicStats&, const queue::ChannelStats& channel) override { json_.value(channel.name); }
  void end_topic(const queue::TopicStats& topic) override {
    json_.end_array().key("stored_messages").value(topic.message_count).end_object();
  }
  void end() override {
    json_.end_array().key("compatibility");
    put_capabilities(json_, server_.engine().identity());
    json_.end_object();
  }

  ServerView& server_;
  JsonWriter json_{text_};
};

}  // namespace

void put_capabilities(JsonWriter& json, const storage::BrokerImage& identity) {
  json.begin_object().key("binary");
  put_binary(json);
  json.key("storage").begin_object().key("data_format").value(storage::kDataFormat);
  json.key("active_writer_feature_level").value(identity.active_writer_level);
  json.key("minimum_reader_feature_level").value(identity.minimum_reader_level);
  json.key("generation").value(identity.generation).end_object().end_object();
}

bool publish_ready(ServerView& view) {
  return view.accepting() && view.engine().fault() == nullptr && view.engine().fences_ready() && !view.disk_pressure();
}

bool head_consume_ready(ServerView& view) {
  return view.delivering() && view.engine().fault() == nullptr && view.engine().fences_ready();
}

std::string binary_capabilities_json() {
  std::string out;
  JsonWriter json(out);
  put_binary(json);
  return out;
}

std::string capabilities_json(const storage::BrokerImage& identity) {
  std::string out;
  JsonWriter json(out);
  put_capabilities(json, identity);
  return out;
}

std::string registry_head_json(ServerView& view) {
  std::string out;
  JsonWriter json(out);
  json.begin_object();
  put_head(json, view, head_consume_ready(view));
  json.end_object();
  return out;
}

std::unique_ptr<Rendering> registry_json(ServerView& view, std::vector<queue::TopicStats> topics) {
  return std::make_unique<Registry>(view, std::move(topics));
}

// Quiesced also waits for every FIN and REQ to be durable: until then a message has its slot.
std::string drain_json(ServerView& view, const std::vector<queue::TopicStats>& topics) {
  const QueueTotals sums = totals_of(topics);
  const std::uint64_t publish_bytes = view.publish_bytes_in_flight(), delivery_bytes = view.engine().metrics().delivery_bytes;
  const bool no_bytes = publish_bytes == 0 && delivery_bytes == 0;
  const bool settled = sums.in_flight == 0 && view.engine().metrics().in_flight_messages == 0;
  const bool empty = !sums.any() && no_bytes;
  std::string out;
  JsonWriter json(out);
  json.begin_object().key("draining").value(!view.accepting()).key("delivery_frozen").value(!view.delivering());
  json.key("quiesced").value(!view.accepting() && !view.delivering() && settled && no_bytes);
  json.key("empty").value(empty).key("drained").value(empty);
  json.key("stored_messages").value(sums.messages).key("depth").value(sums.depth).key("in_flight").value(sums.in_flight);
  json.key("publish_inflight_bytes").value(publish_bytes).key("delivery_inflight_bytes").value(delivery_bytes);
  json.end_object();
  return out;
}

std::string managed_json(const queue::ManagedDone& done) {
  std::string out;
  JsonWriter json(out);
  json.begin_object().key("revision").value(done.revision).key("changed").value(done.changed).end_object();
  return out;
}

http::Response native_outcome(const queue::Outcome& outcome) {
  using queue::Code;
  switch (outcome.code) {
    case Code::bad_topic_name:
      return http::error_response(400, "E_BAD_TOPIC", outcome.detail);
    case Code::bad_channel_name:
      return http::error_response(400, "E_BAD_CHANNEL", outcome.detail);
    case Code::topic_not_found:
      return http::error_response(404, "E_BAD_TOPIC", outcome.detail);
    case Code::channel_not_found:
      return http::error_response(404, "E_BAD_CHANNEL", outcome.detail);
    case Code::batch_too_large:
      return http::error_response(400, "E_BAD_BODY", outcome.detail);
    default:
      return outcome_response(outcome);
  }
}

}  // namespace rq::broker
