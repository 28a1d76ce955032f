// AUTH over a connection, with auth servers in the simulated world (page 10 section 4, page 31 section 3.8, D-05, D-12).
#include <fmt/format.h>

#include "core/broker/auth_query.h"
#include "sim/auth_server.h"
#include "tests/broker/tcp_support.h"

namespace rq::broker::test {
namespace {

using sim::AuthServer;

constexpr const char* kFirst = "127.0.0.1:4181";
constexpr const char* kSecond = "127.0.0.1:4182";
constexpr const char* kBoth = R"(["subscribe","publish"])";

std::string auth(std::string_view secret) {
  return "AUTH\n" + int32(static_cast<std::uint32_t>(secret.size())) + std::string(secret);
}

class TcpAuth : public testing::Test {
 protected:
  TcpAuth() {
    h.config().security.auth_http_addresses = {kFirst};
    first.answer = [this](const std::string&) { return reply; };
  }
  void start() {
    first.start();
    ASSERT_TRUE(h.start());
  }
  Client& authed(std::string_view secret = "s") {
    Client& client = h.connect();
    client.send(auth(secret));
    EXPECT_RESPONSE(client, R"({"identity":"someone","identity_url":"http://who","permission_count":1})");
    return client;
  }
  void refused(std::string_view text) {
    Client& client = h.connect();
    client.send(auth("s"));
    EXPECT_FATAL(client, std::string(text));
  }
  // Starts another Broker over the same directory, so that nothing is cached.
  void forget() { ASSERT_TRUE(h.restart()); }

  BrokerHarness h;
  sim::SimDisk& disk = h.world().make_disk("auth");
  AuthServer first{h.world(), disk, "auth-1", kFirst}, second{h.world(), disk, "auth-2", kSecond};
  std::string reply = AuthServer::grant(kBoth, ".*", R"([".*"])");
};

TEST_F(TcpAuth, C_78_WithoutAuthEveryCommandThatNeedsItIsRefused) {
  start();
  Client& client = h.connect();
  client.identify(R"({"feature_negotiation":true})");
  EXPECT_NE(client.answer().payload.find(R"("auth_required":true)"), std::string::npos);
  client.sub("t", "c");
  EXPECT_FATAL(client, "E_AUTH_FIRST AUTH required before SUB");
  expect_fatal(h, "PUB t\n", "E_AUTH_FIRST AUTH required before PUB");  // before its body (D-12)
  expect_fatal(h, "MPUB t\n", "E_AUTH_FIRST AUTH required before MPUB");
  expect_fatal(h, "DPUB t 1\n", "E_AUTH_FIRST AUTH required before DPUB");
  EXPECT_TRUE(first.heads.empty());
}

TEST_F(TcpAuth, C_79_AValidAuthIsAnsweredOnceAndASecondOneRefused) {
  start();
  Client& client = authed();
  client.pub("t", "x");
  EXPECT_RESPONSE(client, "OK");
  client.send(auth("s"));
  EXPECT_FATAL(client, "E_INVALID AUTH already set");
  Client& consumer = authed();
  consumer.sub("t", "c");
  EXPECT_RESPONSE(consumer, "OK");
  EXPECT_NE(stats(h, "t").find(R"("authed":true,"auth_identity":"someone","auth_identity_url":"http://who")"), std::string::npos);
}

// Page 31 section 3.4: from the publish budget, but in no metric of publishes.
TEST_F(TcpAuth, TheSecretIsChargedForAsLongAsTheSessionLives) {
  h.config().limits.node_publish_inflight_bytes = 24'576;
  start();
  Client& client = authed(std::string(10'000, 's'));  // 20,480 bytes
  h.run_for(10'000);
  EXPECT_EQ(h.http("POST", "/pub?topic=t", std::string(4'000, 'x')).status, 429);
  EXPECT_EQ(h.http("POST", "/pub?topic=t", std::string(3'000, 'x')).status, 200);
  EXPECT_EQ(h.broker().publish_bytes_in_flight(), 0u);
  client.close();
  h.run_for(100);
  EXPECT_EQ(h.http("POST", "/pub?topic=t", std::string(4'000, 'x')).status, 200);
}

// Nothing is held for what was announced and has not come: two bytes of budget for each one that is there, and one unit ahead.
TEST_F(TcpAuth, SecretsThatAreAnnouncedAndDoNotComeHoldUpNobody) {
  start();
  Client& good = authed();
  for (int i = 0; i < 256; ++i) h.connect().send("AUTH\n" + int32(1 << 20) + "half");
  h.run_for(1'000);
  good.pub("t", std::string(100'000, 'x'));
  EXPECT_RESPONSE(good, "OK");
  authed("other");
}

TEST_F(TcpAuth, ASecretThatOutgrowsTheBudgetIsRefusedWhereItDoesAndGivesBackWhatItHeld) {
  h.config().limits.node_publish_inflight_bytes = 262'144;
  h.config().limits.connection_publish_inflight_bytes = 262'144;
  start();
  Client& large = h.connect();
  large.send("AUTH\n" + int32(1 << 20) + std::string(60'000, 's'));
  h.run_for(100);
  EXPECT_FALSE(large.closed());
  EXPECT_EQ(h.http("POST", "/pub?topic=t", std::string(200'000, 'x')).status, 429);
  large.send(std::string(80'000, 's'));
  EXPECT_ERROR(large, "E_THROTTLED AUTH publish budget");
  ASSERT_TRUE(large.wait_closed());
  EXPECT_EQ(h.http("POST", "/pub?topic=t", std::string(200'000, 'x')).status, 200);
  authed(std::string(120'000, 's'));  // within the budget, in as many pieces as the network makes of it
}

// A rolling replacement waits for it.
TEST_F(TcpAuth, ADrainIsQuiescedAlsoWhileAuthenticatedClientsAreConnected) {
  start();
  authed();
  const std::string drain =
      h.http("POST", "/v1/drain", R"({"freeze_deliveries":true})", {{"Content-Type", "application/json"}}).body;
  EXPECT_NE(drain.find(R"("draining":true,"delivery_frozen":true,"quiesced":true,"empty":true)"), std::string::npos) << drain;
}

TEST_F(TcpAuth, C_80_PublishingNeedsAChannelPatternThatMatchesTheEmptyChannel) {
  reply = AuthServer::grant(R"(["publish"])", "t", R"(["^ch$"])");
  start();
  Client& client = authed();
  client.pub("t", "x");
  EXPECT_FATAL(client, R"(E_UNAUTHORIZED AUTH failed for PUB on "t" "")");
  reply = AuthServer::grant(R"(["publish"])", "t", R"([".*"])");
  forget();
  Client& allowed = authed();
  allowed.pub("xtx", "x");  // patterns are not anchored
  EXPECT_RESPONSE(allowed, "OK");
  allowed.sub("t", "c");
  EXPECT_FATAL(allowed, R"(E_UNAUTHORIZED AUTH failed for SUB on "t" "c")");
}

TEST_F(TcpAuth, C_81_ExpiredGrantsAreAskedForAgainOnceAndASubscriptionGoesOn) {
  reply = AuthServer::grant(kBoth, ".*", R"([".*"])", 2);
  start();
  Client& consumer = authed();
  consumer.sub("t", "c");
  EXPECT_RESPONSE(consumer, "OK");
  consumer.rdy(5);
  Client& client = authed("other");
  EXPECT_EQ(first.heads.size(), 2u);
  h.run_for(3'000);
  client.pub("t", "one");
  EXPECT_RESPONSE(client, "OK");
  client.pub("t", "two");
  EXPECT_RESPONSE(client, "OK");
  EXPECT_EQ(first.heads.size(), 3u) << "one new question";
  first.stop();
  h.run_for(3'000);
  client.pub("t", "three");
  EXPECT_FATAL(client, "E_AUTH_FAILED AUTH failed");
  EXPECT_TRUE(consumer.wait_messages(2));
  EXPECT_FALSE(consumer.closed());
}

TEST_F(TcpAuth, C_82_TheQuestionIsExactlyThatOfNsqd) {
  start();
  authed();
  ASSERT_EQ(first.heads.size(), 1u);
  EXPECT_TRUE(first.heads[0].starts_with("GET /auth?common_name=&remote_ip=127.0.0.1&secret=s&tls=false HTTP/1.1\r\n"))
      << first.heads[0];
  EXPECT_NE(first.heads[0].find("\r\nAccept: application/vnd.nsq; version=1.0\r\n"), std::string::npos);
}

TEST_F(TcpAuth, TheQuestionNamesTlsAndTheCertificateAndIsEncoded) {
  h.config().security.tls.present = true;
  start();
  Client& client = h.connect();
  client.identify(R"({"feature_negotiation":true,"tls_v1":true})");
  client.answer();
  client.start_tls("node one");
  EXPECT_RESPONSE(client, "OK");
  client.send(auth("a&b=ü"));
  EXPECT_EQ(client.answer().type, 0);
  ASSERT_EQ(first.heads.size(), 1u);
  EXPECT_NE(first.heads[0].find("common_name=node+one&remote_ip=127.0.0.1&secret=a%26b%3D%C3%BC&tls=true "), std::string::npos)
      << first.heads[0];
}

TEST_F(TcpAuth, B_34_ADenialIsFinalAndAnUnusableAnswerIsNot) {
  h.config().security.auth_http_addresses = {kFirst, kSecond};
  second.start();
  start();
  // The first address asked is a random one (D-05): whichever it is says no, and the other one is not asked.
  const std::string good = reply;
  std::vector<std::string> asked;
  first.answer = [&](const std::string&) {
    asked.push_back("first");
    return asked.size() == 1 ? AuthServer::status(403) : good;
  };
  second.answer = [&](const std::string&) {
    asked.push_back("second");
    return asked.size() == 1 ? AuthServer::status(403) : good;
  };
  refused("E_UNAUTHORIZED AUTH no authorizations found");
  EXPECT_EQ(asked.size(), 1u);

  std::size_t questions = 0;
  first.answer = second.answer = [&](const std::string&) { return ++questions == 1 ? AuthServer::document("no json") : good; };
  authed();
  EXPECT_EQ(questions, 2u);
}

TEST_F(TcpAuth, B_35_AnswersOutOfBoundsFail) {
  h.config().limits.auth_response_bytes = 20'000;
  start();
  const std::string document = R"({"ttl":1,"authorizations":[{"permissions":["publish"],"topic":".*","channels":[".*"]}],"x":")";
  const std::string full = document + std::string(20'000 - document.size() - 2, 'x') + "\"}";
  const auto chunked = [](const std::string& body) {
    return fmt::format("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{}\r\n0\r\n\r\n", body.size(), body);
  };
  reply = chunked(full);
  Client& client = h.connect();
  client.send(auth("s"));
  EXPECT_EQ(client.answer().type, 0) << "exactly the limit";
  forget();
  reply = chunked(full + " ");
  refused("E_AUTH_FAILED AUTH failed");
  reply = AuthServer::grant(kBoth, ".*", R"([".*"])", 0);
  refused("E_AUTH_FAILED AUTH failed");
  std::string patterns = "[";
  for (int i = 0; i < 256; ++i) patterns += "\"c\",";
  reply = AuthServer::grant(kBoth, ".*", patterns + "\"c\"]");
  refused("E_AUTH_FAILED AUTH failed");
  reply = AuthServer::document(R"({"ttl":10,"authorizations":[]})");
  refused("E_UNAUTHORIZED AUTH no authorizations found");
  reply = AuthServer::document(R"({"ttl":10,"authorizations":[{"permissions":["everything"],"topic":".*"}]})");
  refused("E_AUTH_FAILED AUTH failed");
  reply = AuthServer::document(R"({"ttl":10,"authorizations":[{"permissions":["publish"],"topic":"("}]})");
  refused("E_AUTH_FAILED AUTH failed");
  reply = AuthServer::status(302);
  refused("E_AUTH_FAILED AUTH failed");
}

TEST_F(TcpAuth, B_36_TheTtlIsCappedAndAnExpiredGrantAsksOnce) {
  h.config().limits.auth_max_ttl_seconds = 2;
  reply = AuthServer::grant(kBoth, ".*", R"([".*"])", 999'999);
  start();
  Client& client = authed();
  h.run_for(3'000);
  client.pub("t", "x");
  EXPECT_RESPONSE(client, "OK");
  client.pub("t", "x");
  EXPECT_RESPONSE(client, "OK");
  EXPECT_EQ(first.heads.size(), 2u);
}

TEST_F(TcpAuth, B_37_ASecondConnectionWithTheSameSecretIsAnsweredFromTheCache) {
  start();
  authed();
  authed();
  EXPECT_EQ(first.heads.size(), 1u);
  authed("another");
  EXPECT_EQ(first.heads.size(), 2u);
}

TEST_F(TcpAuth, B_38_WhenTheMemoryIsHeldBySessionsTheNextOneFailsUntilOneLeaves) {
  h.config().limits.auth_response_bytes = 4'096;
  h.config().limits.auth_memory_bytes = 5 * 16'384;  // three answers' worth, and a few grants
  start();
  std::vector<Client*> held;
  for (int i = 0; i < 20; ++i) {
    Client& client = h.connect();
    client.send(auth("secret " + std::to_string(i)));
    const Frame frame = client.answer();
    if (frame.type == 1) {
      EXPECT_EQ(frame.payload, "E_AUTH_FAILED AUTH failed");
      break;
    }
    held.push_back(&client);
  }
  ASSERT_GT(held.size(), 1u);
  ASSERT_LT(held.size(), 20u);
  held[0]->close();
  h.run_for(100);
  authed("yet another");
}

TEST_F(TcpAuth, B_42_ControlBodiesOverOneMebibyteAreRefused) {
  start();
  expect_fatal(h, "AUTH\n" + int32(1'048'577), "E_BAD_BODY AUTH body too big 1048577 > 1048576");
  expect_fatal(h, "IDENTIFY\n" + int32(1'048'577), "E_BAD_BODY IDENTIFY body too big 1048577 > 1048576");
}

TEST_F(TcpAuth, ASilentServerFailsAfterItsTimeAndNoHeartbeatComesBeforeTheAnswer) {
  h.config().limits.auth_timeout_ms = 3'000;
  reply = "";
  start();
  Client& client = h.connect();
  client.keep_heartbeats(true);
  client.identify(R"({"heartbeat_interval":1000})");
  EXPECT_RESPONSE(client, "OK");
  client.send(auth("s"));
  h.run_for(2'900);
  EXPECT_TRUE(client.frames().empty());
  EXPECT_FATAL(client, "E_AUTH_FAILED AUTH failed");
}

// nsqjs and go-nsq take the first frame behind AUTH as its answer, and a busy machine may send it late.
TEST_F(TcpAuth, AHeartbeatWaitsOnceForAnAuthThatIsLate) {
  start();
  Client& client = h.connect();
  client.keep_heartbeats(true);
  client.identify(R"({"heartbeat_interval":1000})");
  EXPECT_RESPONSE(client, "OK");
  h.run_for(1'700);
  client.send(auth("s"));
  EXPECT_RESPONSE(client, R"({"identity":"someone","identity_url":"http://who","permission_count":1})");
  EXPECT_RESPONSE(client, "_heartbeat_");
  Client& silent = h.connect();
  silent.answer_heartbeats(false);
  silent.keep_heartbeats(true);
  silent.identify(R"({"heartbeat_interval":1000})");
  EXPECT_RESPONSE(silent, "OK");
  h.run_for(1'900);
  EXPECT_TRUE(silent.frames().empty());
  EXPECT_RESPONSE(silent, "_heartbeat_");
  h.run_for(1'500);
  EXPECT_TRUE(silent.closed()) << "two intervals after the one that was left out";
}

// Nothing is read while the question runs, so the end of the connection shows when its time for progress is over.
TEST_F(TcpAuth, AConnectionMayLeaveWhileItsQuestionRuns) {
  h.config().limits.auth_timeout_ms = 10'000;
  reply = "";
  start();
  Client& client = h.connect();
  client.identify(R"({"heartbeat_interval":1000})");
  EXPECT_RESPONSE(client, "OK");
  client.send(auth("s"));
  h.run_for(100);
  client.close();
  h.run_for(5'000);
  EXPECT_EQ(h.broker().tcp_connections(), 0u);
  EXPECT_TRUE(h.broker().quiet());
  h.run_for(10'000);
  reply = AuthServer::grant(kBoth, ".*", R"([".*"])");
  authed();
  EXPECT_TRUE(h.stop());
}

TEST(AuthAddresses, AUrlIsAskedAsItStandsAndAHostWithPortAtAuth) {
  const auto text = [](std::string_view address) {
    const AuthAddress a = parse_auth_address(address);
    return std::string(a.https() ? "s " : "") + a.host + " " + a.port + " " + a.path + " " + a.host_header;
  };
  EXPECT_EQ(text("1.2.3.4:80"), "1.2.3.4 80 /auth 1.2.3.4:80");
  EXPECT_EQ(text("auth:4181/"), "auth 4181 /auth auth:4181");
  EXPECT_EQ(text("auth:4181/realm"), "auth 4181 /realm/auth auth:4181");
  EXPECT_EQ(text("http://auth:4181"), "auth 4181 / auth:4181");
  EXPECT_EQ(text("http://auth:4181/"), "auth 4181 / auth:4181");
  EXPECT_EQ(text("http://auth/check/"), "auth 80 /check/ auth");
  EXPECT_EQ(text("HTTPS://auth/check?x=1#here"), "s auth 443 /check?x=1 auth");
  EXPECT_EQ(text("http://auth?x=1"), "auth 80 /?x=1 auth");
  EXPECT_EQ(text("http://[::1]:81/a"), "[::1] 81 /a [::1]:81");
  EXPECT_EQ(text("http://u:p@auth:81/a"), "auth 81 /a auth:81");
  EXPECT_EQ(parse_auth_address("http://u:p@auth/a").authorization, "Basic dTpw");
  EXPECT_EQ(parse_auth_address("http://u%3A@auth/a").authorization, "Basic dTo6");
  EXPECT_EQ(parse_auth_address("http://auth/a@b").authorization, "");
}

TEST_F(TcpAuth, WhatIsAskedOfEachFormOfAddress) {
  std::vector<std::string> heads;
  first.answer = [&](const std::string& head) {
    heads.push_back(head);
    return reply;
  };
  const std::string parameters = "common_name=&remote_ip=127.0.0.1&secret=s&tls=false HTTP/1.1\r\nHost: 127.0.0.1:4181\r\n";
  for (const auto& [address, line] :
       std::vector<std::pair<std::string, std::string>>{{kFirst, "/auth?"},
                                                        {"http://" + std::string(kFirst), "/?"},
                                                        {"http://" + std::string(kFirst) + "/check", "/check?"},
                                                        {"http://u:p@" + std::string(kFirst) + "/check?x=1", "/check?x=1&"}}) {
    BrokerHarness one;
    sim::AuthServer server{one.world(), one.world().make_disk("auth"), "auth-1", kFirst};
    heads.clear();
    server.answer = first.answer;
    one.config().security.auth_http_addresses = {address};
    server.start();
    ASSERT_TRUE(one.start());
    Client& client = one.connect();
    client.send(auth("s"));
    EXPECT_RESPONSE(client, R"({"identity":"someone","identity_url":"http://who","permission_count":1})");
    ASSERT_EQ(heads.size(), 1u) << address;
    EXPECT_EQ(heads[0].substr(0, 4 + line.size() + parameters.size()), "GET " + line + parameters) << address;
    EXPECT_EQ(heads[0].find("Authorization: Basic dTpw\r\n") != std::string::npos, address.find('@') != std::string::npos);
    EXPECT_TRUE(one.stop());
  }
}

}  // namespace
}  // namespace rq::broker::test
