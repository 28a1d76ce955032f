// Helpers of the NSQ scenarios: one Broker in the simulated world and scripted connections.
#pragma once

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/bytes.h"
#include "sim/harness.h"

namespace rq::broker::test {

using sim::BrokerHarness;
using sim::Client;
using sim::Frame;

inline std::string int32(std::uint32_t value) {
  std::string out;
  put32(out, value);
  return out;
}

inline std::string identify(std::string_view json) {
  return "IDENTIFY\n" + int32(static_cast<std::uint32_t>(json.size())) + std::string(json);
}

// The next answer is a response with that payload.
#define EXPECT_RESPONSE(client, text)               \
  do {                                              \
    const ::rq::sim::Frame got = (client).answer(); \
    EXPECT_EQ(got.type, 0);                         \
    EXPECT_EQ(got.payload, text);                   \
  } while (false)

// The next answer is an error with exactly that text.
#define EXPECT_ERROR(client, text)                  \
  do {                                              \
    const ::rq::sim::Frame got = (client).answer(); \
    EXPECT_EQ(got.type, 1);                         \
    EXPECT_EQ(got.payload, text);                   \
  } while (false)

// ... and the Broker closes the connection without anything behind it.
#define EXPECT_FATAL(client, text)               \
  do {                                           \
    EXPECT_ERROR(client, text);                  \
    EXPECT_TRUE((client).wait_closed());         \
    EXPECT_FALSE((client).was_reset());          \
    EXPECT_TRUE((client).take_frames().empty()); \
  } while (false)

// The connection still works: it publishes and gets its OK.
#define EXPECT_USABLE(client)          \
  do {                                 \
    (client).pub("still-usable", "x"); \
    EXPECT_RESPONSE(client, "OK");     \
    EXPECT_FALSE((client).closed());   \
  } while (false)

// A connection of its own for one fatal command line.
inline void expect_fatal(BrokerHarness& h, std::string_view bytes, std::string_view text) {
  SCOPED_TRACE(std::string(bytes.substr(0, 40)));
  Client& client = h.connect();
  client.send(bytes);
  EXPECT_FATAL(client, std::string(text));
}

inline std::string stats(BrokerHarness& h, const std::string& topic) {
  return h.http("GET", "/stats?format=json&topic=" + topic).body;
}
// The number behind `"key":` in the text after the first `"channel_name":"<channel>"`; -1 when it is not there.
inline std::int64_t channel_stat(BrokerHarness& h, const std::string& topic, const std::string& channel, const std::string& key) {
  const std::string body = stats(h, topic);
  const std::size_t from = body.find("\"channel_name\":\"" + channel + "\"");
  if (from == std::string::npos) return -1;
  const std::string name = "\"" + key + "\":";
  const std::size_t at = body.find(name, from);
  return at == std::string::npos ? -1 : std::stoll(body.substr(at + name.size()));
}

// The number under `key` of a Topic itself, not of its Channels; -1 when it is not there.
inline std::int64_t topic_stat(BrokerHarness& h, const std::string& topic, const std::string& key) {
  const boost::json::value document = boost::json::parse(stats(h, topic));
  for (const boost::json::value& row : document.at("topics").as_array())
    if (row.at("topic_name").as_string() == topic) return row.at(key).to_number<std::int64_t>();
  return -1;
}

}  // namespace rq::broker::test
