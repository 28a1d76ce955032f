// A live feed after its upgrade (page 31 sections 6.2 to 6.7).
#include "sim/auth_server.h"
#include "tests/broker/live_support.h"

namespace rq::sim {
namespace {

class LiveFeed : public LiveTest {
 protected:
  // Everything that a feed holds is back.
  void expect_nothing_left() {
    ASSERT_TRUE(h.run_until([&] { return h.broker().live_feeds().size() == 0; }));
    EXPECT_EQ(h.broker().live_feeds().frame_bytes(), 0u);
    EXPECT_TRUE(no_channels());
    EXPECT_EQ(h.broker().engine().metrics().in_flight_messages, 0u);
    EXPECT_EQ(h.broker().engine().metrics().delivery_bytes, 0u);
    h.broker().check_invariants();
  }
};

TEST_F(LiveFeed, B_76_CaptureBeginsAtReadyAndAFrameHasItsLayout) {
  start();
  ASSERT_EQ(h.publish("t", "before"), "OK");
  Feed& open = ready();
  ASSERT_EQ(h.publish("t", "hello"), "OK");
  const LiveFrame frame = open.next();
  ASSERT_EQ(frame.opcode, 2);
  ASSERT_EQ(frame.payload.size(), 29u);
  const auto* bytes = bytes_of(frame.payload).data();
  EXPECT_EQ(frame.payload.substr(0, 8), std::string("RQW1\x00\x18\x00\x01", 8));
  EXPECT_NEAR(static_cast<double>(load64(bytes + 8)), static_cast<double>(h.process().turn().now().wall.ns), 5e9);
  EXPECT_EQ(load64(bytes + 16) >> 48, 1u) << "the node id";
  EXPECT_EQ(frame.payload.substr(24), "hello");
  EXPECT_EQ(open.heard(2'000), "nothing");
}

TEST_F(LiveFeed, MessagesComeInOrderAndAreCountedApartFromNsqDeliveries) {
  start();
  Feed& open = ready();
  for (int i = 0; i < 50; ++i) ASSERT_EQ(h.publish("t", "body " + std::to_string(i)), "OK");
  for (int i = 0; i < 50; ++i) ASSERT_EQ(open.heard(), "message body " + std::to_string(i));
  EXPECT_EQ(counters().websocket_messages, 50u);
  EXPECT_EQ(counters().websocket_bytes, 10u * 6 + 40u * 7);
  EXPECT_EQ(counters().delivered_messages, 0u);
  EXPECT_EQ(h.broker().engine().metrics().finished_messages, 0u);
  open.close();
  expect_nothing_left();
}

TEST_F(LiveFeed, ALargeMessageIsOneFrame) {
  start();
  Feed& open = ready();
  const std::string body(3 << 20, 'b');
  ASSERT_EQ(h.publish("t", body), "OK");
  EXPECT_EQ(open.next(20'000).payload.substr(24), body);
  EXPECT_EQ(h.broker().live_feeds().frame_bytes(), 0u);
}

TEST_F(LiveFeed, TheSubscriberStandsInTheStatistics) {
  start();
  ready();
  const std::string stats = h.http("GET", "/stats?format=json&topic=t").body;
  for (const char* part : {R"("channel_name":"ws.1.1#ephemeral")", R"("client_id":"ws-1","hostname":"websocket")", R"("state":3)",
                           R"("ready_count":1)", R"("user_agent":"rustqueue.live.v1")"})
    EXPECT_NE(stats.find(part), std::string::npos) << part << stats;
  EXPECT_NE(h.http("GET", "/metrics").body.find("\nrustqueue_websocket_connections 1\n"), std::string::npos);
  EXPECT_NE(h.http("GET", "/v1/observe/head").body.find(R"("websocket_connections":1)"), std::string::npos);
}

TEST_F(LiveFeed, B_79_AMessageOfTheClientEndsItAndAPingIsAnswered) {
  start();
  Feed& open = ready();
  open.send(9, "are you there");
  EXPECT_EQ(open.heard(), "pong are you there");
  open.text("hello");
  EXPECT_EQ(open.ended(), "E_WS_CONTROL 1008");
  EXPECT_TRUE(open.client().wait_closed());
  Feed& binary = ready();
  binary.send(2, "x");
  EXPECT_EQ(binary.ended(), "E_WS_CONTROL 1008");
}

TEST_F(LiveFeed, ACloseIsEchoedAndProtocolErrorsHaveTheirCodes) {
  start();
  Feed& polite = ready();
  polite.send(8, std::string("\x03\xe8") + "bye");
  EXPECT_EQ(polite.heard(), "close 1000 ");
  EXPECT_TRUE(polite.client().wait_closed());
  Feed& unmasked = ready();
  unmasked.client().send(std::string("\x89\x00", 2));
  EXPECT_EQ(unmasked.heard(), "close 1002 ");
  Feed& large = ready();
  large.send(1, std::string(65'537, 'x'));
  EXPECT_EQ(large.heard(), "close 1009 ");
  expect_nothing_left();
}

TEST_F(LiveFeed, B_80_APeerThatAnswersNoPingIsGivenUpAfterTwoIntervals) {
  start([](broker::Config& c) { c.limits.heartbeat_interval_ms = 1'000; });
  Feed& silent = ready();
  silent.answer_pings = false;
  h.run_for(900);
  EXPECT_EQ(silent.heard(1'900),
            "{\"type\":\"error\",\"code\":\"E_WS_HEARTBEAT\",\"detail\":\"no frame from the client for two "
            "heartbeat intervals\"}");
  EXPECT_EQ(silent.pings, 1);
  EXPECT_EQ(silent.heard(), "close 1008 E_WS_HEARTBEAT");
  Feed& good = ready();
  EXPECT_EQ(good.heard(5'500), "nothing");
  EXPECT_EQ(good.pings, 5);
  EXPECT_EQ(counters().websocket_slow_disconnects, 1u);
}

TEST_F(LiveFeed, AStandstillOfTheBrokerIsNotHeldAgainstItsFeeds) {
  start([](broker::Config& c) { c.limits.heartbeat_interval_ms = 1'000; });
  Feed& good = ready();
  h.process().stand_still(5 * kSecond);
  EXPECT_EQ(good.heard(10'500), "nothing");
  EXPECT_GE(good.pings, 5);
  Feed& silent = ready();
  silent.answer_pings = false;
  h.process().stand_still(5 * kSecond);
  EXPECT_EQ(silent.heard(5'900), "nothing") << "it was not asked before";
  EXPECT_EQ(silent.ended(1'200), "E_WS_HEARTBEAT 1008");
}

TEST_F(LiveFeed, B_81_AClientThatStopsReadingIsDroppedAtTheTtlOrAtTheWriteLimit) {
  start([](broker::Config& c) { c.limits.tcp_command_timeout_ms = 4'000; });
  const std::string large(1 << 20, 'x');
  for (const std::uint64_t ttl_seconds : {std::uint64_t{2}, std::uint64_t{3'600}}) {
    configure("t", {true, ttl_seconds});
    Feed& stuck = ready();
    Feed& good = ready();
    stuck.client().stop_reading(true);
    ASSERT_EQ(h.publish("t", large), "OK");
    EXPECT_EQ(good.next().payload.size(), 24 + large.size());
    EXPECT_EQ(h.broker().live_feeds().frame_bytes(), 24 + large.size());
    const std::int64_t limit = ttl_seconds == 2 ? 2'000 : 4'000;
    h.run_for(limit - 600);
    EXPECT_EQ(h.broker().live_feeds().size(), 2u);
    ASSERT_TRUE(h.run_until([&] { return h.broker().live_feeds().size() == 1; }, 1'000)) << ttl_seconds;
    EXPECT_EQ(counters().websocket_slow_disconnects, ttl_seconds == 2 ? 0u : 1u);
    stuck.client().stop_reading(false);
    EXPECT_EQ(stuck.heard(), "closed") << "no close frame";
    ASSERT_EQ(h.publish("t", "next"), "OK");
    EXPECT_EQ(good.heard(), "message next");
    good.close();
    expect_nothing_left();
  }
}

TEST_F(LiveFeed, AnotherTtlMovesTheDeadlineOfTheWrite) {
  start([](broker::Config& c) { c.limits.tcp_command_timeout_ms = 60'000; });
  configure("t", {true, 3});
  Feed& stuck = ready();
  stuck.client().stop_reading(true);
  ASSERT_EQ(h.publish("t", std::string(1 << 20, 'x')), "OK");
  h.run_for(1'000);
  configure("t", {true, 10});
  h.run_for(6'000);
  EXPECT_EQ(h.broker().live_feeds().size(), 1u);
  EXPECT_TRUE(h.run_until([&] { return h.broker().live_feeds().size() == 0; }, 4'000));
  EXPECT_EQ(counters().websocket_slow_disconnects, 0u);
}

TEST_F(LiveFeed, AnotherTtlAndADeletionInOneTurnEndTheFeedThatHoldsAMessage) {
  start();
  Feed& stuck = ready();
  stuck.client().stop_reading(true);
  ASSERT_EQ(h.publish("t", std::string(1 << 20, 'x')), "OK");
  h.run_for(300);
  ASSERT_GT(h.broker().live_feeds().frame_bytes(), 0u);
  queue::Engine& engine = h.broker().engine();
  engine.configure("t", {true, 60}, false, queue::WaiterId::none, h.process().turn().now());
  engine.admin(queue::Admin::delete_topic, "t", {}, queue::WaiterId::none, h.process().turn().now());
  h.process().poke();
  ASSERT_TRUE(h.run_until([&] { return h.broker().live_feeds().size() == 0; }));
  stuck.client().stop_reading(false);
  EXPECT_EQ(stuck.heard(), "closed");
  EXPECT_FALSE(engine.has_topic("t"));
  EXPECT_EQ(h.broker().live_feeds().frame_bytes(), 0u);
  EXPECT_EQ(engine.metrics().in_flight_messages, 0u);
  h.broker().check_invariants();
}

TEST_F(LiveFeed, B_82_WithoutFrameMemoryForTheSecondFrameItsFeedEnds) {
  start([](broker::Config& c) {
    c.queue.max_message_bytes = 1 << 20;
    c.websocket.frame_inflight_bytes = (1 << 20) + 24;
  });
  Feed& stuck = ready();
  Feed& second = ready();
  stuck.client().stop_reading(true);
  ASSERT_EQ(h.publish("t", std::string(1 << 20, 'x')), "OK");
  h.run_for(500);
  std::vector<std::string> ends;
  for (Feed* each : {&stuck, &second}) {
    each->client().stop_reading(false);
    const LiveFrame first = each->next();
    if (first.opcode == 1) ends.push_back(first.payload.substr(24, 13) + " " + std::to_string(each->next().close_code()));
  }
  EXPECT_EQ(ends, std::vector<std::string>{"E_WS_CAPACITY 1013"});
  EXPECT_EQ(counters().websocket_capacity_rejections, 1u);
  ASSERT_TRUE(h.run_until([&] { return h.broker().live_feeds().frame_bytes() == 0; }));
}

TEST_F(LiveFeed, ATopicWithoutRoomForAnotherChannelIsACapacityEnd) {
  start();
  for (int i = 0; i < 1'024; ++i)
    h.broker().engine().admin(queue::Admin::create_channel, "t", "c" + std::to_string(i) + "#ephemeral", queue::WaiterId::none,
                              h.process().turn().now());
  h.process().poke();
  Feed& open = feed();
  EXPECT_EQ(open.open("t"), 101);
  EXPECT_EQ(open.ended(), "E_WS_CAPACITY 1013");
  EXPECT_EQ(counters().websocket_capacity_rejections, 1u);
}

TEST_F(LiveFeed, B_83_ReliableForAMomentIsEnough) {
  start();
  Feed& open = ready();
  queue::Engine& engine = h.broker().engine();
  engine.configure("t", {false, 0}, false, queue::WaiterId::none, h.process().turn().now());
  engine.configure("t", {true, 60}, false, queue::WaiterId::none, h.process().turn().now());
  h.process().poke();
  EXPECT_EQ(open.ended(), "E_WS_TTL_REQUIRED 1008");
  ASSERT_TRUE(h.run_until([&] { return engine.policy_of("t") == queue::DeliveryPolicy{true, 60}; }));
  ready();  // a new one is welcome
}

TEST_F(LiveFeed, AnotherTtlKeepsTheFeed) {
  start();
  Feed& open = ready();
  configure("t", {true, 60});
  ASSERT_EQ(h.publish("t", "x"), "OK");
  EXPECT_EQ(open.heard(), "message x");
}

TEST_F(LiveFeed, AChangeToReliableInTheMiddleOfAFrameCutsTheConnection) {
  start();
  Feed& stuck = ready();
  stuck.client().stop_reading(true);
  ASSERT_EQ(h.publish("t", std::string(1 << 20, 'x')), "OK");
  h.run_for(300);
  configure("t", {false, 0});
  stuck.client().stop_reading(false);
  EXPECT_EQ(stuck.heard(), "closed");
  EXPECT_EQ(counters().websocket_slow_disconnects, 0u);
  expect_nothing_left();
}

TEST_F(LiveFeed, B_84_ADeletedTopicAFreezeAndAStopEndIt) {
  start();
  Feed& deleted = ready();
  h.http("POST", "/topic/delete?topic=t");
  EXPECT_EQ(deleted.ended(), "E_TOPIC_CLOSED 1001");
  configure("t", {true, 60});
  Feed& frozen = ready();
  h.broker().set_drain(true, true);
  h.process().poke();
  EXPECT_EQ(frozen.ended(), "E_DRAINING 1001");
  h.broker().set_drain(false, false);
  Feed& stopped = ready();
  EXPECT_TRUE(h.stop());
  EXPECT_EQ(stopped.ended(), "E_SHUTDOWN 1001");
}

TEST_F(LiveFeed, ATombstoneEndsIt) {
  start();
  Feed& open = ready();
  h.run_for(500);
  queue::ManagedRequest request;
  request.operation_id = "0123456789abcdef";
  request.action = queue::ManagedAction::tombstone;
  request.topic = "t";
  request.expected_revision = h.broker().engine().registry_revision();
  request.tombstone_until_ms = h.process().turn().now().wall.ms() + 60'000;
  h.broker().engine().manage(request, queue::WaiterId::none);
  h.process().poke();
  EXPECT_EQ(open.ended(), "E_TOPIC_CLOSED 1001");
}

TEST_F(LiveFeed, UnknownFencesAreAnotherOwner) {
  start();
  ASSERT_TRUE(h.stop());
  h.config().security.console_management_enabled = true;
  h.config().security.console_token_file = "tokens/console";
  h.disk().put("tokens/console", "console");
  ASSERT_TRUE(h.start());
  Feed& open = feed();
  EXPECT_EQ(open.open("t"), 101);
  EXPECT_EQ(open.ended(), "E_OWNER_CHANGED 1012");
}

TEST_F(LiveFeed, AStorageFaultIsAShutdown) {
  start();
  Feed& open = ready();
  h.disk().faults.write_io_error = 1'024;
  Client& publisher = h.connect();
  publisher.pub("t", "x");
  EXPECT_EQ(open.ended(), "E_SHUTDOWN 1001");
}

// Decided form (D-34): any drain closes live feeds.
TEST_F(LiveFeed, B_85_APlainDrainEndsItAndAPausedTopicSendsNothing) {
  start();
  Feed& open = ready();
  h.http("POST", "/topic/pause?topic=t");
  ASSERT_EQ(h.publish("t", "held"), "OK");
  EXPECT_EQ(open.heard(3'000), "nothing");
  h.http("POST", "/topic/unpause?topic=t");
  EXPECT_EQ(open.heard(), "message held");
  h.http("POST", "/v1/drain", "{}", {{"Content-Type", "application/json"}});
  EXPECT_EQ(open.ended(), "E_DRAINING 1001");
}

TEST_F(LiveFeed, B_86_AfterAnyEndItsChannelIsGoneAndItsSlotAndMemoryAreBack) {
  start();
  const std::string large(1 << 20, 'x');
  for (int way = 0; way < 4; ++way) {
    Feed& open = ready();
    open.client().stop_reading(way >= 2);
    ASSERT_EQ(h.publish("t", large), "OK");
    if (way < 2) {
      ASSERT_EQ(open.next().opcode, 2);
    }
    h.run_for(300);
    if (way == 0) open.close();
    if (way == 1) open.text("x");
    if (way == 2) open.client().process().kill();
    if (way == 3) h.http("POST", "/topic/empty?topic=t");
    if (way == 3) open.client().process().kill();
    expect_nothing_left();
  }
}

TEST_F(LiveFeed, AMessageThatExpiresBeforeItsFrameBeginsIsPassedOver) {
  start();
  configure("t", {true, 1});
  Feed& open = ready();
  ASSERT_EQ(h.http("POST", "/pub?topic=t&defer=5000", "late").status, 200);
  EXPECT_EQ(open.heard(8'000), "nothing");
  ASSERT_EQ(h.publish("t", "fresh"), "OK");
  EXPECT_EQ(open.heard(), "message fresh");
}

TEST_F(LiveFeed, PingsOfAClientThatDoesNotReadAreNotHeaped) {
  start();
  Feed& open = ready();
  open.client().stop_reading(true);
  for (int i = 0; i < 4'000; ++i) open.send(9, std::string(125, 'p'));
  ASSERT_TRUE(h.run_until([&] { return h.broker().live_feeds().size() == 0; }, 60'000));
  expect_nothing_left();
}

// --- AUTH after the upgrade

class LiveFeedAuth : public LiveFeed {
 protected:
  void begin(const Tweak& tweak = {}) {
    start([&](broker::Config& c) {
      c.security.auth_http_addresses = {"127.0.0.1:4181"};
      if (tweak) tweak(c);
    });
    server.answer = [this](const std::string&) { return reply; };
    server.start();
  }
  Feed& asked() {
    Feed& open = feed();
    EXPECT_EQ(open.open("t"), 101);
    EXPECT_EQ(open.heard(), R"({"type":"auth_required"})");
    return open;
  }
  sim::SimDisk& disk = h.world().make_disk("auth");
  AuthServer server{h.world(), disk, "auth", "127.0.0.1:4181"};
  std::string reply = AuthServer::grant(R"(["subscribe"])", "^t$", R"(["^websocket#ephemeral$"])");
};

TEST_F(LiveFeedAuth, B_77_TheClientHasToSaySoInTime) {
  begin();
  Feed& silent = asked();
  h.run_for(4'500);
  EXPECT_FALSE(silent.closed());
  EXPECT_EQ(silent.ended(1'000), "E_AUTH_TIMEOUT 1008");
  Feed& binary = asked();
  binary.send(2, R"({"type":"auth","secret":"s"})");
  EXPECT_EQ(binary.ended(), "E_BAD_AUTH 1008");
  Feed& garbage = asked();
  garbage.text("secret");
  EXPECT_EQ(garbage.ended(), "E_BAD_AUTH 1008");
  Feed& good = asked();
  good.send(9, "");  // a ping is no answer yet
  EXPECT_EQ(good.heard(), "pong ");
  good.text(R"({"type":"auth","secret":"s","else":1})");
  EXPECT_EQ(good.heard().substr(0, 16), R"({"type":"ready",)");
  reply = AuthServer::status(403);
  Feed& wrong = asked();
  wrong.text(R"({"type":"auth","secret":"wrong"})");
  EXPECT_EQ(wrong.ended(), "E_UNAUTHORIZED 1008");
  reply = AuthServer::status(500);
  Feed& unlucky = asked();
  unlucky.text(R"({"type":"auth","secret":"unlucky"})");
  EXPECT_EQ(unlucky.ended(), "E_AUTH_FAILED 1008");
  EXPECT_EQ(counters().websocket_auth_failures, 5u);
  EXPECT_EQ(counters().auth_failures, 5u);
}

TEST_F(LiveFeedAuth, B_78_AGrantForAnotherChannelIsNotEnough) {
  reply = AuthServer::grant(R"(["subscribe"])", "^t$", R"(["^workers$"])");
  begin();
  Feed& open = asked();
  open.text(R"({"type":"auth","secret":"s"})");
  EXPECT_EQ(open.ended(), "E_UNAUTHORIZED 1008");
}

TEST_F(LiveFeedAuth, ADisconnectWhileItsSecretIsAwaitedCounts) {
  begin();
  asked().close();
  ASSERT_TRUE(h.run_until([&] { return h.broker().live_feeds().size() == 0; }));
  EXPECT_EQ(counters().websocket_auth_failures, 1u);
  Feed& polite = asked();
  polite.send(8, "");
  EXPECT_EQ(polite.heard(), "close 0 ");
  EXPECT_EQ(counters().websocket_auth_failures, 1u);
}

TEST_F(LiveFeedAuth, AnExpiredGrantIsRenewedWithTheSecretOrEndsTheFeed) {
  reply = AuthServer::grant(R"(["subscribe"])", "^t$", R"(["^websocket#ephemeral$"])", 2);
  begin();
  Feed& open = asked();
  open.text(R"({"type":"auth","secret":"s"})");
  EXPECT_EQ(open.heard().substr(0, 16), R"({"type":"ready",)");
  h.run_for(5'000);
  EXPECT_GE(server.heads.size(), 3u);
  EXPECT_NE(server.heads.back().find("secret=s&"), std::string::npos);
  ASSERT_EQ(h.publish("t", "x"), "E_AUTH_FIRST AUTH required before PUB");
  ASSERT_EQ(h.http("POST", "/pub?topic=t", "x").status, 200);
  EXPECT_EQ(open.heard(), "message x");
  reply = AuthServer::status(403);
  EXPECT_EQ(open.ended(), "E_UNAUTHORIZED 1008");
  expect_nothing_left();
}

TEST_F(LiveFeedAuth, WithoutConfiguredAuthTheHeaderMeansNothing) {
  start();
  ready("t", Feed::with({{"Authorization", "Basic whatever"}}));
}

}  // namespace
}  // namespace rq::sim
