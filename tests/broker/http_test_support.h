// Helpers for HTTP scenarios: JSON replies, and what a Channel then delivers.
#pragma once

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <string>
#include <vector>

#include "sim/harness.h"

namespace rq::sim {

inline boost::json::value json_of(const HttpReply& reply) {
  boost::json::error_code code;
  boost::json::value value = boost::json::parse(reply.body, code);
  EXPECT_FALSE(code.failed()) << reply.status << " " << reply.body;
  return value;
}

inline std::string message_of(const HttpReply& reply) {
  const boost::json::value value = json_of(reply);
  const auto* object = value.if_object();
  if (object == nullptr || !object->contains("message")) return "";
  return std::string(object->at("message").as_string());
}

// "404 TOPIC_NOT_FOUND"; "200" for anything else than an error.
inline std::string result_of(const HttpReply& reply) {
  std::string text = std::to_string(reply.status);
  if (reply.status >= 400) text += " " + message_of(reply);
  return text;
}

// Bodies that a new consumer of the Channel gets within a second, finished one by one.
inline std::vector<std::string> drain(BrokerHarness& h, std::string_view topic, std::string_view channel) {
  Client& consumer = h.consumer(topic, channel, 100);
  std::vector<std::string> bodies;
  while (auto message = consumer.message(1'000)) {
    bodies.push_back(message->body);
    consumer.fin(message->id);
  }
  consumer.close();
  return bodies;
}

inline const boost::json::object& first_topic(const boost::json::value& stats) {
  return stats.as_object().at("topics").as_array().at(0).as_object();
}
inline const boost::json::object& first_channel(const boost::json::value& stats) {
  return first_topic(stats).at("channels").as_array().at(0).as_object();
}

}  // namespace rq::sim
