#include "core/broker/http_lookup.h"

#include "core/base/json_writer.h"
#include "core/nsq/identify.h"

namespace rq::broker {
namespace {

class Lookup final : public Rendering {
 public:
  Lookup(Route route, const LookupView& self, std::vector<queue::TopicStats> topics)
      : route_(route), self_(self), topics_(std::move(topics)) {}

 private:
  enum class At : std::uint8_t { begin, channels, producer, tombstones, topics };

  bool step() override {
    switch (at_) {
      case At::begin:
        json_.begin_object();
        if (route_ == Route::topics) return list("topics", At::topics);
        if (route_ == Route::nodes) return producers();
        return list("channels", At::channels);
      case At::channels:
        if (topic_ == topics_.size()) {
          json_.end_array();
          return route_ == Route::channels ? end() : producers();
        }
        if (channel_ < topics_[topic_].channels.size()) {
          json_.value(topics_[topic_].channels[channel_++].name);
        } else {
          ++topic_;
          channel_ = 0;
        }
        return true;
      case At::producer:
        put_producer();
        if (route_ == Route::nodes) return list("tombstones", At::tombstones);
        json_.end_object().end_array();
        return end();
      case At::tombstones:  // nothing is ever tombstoned here
        if (topic_++ < topics_.size()) {
          json_.value(false);
          return true;
        }
        json_.end_array();
        return list("topics", At::topics);
      case At::topics:
        if (topic_ < topics_.size()) {
          json_.value(topics_[topic_++].name);
          return true;
        }
        json_.end_array();
        if (route_ == Route::nodes) json_.end_object().end_array();
        return end();
    }
    return false;
  }

  bool list(std::string_view key, At rows) {
    json_.key(key).begin_array();
    topic_ = 0;
    at_ = rows;
    return true;
  }
  // This Broker, or nobody while it drains.
  bool producers() {
    json_.key("producers").begin_array();
    at_ = At::producer;
    if (self_.accepting) return true;
    json_.end_array();
    return end();
  }
  void put_producer() {
    json_.begin_object();
    json_.key("remote_address").value(std::string(self_.address) + ":" + std::to_string(self_.tcp_port));
    json_.key("hostname").value(self_.address).key("broadcast_address").value(self_.address);
    json_.key("tcp_port").value(self_.tcp_port).key("http_port").value(self_.http_port);
    json_.key("version").value(nsq::server_version());
  }
  bool end() {
    json_.end_object();
    return false;
  }

  const Route route_;
  const LookupView self_;
  const std::vector<queue::TopicStats> topics_;
  At at_ = At::begin;
  std::size_t topic_ = 0, channel_ = 0;
  JsonWriter json_{text_};
};

}  // namespace

std::optional<http::Response> lookup_refusal(Route route, const http::Query& query, const queue::Engine& engine) {
  if (route != Route::lookup && route != Route::channels) return std::nullopt;
  const std::string* topic = query.find("topic");
  if (topic == nullptr || topic->empty()) return http::error_response(400, "MISSING_ARG_TOPIC");
  if (!engine.has_topic(*topic)) return http::error_response(404, "TOPIC_NOT_FOUND");
  return std::nullopt;
}

std::unique_ptr<Rendering> lookup_answer(Route route, const LookupView& self, std::vector<queue::TopicStats> topics) {
  return std::make_unique<Lookup>(route, self, std::move(topics));
}

}  // namespace rq::broker
