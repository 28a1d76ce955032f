// What nsqlookupd servers know of a Topic that is new here (page 10 section 5.1).
#include "sim/web_server.h"
#include "tests/broker/lookup_support.h"

namespace rq::broker::test {
namespace {

// Page 10 section 5.1: the durable Channels that the servers know of a new Topic are made, with everything in them.
TEST_F(Lookup, ANewTopicGetsTheChannelsThatTheServersKnow) {
  sim::WebServer http{h.world(), disk, "lookup-http", "127.0.0.1:4161"};
  const char* channels = R"({"channels":["one","two","brief#ephemeral","no name!"]})";
  http.answer = [&](const std::string& head) {
    if (head.starts_with("GET /channels?topic=known HTTP/1.1\r\n")) return sim::WebServer::document(channels);
    if (head.starts_with("GET /channels?topic=e%23ephemeral ")) return sim::WebServer::document(R"({"channels":["c"]})");
    return sim::WebServer::document(R"({"channels":[]})");
  };
  first.start();
  http.start();
  ASSERT_TRUE(h.start());
  h.run_for(100);
  ASSERT_EQ(h.publish("known", "x"), "OK");
  ASSERT_TRUE(shows(first, {"known", "known one", "known two"}));
  EXPECT_EQ(channel_stat(h, "known", "one", "depth"), 1);
  EXPECT_EQ(channel_stat(h, "known", "two", "depth"), 1) << "of the bootstrap window";
  ASSERT_EQ(h.publish("unknown", "x"), "OK");
  ASSERT_EQ(h.publish("e#ephemeral", "x"), "OK");
  ASSERT_TRUE(shows(first, {"known", "known one", "known two", "unknown", "e#ephemeral", "e#ephemeral c"}));
  EXPECT_EQ(http.heads.size(), 3u);
  ASSERT_TRUE(h.restart());
  ASSERT_TRUE(h.run_until([&] { return logged("nsqlookupd_registered") == 2; }));
  h.run_for(1'000);
  EXPECT_EQ(http.heads.size(), 3u) << "a Topic that was there is not new";
}

// An ephemeral Topic has no window to look back into: it keeps its messages until the servers have said which Channels they know.
TEST_F(Lookup, ANewEphemeralTopicKeepsItsMessagesForEveryChannelThatTheServersKnow) {
  h.config().network.nsqlookupd_tcp_addresses = {kFirst, kSecond};
  sim::WebServer http{h.world(), disk, "lookup-http", "127.0.0.1:4161"}, late{h.world(), disk, "lookup-http-2", "127.0.0.1:4261"};
  http.answer = [](const std::string&) { return sim::WebServer::document(R"({"channels":["one","two"]})"); };
  late.answer = [](const std::string&) { return std::string(); };  // never
  LookupServer slow{h.world(), disk, "lookup-3", kSecond, 4261};
  first.start();
  slow.start();
  http.start();
  late.start();
  ASSERT_TRUE(h.start());
  ASSERT_TRUE(h.run_until([&] { return logged("nsqlookupd_registered") == 2; }, 3'000));
  Client& reader = h.connect();
  reader.sub("e#ephemeral", "reader");  // it makes the Topic
  ASSERT_EQ(h.publish("e#ephemeral", "x"), "OK");
  ASSERT_TRUE(h.run_until([&] { return h.broker().engine().has_channel("e#ephemeral", "two"); }, 3'000));
  for (const char* channel : {"one", "two", "reader"}) EXPECT_EQ(channel_stat(h, "e#ephemeral", channel, "depth"), 1) << channel;
  EXPECT_TRUE(h.broker().engine().opening("e#ephemeral")) << "the second server may know more";
  ASSERT_TRUE(h.run_until([&] { return !h.broker().engine().opening("e#ephemeral"); }, 7'000));
  EXPECT_EQ(logged("nsqlookupd_query_failed"), 1u);
  Client& other = h.connect();
  other.sub("e#ephemeral", "other");
  EXPECT_RESPONSE(other, "OK");
  EXPECT_EQ(channel_stat(h, "e#ephemeral", "other", "depth"), 0) << "as in nsqd, a later one starts empty";
}

// As nsqd does: where a server can be asked is known from its last identity.
TEST_F(Lookup, ATopicThatComesWhileARegistrationIsLostGetsTheChannelsToo) {
  sim::WebServer http{h.world(), disk, "lookup-http", "127.0.0.1:4161"};
  http.answer = [](const std::string&) { return sim::WebServer::document(R"({"channels":["one"]})"); };
  first.start();
  http.start();
  ASSERT_TRUE(h.start());
  h.run_for(100);
  first.stop();
  h.run_for(100);
  ASSERT_EQ(logged("nsqlookupd_lost"), 1u);
  ASSERT_EQ(h.publish("known", "x"), "OK");
  EXPECT_TRUE(h.run_until([&] { return h.broker().engine().has_channel("known", "one"); }, 3'000));
}

TEST_F(Lookup, ATopicThatComesBeforeTheFirstRegistrationGetsTheChannelsToo) {
  sim::WebServer http{h.world(), disk, "lookup-http", "127.0.0.1:4161"};
  http.answer = [](const std::string&) { return sim::WebServer::document(R"({"channels":["one"]})"); };
  http.start();
  ASSERT_TRUE(h.start());
  ASSERT_TRUE(h.run_until([&] { return logged("nsqlookupd_lost") == 1; }, 3'000));
  ASSERT_EQ(h.publish("known", "x"), "OK");
  h.run_for(200);
  EXPECT_TRUE(http.heads.empty());
  first.start();
  EXPECT_TRUE(h.run_until([&] { return h.broker().engine().has_channel("known", "one"); }, 20'000));
}

TEST_F(Lookup, WhatCannotSayTheChannelsOfATopicIsLeftAlone) {
  sim::WebServer http{h.world(), disk, "lookup-http", "127.0.0.1:4161"};
  first.start();
  ASSERT_TRUE(h.start());
  h.run_for(100);
  ASSERT_EQ(h.publish("refused", "x"), "OK");
  h.run_for(500);
  http.start();
  const std::pair<const char*, std::string> answers[] = {
      {"silence", ""},
      {"status 404", sim::WebServer::status(404)},
      {"no usable answer", "NSQ\r\n\r\n"},
      {"value of the wrong type", sim::WebServer::document(R"({"channels":[1]})")},
      {"channels", sim::WebServer::document("{}")},
  };
  int next = 0;
  for (const auto& [reason, answer] : answers) {
    http.answer = [&, text = answer](const std::string&) { return text; };
    ASSERT_EQ(h.publish(fmt::format("t{}", next++), "x"), "OK");
    const std::string_view wanted = answer.empty() ? "timed out" : reason;
    EXPECT_TRUE(h.run_until([&] { return logged("nsqlookupd_query_failed") == static_cast<std::size_t>(next) + 1; })) << reason;
    EXPECT_NE(h.log.back().find(wanted), std::string::npos) << h.log.back();
  }
  EXPECT_TRUE(shows(first, {"refused", "t0", "t1", "t2", "t3", "t4"}));
  EXPECT_EQ(h.publish("refused", "x"), "OK");
}

}  // namespace
}  // namespace rq::broker::test
