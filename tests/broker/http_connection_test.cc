// Keep-alive, pipelining, limits and deadlines of HTTP connections; serving while the data directory is being opened (D-49).
#include <algorithm>

#include "tests/broker/http_test_support.h"

namespace rq::sim {
namespace {

std::size_t count(const std::string& text, std::string_view part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++found;
  return found;
}

TEST(HttpConnections, PipelinedRequestsAreAnsweredInOrder) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  const std::string raw = h.http_raw(
      "GET /ping HTTP/1.1\r\nHost: a\r\n\r\nPOST /pub?topic=t HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx"
      "GET /none HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabcGET /info HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(count(raw, "HTTP/1.1 200 OK"), 3u);
  EXPECT_LT(raw.find("200 OK"), raw.find("404 Not Found"));
  EXPECT_LT(raw.find("404 Not Found"), raw.find("broadcast_address"));
}

TEST(HttpConnections, OldClientsAreClosedUnlessTheyAskOtherwise) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  EXPECT_TRUE(h.http_raw("GET /ping HTTP/1.0\r\n\r\n", false, 1'000).starts_with("HTTP/1.0 200 OK"));
  const std::string kept = h.http_raw("GET /ping HTTP/1.0\r\nConnection: keep-alive\r\n\r\nGET /ping HTTP/1.0\r\n\r\n");
  EXPECT_EQ(count(kept, "200 OK"), 2u);
  EXPECT_EQ(count(kept, "Connection: keep-alive"), 1u);
}

TEST(HttpConnections, AHalfClosedClientStillGetsItsAnswer) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  EXPECT_TRUE(h.http_raw("GET /ping HTTP/1.1\r\nHost: a\r\n\r\n", true).ends_with("OK"));
}

TEST(HttpConnections, AmbiguousFramingIsRefusedAndClosed) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  const std::string raw = h.http_raw(
      "POST /pub?topic=t HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /ping "
      "HTTP/1.1\r\n\r\n");
  EXPECT_EQ(count(raw, "HTTP/1.1 "), 1u);
  EXPECT_EQ(parse_reply(raw, true)->status, 400);
  EXPECT_EQ(parse_reply(raw, true)->body, "400 Bad Request");
  EXPECT_NE(raw.find("Connection: close"), std::string::npos);
}

TEST(HttpConnections, WhatIsCutShortIsToldAndClosed) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  const std::string post = "POST /pub?topic=t HTTP/1.1\r\nHost: a\r\n";
  EXPECT_EQ(parse_reply(h.http_raw("GET /ping HTTP/1.1\r\nHo", true), true)->body, "400 Bad Request");
  EXPECT_EQ(result_of(*parse_reply(h.http_raw(post + "Content-Length: 5\r\n\r\nab", true), true)), "500 INTERNAL_ERROR");
  EXPECT_EQ(result_of(*parse_reply(h.http_raw(post + "Transfer-Encoding: chunked\r\n\r\nzz\r\n"), true)), "500 INTERNAL_ERROR");
  EXPECT_EQ(h.http_raw("", true, 1'000), "");
  EXPECT_EQ(h.broker().publish_bytes_in_flight(), 0u);
}

// As nsqd: what was asked for is answered, and then the connection ends.
TEST(HttpConnections, ABrokenBodyThatNobodyWantsChangesNoAnswer) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  const std::string post = "POST /none HTTP/1.1\r\nHost: a\r\n", pause = "POST /topic/pause?topic=t HTTP/1.1\r\nHost: a\r\n";
  for (const char* body : {"Transfer-Encoding: chunked\r\n\r\nzz\r\n", "Content-Length: 5\r\n\r\nab"}) {
    const std::string raw = h.http_raw(post + body, true);
    EXPECT_EQ(result_of(*parse_reply(raw, true)), "404 NOT_FOUND");
    EXPECT_NE(raw.find("Connection: close"), std::string::npos);
    EXPECT_EQ(result_of(*parse_reply(h.http_raw(pause + body, true), true)), "400 INVALID_REQUEST");
  }
}

TEST(HttpConnections, AnUnknownExpectationIsRefusedWithoutABody) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  const auto reply = parse_reply(h.http_raw("GET /ping HTTP/1.1\r\nHost: a\r\nExpect: tea\r\n\r\n"), true);
  EXPECT_EQ(reply->status, 417);
  EXPECT_EQ(reply->body, "");
}

TEST(HttpConnections, ALongHeadIsRefused) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  const std::string long_header = "A: " + std::string(60'000, 'a') + "\r\n";
  EXPECT_EQ(parse_reply(h.http_raw("GET /ping HTTP/1.1\r\nHost: a\r\n" + long_header + "\r\n", true), true)->status, 200);
  const auto reply = parse_reply(h.http_raw("GET /" + std::string(70'000, 'a') + " HTTP/1.1\r\n\r\n"), true);
  EXPECT_EQ(reply->status, 431);
}

TEST(HttpConnections, AHeadTakesAtMostThirtySecondsHoweverItTrickles) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  Client& silent = h.client();
  ASSERT_TRUE(silent.connect(h.http_address(), ""));
  Client& slow = h.client();
  ASSERT_TRUE(slow.connect(h.http_address(), ""));
  for (int i = 0; i < 29; ++i) {
    slow.send("G");
    h.run_for(1'000);
  }
  EXPECT_FALSE(silent.closed());
  EXPECT_FALSE(slow.closed());
  h.run_for(3'000);
  EXPECT_TRUE(silent.closed());
  EXPECT_EQ(silent.raw(), "");
  EXPECT_TRUE(slow.closed());
  EXPECT_NE(slow.raw().find(" 408 "), std::string::npos);
}

TEST(HttpConnections, OneConnectionAboveTheLimitIsClosedAtOnce) {
  BrokerHarness h(1, [](broker::Config& c) { c.limits.max_http_connections = 2; });
  ASSERT_TRUE(h.start());
  Client& first = h.client();
  ASSERT_TRUE(first.connect(h.http_address(), ""));
  Client& second = h.client();
  ASSERT_TRUE(second.connect(h.http_address(), ""));
  h.run_for(100);
  EXPECT_EQ(h.http_raw("GET /ping HTTP/1.1\r\n\r\n", false, 1'000), "");
  first.close();
  h.run_for(100);
  EXPECT_EQ(h.http("GET", "/ping").body, "OK");
}

TEST(HttpConnections, AtTheLimitTheOneThatWasIdleLongestGivesWay) {
  BrokerHarness h(1, [](broker::Config& c) { c.limits.max_http_connections = 2; });
  ASSERT_TRUE(h.start());
  Client& first = h.client();
  Client& second = h.client();
  for (Client* client : {&first, &second}) {
    ASSERT_TRUE(client->connect(h.http_address(), ""));
    client->send("GET /ping HTTP/1.1\r\nHost: a\r\n\r\n");
    h.run_for(1'000);
  }
  EXPECT_EQ(h.http("GET", "/ping").body, "OK");
  EXPECT_TRUE(first.closed());
  EXPECT_FALSE(second.closed());
  // One that waits for its request has shown nothing yet: it neither gives way nor makes room.
  Client& third = h.client();
  ASSERT_TRUE(third.connect(h.http_address(), ""));
  second.send("GET /ping HTTP/1.1\r\n");
  h.run_for(100);
  EXPECT_EQ(h.http_raw("GET /ping HTTP/1.1\r\n\r\n", false, 1'000), "");
  EXPECT_FALSE(second.closed());
  EXPECT_EQ(std::count_if(h.log.begin(), h.log.end(),
                          [](const std::string& line) { return line.find(" http_connection_limit limit=2 ") != line.npos; }),
            1);
}

TEST(HttpConnections, AClientThatDoesNotReadItsAnswerIsCut) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  Client& client = h.client();
  ASSERT_TRUE(client.connect(h.http_address(), ""));
  client.stop_reading(true);
  std::string requests;
  for (int i = 0; i < 20'000; ++i) requests += "GET /info HTTP/1.1\r\nHost: a\r\n\r\n";
  client.send(requests);
  h.run_for(120'000);
  EXPECT_EQ(h.http("GET", "/ping").body, "OK");
  EXPECT_NE(h.http("GET", "/metrics").body.find("rustqueue_http_connections 1\n"), std::string::npos);
}

// Each of its reads is in time. The answer as a whole is not.
TEST(HttpConnections, AClientThatReadsItsAnswerInDribletsIsCut) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  for (int i = 0; i < 300; ++i) ASSERT_EQ(h.http("POST", "/topic/create?topic=t" + std::to_string(i)).status, 200);
  h.world().net().buffer_bytes = 2'048;
  Client& slow = h.client();
  Client& patient = h.client();
  for (Client* client : {&slow, &patient}) {
    ASSERT_TRUE(client->connect(h.http_address(), ""));
    client->stop_reading(true);
    client->send("GET /stats?format=json HTTP/1.1\r\nHost: a\r\n\r\n");
  }
  h.run_for(25'000);
  patient.stop_reading(false);
  ASSERT_TRUE(h.run_until([&] { return parse_reply(patient.raw(), false).has_value(); }));
  EXPECT_EQ(parse_reply(patient.raw(), false)->status, 200);
  for (int i = 0; i < 8; ++i) {
    slow.stop_reading(false);
    h.run_for(1);
    slow.stop_reading(true);
    h.run_for(10'000);
  }
  slow.stop_reading(false);
  h.run_for(1'000);
  EXPECT_TRUE(slow.closed());
  EXPECT_LT(slow.raw().size(), patient.raw().size());
}

TEST(HttpConnections, WhileTheDirectoryIsOpenedOnlyPingAndHealthAnswer) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  h.publish("t", "x");
  h.kill();
  h.disk().faults.latency_ns_min = h.disk().faults.latency_ns_max = 900 * kMillisecond;
  h.boot();
  h.run_for(1'000);
  ASSERT_FALSE(h.broker().serving());
  EXPECT_EQ(h.http("GET", "/ping").body, "OK");
  const HttpReply health = h.http("GET", "/v1/health");
  EXPECT_EQ(health.status, 503);
  EXPECT_EQ(json_of(health).at("reason").as_string(), "recovering");
  EXPECT_TRUE(json_of(health).as_object().contains("recovered_topics"));
  const Instant asked = h.now();
  const HttpReply stats = h.http("GET", "/stats");
  ASSERT_FALSE(h.broker().serving());
  EXPECT_EQ(stats.status, 503);
  EXPECT_EQ(stats.header("retry-after"), "1");
  EXPECT_GE(h.now() - asked, 2 * kSecond);
  EXPECT_LT(h.now() - asked, 3 * kSecond);
  ASSERT_TRUE(h.run_until([&] { return h.broker().serving(); }, 600'000));
  EXPECT_EQ(h.http("GET", "/v1/health").status, 200);
}

TEST(HttpConnections, ARequestThatCameWhileOpeningIsServedWhenItOpensInTime) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  ASSERT_TRUE(h.stop());
  h.disk().faults.latency_ns_min = h.disk().faults.latency_ns_max = 20 * kMillisecond;
  h.boot();
  Client& client = h.client();
  ASSERT_TRUE(client.connect(h.http_address(), ""));
  client.send("GET /stats?format=json HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  ASSERT_TRUE(client.wait_closed());
  EXPECT_EQ(parse_reply(client.raw(), true)->status, 200);
}

TEST(HttpConnections, AStorageFaultIsToldUntilTheProcessEnds) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  Client& client = h.client();
  ASSERT_TRUE(client.connect(h.http_address(), ""));
  h.disk().faults.sync_fail = 1'024;
  client.send(
      "POST /pub?topic=t HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nxGET /v1/health HTTP/1.1\r\nHost: a\r\n\r\n"
      "GET /stats HTTP/1.1\r\nHost: a\r\n\r\nGET /ping HTTP/1.1\r\nHost: a\r\n\r\n");
  h.run_until([&] { return !h.running(); });
  const std::string raw = client.raw();
  EXPECT_EQ(count(raw, "\"E_STORAGE\""), 2u) << raw;
  EXPECT_EQ(count(raw, "\"storage_fault\""), 1u) << raw;
  EXPECT_TRUE(raw.ends_with("\r\n\r\nOK")) << raw;
  EXPECT_EQ(h.last_exit(), broker::Broker::Exit::failed);
}

TEST(HttpConnections, IdleConnectionsDoNotHoldUpACleanStop) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  Client& idle = h.client();
  ASSERT_TRUE(idle.connect(h.http_address(), ""));
  h.run_for(100);
  const Instant begin = h.now();
  EXPECT_TRUE(h.stop());
  EXPECT_LT(h.now() - begin, 5 * kSecond);
  EXPECT_TRUE(idle.wait_closed());
}

}  // namespace
}  // namespace rq::sim
