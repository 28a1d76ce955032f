// The opening handshake of live feeds (page 31 section 6.1) and their limits.
#include "core/broker/live_text.h"
#include "sim/auth_server.h"
#include "tests/broker/live_support.h"

namespace rq::sim {
namespace {

class LiveHandshake : public LiveTest {};

TEST_F(LiveHandshake, B_71_DisabledItDoesNotExistAndAPlainGetIsNoUpgrade) {
  ASSERT_TRUE(h.start());
  EXPECT_EQ(refused("t"), "404 NOT_FOUND");
  ASSERT_TRUE(h.stop());
  start();
  const HttpReply plain = h.http("GET", "/v1/ws/topics/t");
  EXPECT_EQ(plain.status, 426);
  EXPECT_EQ(plain.header("content-type"), "text/plain; charset=utf-8");
  EXPECT_EQ(h.http("POST", "/v1/ws/topics/t").status, 405);
  Headers headers = Feed::offer();
  headers[2].first = "X-Nothing";
  Feed& keyless = feed();
  EXPECT_EQ(keyless.open("t", headers), 400);
  headers = Feed::offer();
  headers[3].second = "8";
  Feed& old = feed();
  EXPECT_EQ(old.open("t", headers), 426);
  EXPECT_EQ(old.reply.header("sec-websocket-version"), "13");
  for (const char* path : {"/v1/ws/topics", "/v1/ws/topics/", "/v1/ws/topics/t/x"})
    EXPECT_EQ(h.http("GET", path).status, 404) << path;
}

TEST_F(LiveHandshake, TheAnswerNamesTheProtocolAndNoExtension) {
  start();
  Feed& open = feed();
  ASSERT_EQ(open.open("%74", Feed::with({{"Sec-WebSocket-Extensions", "permessage-deflate"}})), 101);
  EXPECT_EQ(open.heard(), R"({"type":"ready","topic":"t","subscription_id":"1","start":"tail","ack":"auto"})");
  const std::string& raw = open.client().raw();
  const std::string head = raw.substr(0, raw.find("\r\n\r\n") + 2);
  EXPECT_EQ(head,
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\nSec-WebSocket-Protocol: rustqueue.live.v1\r\n");
}

TEST_F(LiveHandshake, B_72_TheChecksStandInTheirOrder) {
  start([](broker::Config& c) { c.websocket.allowed_origins = {"https://ok.example"}; });
  Headers headers = Feed::with({{"Origin", "https://bad.example"}});
  headers[4].second = "RustQueue.live.v1, rustqueue.live.v2";
  EXPECT_EQ(refused("none?x=1", headers), "400 E_WS_QUERY_FORBIDDEN");
  EXPECT_EQ(refused("none", headers), "403 E_WS_ORIGIN");
  headers.back().second = "https://ok.example";
  EXPECT_EQ(refused("none", headers), "400 E_WS_SUBPROTOCOL");
  headers[4].second = "rustqueue.live.v1";
  EXPECT_EQ(refused("none", headers), "404 E_BAD_TOPIC");
  EXPECT_EQ(refused("a%2Fb", headers), "400 E_BAD_TOPIC");
  EXPECT_EQ(refused("t", headers), "101");
  EXPECT_FALSE(h.broker().engine().has_topic("none"));
}

TEST_F(LiveHandshake, B_73_ATrailingQuestionMarkIsAQuery) {
  start();
  EXPECT_EQ(refused("t?"), "400 E_WS_QUERY_FORBIDDEN");
}

TEST_F(LiveHandshake, OriginsAreComparedByteForByte) {
  start([](broker::Config& c) { c.websocket.allowed_origins = {"https://ok.example"}; });
  for (const char* origin : {"https://ok.example:443", "https://OK.example", "http://ok.example", "null", ""})
    EXPECT_EQ(refused("t", Feed::with({{"Origin", origin}})), "403 E_WS_ORIGIN") << origin;
  EXPECT_EQ(refused("t", Feed::with({{"Origin", "https://ok.example"}})), "101");
  EXPECT_EQ(refused("t"), "101");
}

TEST_F(LiveHandshake, SeveralHeadersOfferSeveralProtocols) {
  start();
  Headers headers = Feed::offer();
  headers[4].second = "one";
  headers.emplace_back("Sec-WebSocket-Protocol", "two,rustqueue.live.v1");
  EXPECT_EQ(refused("t", headers), "101");
}

TEST_F(LiveHandshake, B_74_AReliableTopicIsRefusedAndCounted) {
  start();
  h.http("POST", "/topic/create?topic=reliable");
  EXPECT_EQ(refused("reliable"), "409 E_WS_TTL_REQUIRED");
  EXPECT_EQ(counters().websocket_non_ttl_rejections, 1u);
  EXPECT_NE(h.http("GET", "/metrics").body.find("\nrustqueue_websocket_non_ttl_rejections_total 1\n"), std::string::npos);
}

TEST_F(LiveHandshake, B_75_OneFeedMoreThanTheLimitsIsRefusedUntilOneEnds) {
  start([](broker::Config& c) {
    c.websocket.max_connections = 3;
    c.websocket.max_connections_per_topic = 2;
  });
  configure("other", {true, 60});
  Feed& first = ready("t");
  ready("t");
  Feed& third = feed();
  EXPECT_EQ(third.open("t"), 429);
  EXPECT_EQ(message_of(third.reply), "E_WS_CAPACITY");
  EXPECT_EQ(third.reply.header("retry-after"), "1");
  ready("other");
  EXPECT_EQ(refused("other"), "429 E_WS_CAPACITY");
  EXPECT_EQ(counters().websocket_capacity_rejections, 2u);
  EXPECT_EQ(h.broker().websocket_connections(), 3u);
  first.close();
  ASSERT_TRUE(h.run_until([&] { return h.broker().websocket_connections() == 2; }));
  ready("t");
}

TEST_F(LiveHandshake, ADrainRefusesNewFeeds) {
  start();
  h.broker().set_drain(true, false);
  EXPECT_EQ(refused("t"), "503 E_DRAINING");
  h.broker().set_drain(true, true);
  EXPECT_EQ(refused("t"), "503 E_DRAINING");
  h.broker().set_drain(false, false);
  EXPECT_EQ(refused("t"), "101");
}

TEST_F(LiveHandshake, FramesSentWithTheRequestAreTakenAfterIt) {
  start();
  Feed& eager = feed();
  ASSERT_TRUE(eager.client().connect(h.http_address(), ""));
  eager.client().send(http_request("GET", "/v1/ws/topics/t", "", Feed::offer()) + ws::client_frame(9, "early"));
  ASSERT_TRUE(h.run_until([&] { return eager.client().raw().find("early") != std::string::npos; }));
}

TEST_F(LiveHandshake, AnUpgradeMayFollowOtherRequestsAndMayHaveABody) {
  start();
  for (const char* before : {"GET /ping HTTP/1.1\r\nHost: b\r\n\r\nGET /v1/ws/topics/missing HTTP/1.1\r\nHost: b\r\n\r\n", ""}) {
    Client& client = h.client();
    ASSERT_TRUE(client.connect(h.http_address(), ""));
    Headers headers = Feed::offer();
    if (*before == '\0') headers.emplace_back("Content-Length", "5");
    client.send(before + http_request("GET", "/v1/ws/topics/t", *before == '\0' ? "12345" : "", headers));
    ASSERT_TRUE(h.run_until([&] { return client.raw().find("\"ready\"") != std::string::npos; })) << client.raw();
    client.send(ws::client_frame(9, "alive"));
    ASSERT_TRUE(h.run_until([&] { return client.raw().find("alive") != std::string::npos; }));
  }
  Client& waits = h.client();
  ASSERT_TRUE(waits.connect(h.http_address(), ""));
  Headers headers = Feed::offer();
  headers.emplace_back("Content-Length", "5");
  headers.emplace_back("Expect", "100-continue");
  waits.send(http_request("GET", "/v1/ws/topics/t", "", headers));
  ASSERT_TRUE(h.run_until([&] { return waits.raw().find("\"ready\"") != std::string::npos; }));
}

TEST_F(LiveHandshake, AnOldVersionOfHttpCannotUpgrade) {
  start();
  std::string request = http_request("GET", "/v1/ws/topics/t", "", Feed::offer());
  request.replace(request.find("HTTP/1.1"), 8, "HTTP/1.0");
  EXPECT_TRUE(h.http_raw(request).starts_with("HTTP/1.0 426 ")) << h.http_raw(request);
}

// --- AUTH in the handshake

class LiveHandshakeAuth : public LiveHandshake {
 protected:
  void begin() {
    start([](broker::Config& c) { c.security.auth_http_addresses = {"127.0.0.1:4181"}; });
    server.answer = [this](const std::string&) { return reply; };
    server.start();
  }
  static Headers bearer(const std::string& secret) { return Feed::with({{"Authorization", "Bearer " + secret}}); }
  sim::SimDisk& disk = h.world().make_disk("auth");
  AuthServer server{h.world(), disk, "auth", "127.0.0.1:4181"};
  std::string reply = AuthServer::grant(R"(["subscribe"])", "^t$", R"(["^websocket#ephemeral$"])");
};

TEST_F(LiveHandshakeAuth, AGoodSecretInTheHeaderGoesStraightToReady) {
  begin();
  ready("t", bearer("s"));
  ASSERT_EQ(server.heads.size(), 1u);
  EXPECT_TRUE(server.heads[0].starts_with("GET /auth?common_name=&remote_ip=127.0.0.1&secret=s&tls=false HTTP/1.1\r\n"))
      << server.heads[0];
  EXPECT_NE(h.http("GET", "/stats?format=json").body.find(R"("authed":true,"auth_identity":"someone")"), std::string::npos);
}

TEST_F(LiveHandshakeAuth, WhatIsWrongWithTheHeaderIsAnsweredBeforeTheUpgrade) {
  begin();
  for (const char* wrong : {"", "Bearer ", "Bearer", "bearer s", "Basic s"})
    EXPECT_EQ(refused("t", Feed::with({{"Authorization", wrong}})), "401 E_AUTH_FAILED") << wrong;
  EXPECT_TRUE(server.heads.empty());
  reply = AuthServer::status(403);
  EXPECT_EQ(refused("t", bearer("wrong")), "403 E_UNAUTHORIZED");
  reply = AuthServer::grant(R"(["subscribe"])", "^t$", R"(["^workers$"])");
  EXPECT_EQ(refused("t", bearer("other channel")), "403 E_UNAUTHORIZED");
  reply = AuthServer::status(500);
  EXPECT_EQ(refused("t", bearer("unlucky")), "503 E_AUTH_FAILED");
  EXPECT_EQ(counters().websocket_auth_failures, 8u);
  EXPECT_EQ(counters().auth_failures, 8u);
  ASSERT_TRUE(h.run_until([&] { return h.broker().live_feeds().size() == 0; }));
  EXPECT_TRUE(no_channels());
}

TEST_F(LiveHandshakeAuth, WithoutMemoryForAnAnswerItIsOverloaded) {
  start([](broker::Config& c) {
    c.security.auth_http_addresses = {"127.0.0.1:4181"};
    c.limits.auth_memory_bytes = 1 << 16;
    c.limits.auth_response_bytes = 1 << 15;
  });
  EXPECT_EQ(refused("t", bearer("s")), "503 E_AUTH_OVERLOADED");
}

TEST_F(LiveHandshakeAuth, ADrainWhileTheAuthServerThinksIsARefusal) {
  begin();
  reply.clear();
  Feed& slow = feed();
  ASSERT_TRUE(slow.client().connect(h.http_address(), ""));
  slow.client().send(http_request("GET", "/v1/ws/topics/t", "", bearer("s")));
  ASSERT_TRUE(h.run_until([&] { return !server.heads.empty(); }));
  EXPECT_EQ(h.broker().live_feeds().size(), 1u);
  EXPECT_EQ(h.broker().websocket_connections(), 0u) << "not upgraded";
  h.broker().set_drain(true, false);
  h.process().poke();
  ASSERT_TRUE(slow.client().wait_closed());
  const auto answer = parse_reply(slow.client().raw(), true);
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(result_of(*answer), "503 E_DRAINING");
}

TEST(LiveText, TheSecretIsReadStrictly) {
  using broker::auth_secret;
  EXPECT_EQ(auth_secret(R"({"type":"auth","secret":"s","more":[1,{}]})"), "s");
  for (const char* wrong :
       {"", "{}", "[]", "s", R"({"type":"auth"})", R"({"type":"auth","secret":""})", R"({"type":"x","secret":"s"})",
        R"({"type":"auth","secret":1})", R"({"type":"auth","secret":"s"} x)", R"({"type":"auth","secret":"\xff"})"})
    EXPECT_EQ(auth_secret(wrong), std::nullopt) << wrong;
}

TEST(LiveText, B_76_TheGoldenHeader) {
  std::string out;
  broker::put_live_header(out, 0x090a, -72623859790382856, 0x0102030405060708);
  EXPECT_EQ(out + "hello",
            std::string("RQW1\x00\x18\x09\x0a\xfe\xfd\xfc\xfb\xfa\xf9\xf8\xf8\x01\x02\x03\x04\x05\x06\x07\x08hello", 29));
}

}  // namespace
}  // namespace rq::sim
