#include "core/broker/http_lookup.h"

#include "core/base/json_writer.h"
#include "core/nsq/identify.h"

namespace rq::broker {
namespace {

using Topics = std::vector<queue::TopicStats>;

void put_channels(JsonWriter& json, const Topics& topics) {
  json.key("channels").begin_array();
  for (const queue::TopicStats& topic : topics)
    for (const queue::ChannelStats& channel : topic.channels) json.value(channel.name);
  json.end_array();
}

void put_topics(JsonWriter& json, const Topics& topics) {
  json.key("topics").begin_array();
  for (const queue::TopicStats& topic : topics) json.value(topic.name);
  json.end_array();
}

// This Broker, or nobody while it drains. With `topics`, as /nodes lists it: nothing is ever tombstoned here.
void put_producers(JsonWriter& json, const LookupView& view, const Topics* topics) {
  json.key("producers").begin_array();
  if (view.accepting) {
    json.begin_object();
    json.key("remote_address").value(std::string(view.address) + ":" + std::to_string(view.tcp_port));
    json.key("hostname").value(view.address).key("broadcast_address").value(view.address);
    json.key("tcp_port").value(view.tcp_port).key("http_port").value(view.http_port);
    json.key("version").value(nsq::server_version());
    if (topics != nullptr) {
      json.key("tombstones").begin_array();
      for (std::size_t i = 0; i < topics->size(); ++i) json.value(false);
      json.end_array();
      put_topics(json, *topics);
    }
    json.end_object();
  }
  json.end_array();
}

}  // namespace

std::optional<http::Response> lookup_refusal(Route route, const http::Query& query, const queue::Engine& engine) {
  if (route != Route::lookup && route != Route::channels) return std::nullopt;
  const std::string* topic = query.find("topic");
  if (topic == nullptr || topic->empty()) return http::error_response(400, "MISSING_ARG_TOPIC");
  if (!engine.has_topic(*topic)) return http::error_response(404, "TOPIC_NOT_FOUND");
  return std::nullopt;
}

http::Response lookup_answer(Route route, const LookupView& view, const Topics& topics) {
  std::string body;
  JsonWriter json(body);
  json.begin_object();
  switch (route) {
    case Route::topics:
      put_topics(json, topics);
      break;
    case Route::nodes:
      put_producers(json, view, &topics);
      break;
    case Route::channels:
      put_channels(json, topics);
      break;
    default:
      put_channels(json, topics);
      put_producers(json, view, nullptr);
      break;
  }
  json.end_object();
  return http::json_response(std::move(body));
}

}  // namespace rq::broker
