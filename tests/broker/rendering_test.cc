// Long answers are made in parts over several turns: the parts of each form make the same text, and no turn makes much of it.
#include <rapidcheck/gtest.h>

#include "core/broker/http_env.h"
#include "core/broker/http_lookup.h"
#include "core/broker/metrics.h"
#include "core/broker/native_topics.h"
#include "core/broker/stats_view.h"
#include "tests/broker/http_test_support.h"

namespace rq::broker {
namespace {

std::vector<queue::TopicStats> topics_of(const std::vector<std::uint8_t>& channels) {
  std::vector<queue::TopicStats> topics;
  std::uint64_t consumer = 0;
  for (std::size_t t = 0; t < channels.size(); ++t) {
    queue::TopicStats topic;
    topic.name = "topic" + std::to_string(t);
    for (int c = 0; c < channels[t] % 4; ++c) {
      queue::ChannelStats channel;
      channel.name = "channel" + std::to_string(c);
      for (int i = 0; i < channels[t] % 3; ++i) channel.consumers.push_back(static_cast<queue::ConsumerId>(++consumer));
      topic.channels.push_back(std::move(channel));
    }
    topics.push_back(std::move(topic));
  }
  return topics;
}

StatsView view_of(const std::vector<std::uint8_t>& channels) {
  StatsView view;
  view.version = "1.3.0";
  view.topics = topics_of(channels);
  for (std::uint64_t id = 1; id < 20; ++id) {
    ClientRow row;
    row.consumer = static_cast<queue::ConsumerId>(id);
    row.client_id = "client" + std::to_string(id);
    if (id % 3 == 0) row.pub_counts.emplace_back("topic0", id);
    view.clients.push_back(std::move(row));
  }
  return view;
}

constexpr Route kLookups[] = {Route::lookup, Route::channels, Route::topics, Route::nodes};
constexpr int kForms = 8;

std::unique_ptr<Rendering> make(int form, const std::vector<std::uint8_t>& channels) {
  if (form == 0) return stats_json(view_of(channels));
  if (form == 1) return stats_text(view_of(channels));
  if (form == 2) return native_stats_json(7, WallTime{}, topics_of(channels));
  if (form >= 4)
    return lookup_answer(kLookups[form - 4], {"127.0.0.1", 4150, 4151, channels.size() % 5 != 1}, topics_of(channels));
  MetricsInput input;
  input.detailed = true;
  input.max_detailed_series = 100;
  input.topics = topics_of(channels);
  return metrics_text(std::move(input));
}

RC_GTEST_PROP(Rendering, HoweverItIsCutTheTextIsTheSame, (const std::vector<std::uint8_t>& channels, std::uint8_t size)) {
  for (int form = 0; form < kForms; ++form) {
    const std::unique_ptr<Rendering> whole = make(form, channels), cut = make(form, channels);
    std::string parts;
    const std::size_t bytes = 1 + std::size_t{size} * 16;
    while (!cut->done()) {
      const std::string part = cut->next(bytes);
      RC_ASSERT(cut->done() || part.size() >= bytes);
      parts += part;
    }
    RC_ASSERT(parts == whole->next(1 << 30));
    RC_ASSERT(whole->done());
  }
}

TEST(Rendering, NoPartIsLongerThanWhatWasAskedForAndOneRow) {
  const std::vector<std::uint8_t> channels(500, 3);
  for (int form = 0; form < kForms; ++form) {
    if (form == 3) continue;  // some of its families have many samples a row
    const std::unique_ptr<Rendering> rendering = make(form, channels);
    while (!rendering->done()) EXPECT_LT(rendering->next(4'096).size(), 4'096u + 1'024u) << form;
  }
}

}  // namespace
}  // namespace rq::broker

namespace rq::sim {
namespace {

// The answer, made over turns none of which made more than one turn's worth.
HttpReply watched(BrokerHarness& h, const std::string& route) {
  const std::uint64_t before = h.broker().counters().rendered_bytes;
  std::uint64_t seen = before, most = 0;
  Client& client = h.client();
  EXPECT_TRUE(client.connect(h.http_address(), ""));
  client.send("GET " + route + " HTTP/1.1\r\nHost: a\r\n\r\nGET /ping HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_TRUE(h.run_until([&] {
    const std::uint64_t now = h.broker().counters().rendered_bytes;
    most = std::max(most, now - std::exchange(seen, now));
    return client.raw().ends_with("\r\n\r\nOK");
  })) << route;
  const auto reply = parse_reply(client.raw(), false);
  client.close();
  if (!reply) return {};
  EXPECT_EQ(reply->status, 200) << route;
  EXPECT_EQ(seen - before, reply->body.size()) << route;
  EXPECT_LE(most, broker::HttpEnv::kRenderBytesPerTurn + 8'192) << route << ": at most a turn's worth at a time";
  return *reply;
}

TEST(RenderingOverTurns, ALongAnswerTakesSeveralTurnsAndIsWhole) {
  BrokerHarness h(1, [](broker::Config& c) {
    c.metrics.detailed_queue_metrics = true;
    c.metrics.max_detailed_series = 10'000;
  });
  ASSERT_TRUE(h.start());
  for (int t = 0; t < 400; ++t) {
    const std::string topic = "a-topic-with-a-rather-long-name-" + std::to_string(t);
    ASSERT_EQ(h.http("POST", "/topic/create?topic=" + topic).status, 200);
    ASSERT_EQ(h.http("POST", "/channel/create?channel=first&topic=" + topic).status, 200);
  }
  for (const char* route : {"/stats?format=json", "/stats", "/metrics", "/v1/stats", "/v1/registry", "/v1/observe"}) {
    const HttpReply reply = watched(h, route);
    if (std::string_view(route).find("stats") == std::string_view::npos) continue;
    EXPECT_GT(reply.body.size(), broker::HttpEnv::kRenderBytesPerTurn) << route;
  }
}

TEST(RenderingOverTurns, SoDoTheAnswersToLookups) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  const auto name = [](int i) { return std::string(58, 'n') + std::to_string(100'000 + i); };
  for (int i = 0; i < 1'000; ++i) {
    ASSERT_EQ(h.http("POST", "/topic/create?topic=" + name(i)).status, 200);
    ASSERT_EQ(h.http("POST", "/channel/create?topic=" + name(0) + "&channel=" + name(i)).status, 200);
  }
  for (const std::string& route :
       {std::string("/topics"), std::string("/nodes"), "/channels?topic=" + name(0), "/lookup?topic=" + name(0)}) {
    const HttpReply reply = watched(h, route);
    EXPECT_GT(reply.body.size(), broker::HttpEnv::kRenderBytesPerTurn) << route;
    const auto document = json_of(reply).as_object();
    const auto& names = route == "/nodes"    ? document.at("producers").at(0).at("topics").as_array()
                        : route == "/topics" ? document.at("topics").as_array()
                                             : document.at("channels").as_array();
    ASSERT_EQ(names.size(), 1'000u) << route;
    for (int i = 0; i < 1'000; ++i) EXPECT_EQ(std::string_view(names.at(i).as_string()), name(i)) << route;
    const auto& self = route == "/nodes" ? document.at("producers").at(0).as_object() : document;
    EXPECT_EQ(self.contains("tombstones") ? self.at("tombstones").as_array().size() : 0, route == "/nodes" ? 1'000u : 0u);
  }
}

// Beyond a limit of all answers more are refused. What an answer is made from counts until it is made.
TEST(RenderingOverTurns, WhatAnAnswerIsMadeFromIsCounted) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  constexpr std::uint64_t kTopics = 1'500;
  for (std::uint64_t t = 0; t < kTopics; ++t)
    ASSERT_EQ(h.http("POST", "/topic/create?topic=" + std::string(58, 'n') + std::to_string(t)).status, 200);
  ASSERT_TRUE(h.run_until([&] { return h.broker().http_output_bytes() == 0; }));
  for (const char* route : {"/stats?format=json", "/stats", "/v1/stats", "/v1/registry", "/v1/observe", "/topics", "/nodes"}) {
    for (const bool leaves : {false, true}) {
      const std::uint64_t before = h.broker().counters().rendered_bytes;
      Client& client = h.client();
      ASSERT_TRUE(client.connect(h.http_address(), ""));
      client.send(std::string("GET ") + route + " HTTP/1.1\r\nHost: a\r\n\r\n");
      ASSERT_TRUE(h.run_until([&] { return h.broker().counters().rendered_bytes > before; })) << route;
      const std::uint64_t rendered = h.broker().counters().rendered_bytes - before;
      EXPECT_GE(h.broker().http_output_bytes(), kTopics * sizeof(queue::TopicStats) + rendered) << route;
      EXPECT_TRUE(leaves || h.run_until([&] { return parse_reply(client.raw(), false).has_value(); })) << route;
      client.close();
      EXPECT_TRUE(h.run_until([&] { return h.broker().http_output_bytes() == 0; })) << route << leaves;
      h.broker().check_invariants();
    }
  }
}

TEST(RenderingOverTurns, AClientThatLeavesInBetweenTakesNothingFromTheNext) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  for (int t = 0; t < 400; ++t) ASSERT_EQ(h.http("POST", "/topic/create?topic=t" + std::to_string(t)).status, 200);
  Client& gone = h.client();
  Client& next = h.client();
  for (Client* client : {&gone, &next}) ASSERT_TRUE(client->connect(h.http_address(), ""));
  const std::uint64_t before = h.broker().counters().rendered_bytes;
  for (Client* client : {&gone, &next}) client->send("GET /stats?format=json HTTP/1.1\r\nHost: a\r\n\r\n");
  ASSERT_TRUE(h.run_until([&] { return h.broker().counters().rendered_bytes > before; }));
  gone.close();
  ASSERT_TRUE(h.run_until([&] { return parse_reply(next.raw(), false).has_value(); }));
  EXPECT_EQ(json_of(*parse_reply(next.raw(), false)).at("topics").as_array().size(), 400u);
}

}  // namespace
}  // namespace rq::sim
