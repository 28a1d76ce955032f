// PUB, MPUB and DPUB over a connection (page 10 section 10, C-34 to C-46; page 31 section 10.2).
#include "tests/broker/tcp_support.h"

namespace rq::broker::test {
namespace {

constexpr std::uint32_t kMessageMax = 20'971'520;

// In virtual time a whole segment at a time, so that 20 MiB take few events.
void whole_pieces(BrokerHarness& h) { h.world().net().fragment = false; }

TEST(TcpPublish, C_34_B_19_MessageSizeBounds) {
  BrokerHarness h;
  whole_pieces(h);
  ASSERT_TRUE(h.start());
  expect_fatal(h, "PUB t\n" + int32(0), "E_BAD_MESSAGE PUB invalid message body size 0");
  expect_fatal(h, "PUB t\n" + int32(0xffffffff), "E_BAD_MESSAGE PUB invalid message body size -1");
  expect_fatal(h, "PUB t\n" + int32(kMessageMax + 1), "E_BAD_MESSAGE PUB message too big 20971521 > 20971520");
  EXPECT_FALSE(h.broker().engine().has_topic("t"));
  Client& client = h.connect();
  client.pub("t", std::string(kMessageMax, 'x'));
  const Frame frame = client.answer(60'000);
  EXPECT_EQ(frame.payload, "OK");
  EXPECT_USABLE(client);
}

TEST(TcpPublish, C_35_APublishWithoutABodyReadsTheNextCommandAsItsSize) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  expect_fatal(h, "PUB t\nNOP\n", "E_BAD_MESSAGE PUB message too big 1313820682 > 20971520");
}

TEST(TcpPublish, C_36_TheErrorOfAnOversizedBodyIsReadableAlthoughTheClientKeepsSending) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  whole_pieces(h);
  expect_fatal(h, "PUB t\n" + int32(kMessageMax + 1) + std::string(3'000'000, 'x'),
               "E_BAD_MESSAGE PUB message too big 20971521 > 20971520");
}

TEST(TcpPublish, C_37_AnInvalidTopicIsNamedBeforeTheBody) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  expect_fatal(h, "PUB t$\n" + int32(1) + "x", "E_BAD_TOPIC PUB topic name \"t$\" is not valid");
  expect_fatal(h, "DPUB t$ 1\n" + int32(1) + "x", "E_BAD_TOPIC DPUB topic name \"t$\" is not valid");
  expect_fatal(h, "PUB\n", "E_INVALID PUB insufficient number of parameters");
  expect_fatal(h, "DPUB t\n", "E_INVALID DPUB insufficient number of parameters");
}

TEST(TcpPublish, C_38_AThousandPipelinedPublishesGetAThousandAnswersInOrder) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  Client& client = h.connect();
  for (int i = 0; i < 1'000; ++i) client.pub("t", "m" + std::to_string(i));
  ASSERT_TRUE(client.wait_frames(1'000, 60'000));
  h.run_for(100);
  ASSERT_EQ(client.frames().size(), 1'000u);
  for (const Frame& frame : client.frames()) ASSERT_EQ(frame.payload, "OK");
  Client& consumer = h.consumer("t", "c", 1'000);
  ASSERT_TRUE(consumer.wait_messages(1'000, 60'000));
  const auto messages = consumer.messages();
  for (int i = 0; i < 1'000; ++i) ASSERT_EQ(messages[static_cast<std::size_t>(i)].body, "m" + std::to_string(i));
}

TEST(TcpPublish, APipelinedErrorComesBehindTheAnswersBeforeIt) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  Client& client = h.connect();
  client.pub("t", "a");
  client.pub("t", "b");
  client.send("PUB t$\n");
  client.pub("t", "c");
  EXPECT_RESPONSE(client, "OK");
  EXPECT_RESPONSE(client, "OK");
  EXPECT_FATAL(client, "E_BAD_TOPIC PUB topic name \"t$\" is not valid");
}

TEST(TcpPublish, C_39_AnInvalidTopicOfMpubHasItsCodeTwice) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  expect_fatal(h, "MPUB t$\n", "E_BAD_TOPIC E_BAD_TOPIC MPUB topic name \"t$\" is not valid");
}

TEST(TcpPublish, C_40_B_20_AnMpubHoldsOneTo65536Messages) {
  BrokerHarness h;
  whole_pieces(h);
  ASSERT_TRUE(h.start());
  expect_fatal(h, "MPUB t\n" + int32(4) + int32(0), "E_BAD_BODY MPUB invalid message count 0");
  expect_fatal(h, "MPUB t\n" + int32(4 + 5 * 65'537) + int32(65'537), "E_BAD_BODY MPUB invalid message count 65537");
  EXPECT_FALSE(h.broker().engine().has_topic("t"));
  Client& client = h.connect();
  client.mpub("t", std::vector<std::string>(65'536, "x"));
  EXPECT_EQ(client.answer(60'000).payload, "OK");
}

TEST(TcpPublish, C_41_AnMpubWithAnEmptyMessageStoresNothing) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  Client& client = h.connect();
  client.mpub("t", {"a", "", "c"});
  EXPECT_FATAL(client, "E_BAD_MESSAGE MPUB invalid message(1) body size 0");
  h.run_for(100);
  EXPECT_FALSE(h.broker().engine().has_topic("t"));
}

TEST(TcpPublish, C_42_AWrongOuterSizeIsABadBody) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  const std::string two = int32(2) + int32(1) + "a" + int32(1) + "b";
  expect_fatal(h, "MPUB t\n" + int32(static_cast<std::uint32_t>(two.size() + 1)) + two + "x", "E_BAD_BODY MPUB trailing bytes");
  expect_fatal(h, "MPUB t\n" + int32(static_cast<std::uint32_t>(two.size() - 1)) + two,
               "E_BAD_BODY MPUB message(1) exceeds body size");
  EXPECT_FALSE(h.broker().engine().has_topic("t"));
}

TEST(TcpPublish, AnMpubBodyHasASizeLimitOfItsOwn) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  expect_fatal(h, "MPUB t\n" + int32(0), "E_BAD_BODY MPUB invalid body size 0");
  expect_fatal(h, "MPUB t\n" + int32(67'108'865), "E_BAD_BODY MPUB body too big 67108865 > 67108864");
  expect_fatal(h, "MPUB t\n" + int32(kMessageMax + 9) + int32(1) + int32(kMessageMax + 1),
               "E_BAD_MESSAGE MPUB message too big 20971521 > 20971520");
  expect_fatal(h, "MPUB\n", "E_INVALID MPUB insufficient number of parameters");
}

TEST(TcpPublish, C_43_DpubBounds) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  Client& client = h.connect();
  client.dpub("t", 3'600'000, "x");
  EXPECT_RESPONSE(client, "OK");
  client.dpub("t", 0, "x");
  EXPECT_RESPONSE(client, "OK");
  expect_fatal(h, "DPUB t 3600001\n", "E_INVALID DPUB timeout 3600001 out of range 0-3600000");
  expect_fatal(h, "DPUB t -1\n", "E_INVALID DPUB could not parse timeout -1");
}

TEST(TcpPublish, C_44_ADeferredMessageWaitsOutsideTheDepth) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  Client& consumer = h.consumer("t", "c", 1);
  Client& producer = h.connect();
  const Instant sent = h.now();
  producer.dpub("t", 1'500, "later");
  EXPECT_RESPONSE(producer, "OK");
  EXPECT_EQ(channel_stat(h, "t", "c", "deferred_count"), 1);
  EXPECT_EQ(channel_stat(h, "t", "c", "depth"), 0);
  const auto message = consumer.message();
  ASSERT_TRUE(message);
  EXPECT_EQ(message->attempts, 1);
  EXPECT_GE(message->at - sent, 1'500 * kMillisecond);
  EXPECT_LE(message->at - sent, 1'650 * kMillisecond);
}

TEST(TcpPublish, C_45_ASubscribedConnectionMayPublish) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  Client& client = h.consumer("t", "c", 10);
  for (int i = 0; i < 5; ++i) client.pub("t", "m" + std::to_string(i));
  for (int i = 0; i < 5; ++i) EXPECT_RESPONSE(client, "OK");
  ASSERT_TRUE(client.wait_messages(5));
  for (int i = 0; i < 5; ++i) EXPECT_EQ(client.messages()[static_cast<std::size_t>(i)].body, "m" + std::to_string(i));
}

TEST(TcpPublish, C_46_HeartbeatsGoOnWhileStorageStallsUntilTheProgressLimit) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  ASSERT_EQ(h.publish("t", "warm"), "OK");
  Client& client = h.connect();
  h.disk().faults.stall = 1'024;
  h.disk().faults.stall_ns_max = 200 * kSecond;
  const Instant sent = h.now();
  client.pub("t", "x");
  h.run_for(45'000);
  EXPECT_EQ(client.heartbeats(), 1u);
  EXPECT_FALSE(client.closed());
  ASSERT_TRUE(client.wait_closed(20'000));
  EXPECT_GE(h.now() - sent, 59 * kSecond);
  EXPECT_LE(h.now() - sent, 61 * kSecond);
  EXPECT_TRUE(client.frames().empty());
}

TEST(TcpPublish, B_23_StorageThatTakesThreeIntervalsDoesNotCostTheConnection) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  ASSERT_EQ(h.publish("t", "warm"), "OK");
  Client& client = h.connect();
  client.identify(R"({"heartbeat_interval":1000})");
  EXPECT_RESPONSE(client, "OK");
  client.answer_heartbeats(false);
  h.disk().faults.stall = 1'024;
  h.disk().faults.stall_ns_max = 1'500 * kMillisecond;  // append and barrier: three intervals
  client.pub("t", "x");
  EXPECT_RESPONSE(client, "OK");
  const std::uint64_t before = client.heartbeats();
  client.answer_heartbeats(true);
  h.disk().faults.stall = 0;
  h.run_for(5'000);
  EXPECT_GT(client.heartbeats(), before);
  EXPECT_FALSE(client.closed());
}

TEST(TcpPublish, B_17_AStalledBodyIsTimedOutAndGivesItsBytesBack) {
  BrokerHarness h(1, [](Config& config) { config.limits.tcp_command_timeout_ms = 2'000; });
  ASSERT_TRUE(h.start());
  Client& first = h.connect();
  first.send("PUB t\n" + int32(100) + "half");
  Client& later = h.connect();
  later.send("NOP\nMPUB t\n" + int32(100) + int32(1));
  Client& third = h.connect();
  third.send("NOP\nPUB t\n" + int32(100) + "half");
  h.run_for(1'500);
  EXPECT_FALSE(first.closed());
  EXPECT_FALSE(later.closed());
  EXPECT_FALSE(third.closed());
  EXPECT_EQ(h.broker().publish_bytes_in_flight(), 3u * 4'096);
  EXPECT_FATAL(first, "E_INVALID PUB timed out");
  EXPECT_FATAL(later, "E_INVALID MPUB timed out");
  EXPECT_FATAL(third, "E_INVALID PUB timed out");
  EXPECT_EQ(h.broker().publish_bytes_in_flight(), 0u);
}

TEST(TcpPublish, B_17_TheBodyOfAFirstIdentifyOrAuthIsTimedOutByTheHandshake) {
  BrokerHarness h(1, [](Config& config) { config.security.auth_http_addresses = {"127.0.0.1:4181"}; });
  ASSERT_TRUE(h.start());
  for (const std::string command : {"IDENTIFY", "AUTH"}) {
    Client& control = h.connect();
    control.send(command + "\n" + int32(100) + "{");
    h.run_for(4'900);
    EXPECT_FALSE(control.closed()) << command;
    EXPECT_ERROR(control, "E_INVALID " + command + " timed out");
    EXPECT_TRUE(control.wait_closed(100)) << command;
  }
}

TEST(TcpPublish, HeartbeatsGoOnWhileABodyStallsUntilTheProgressLimit) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  Client& client = h.connect();
  client.identify(R"({"heartbeat_interval":1000})");
  EXPECT_RESPONSE(client, "OK");
  client.answer_heartbeats(false);
  client.send("PUB t\n" + int32(100) + "half");
  h.run_for(4'800);
  EXPECT_GE(client.heartbeats(), 4u);
  EXPECT_FALSE(client.closed());
  EXPECT_FATAL(client, "E_INVALID PUB timed out");
}

TEST(TcpPublish, B_21_AnExhaustedNodeBudgetThrottlesAndTheConnectionGoesOn) {
  BrokerHarness h(1, [](Config& config) {
    config.limits.node_publish_inflight_bytes = 128 * 1'024;
    config.limits.connection_publish_inflight_bytes = 128 * 1'024;
  });
  ASSERT_TRUE(h.start());
  Client& stalled = h.connect();
  stalled.send("PUB t\n" + int32(120 * 1'024) + "half");
  h.run_for(100);
  Client& client = h.connect();
  client.pub("t", std::string(20'000, 'x'));
  EXPECT_ERROR(client, "E_THROTTLED PUB publish budget");
  EXPECT_EQ(h.broker().counters().publish_throttled_requests, 1u);
  EXPECT_EQ(h.broker().counters().publish_throttled_bytes, 20'480u);
  client.pub("t", "small");
  EXPECT_RESPONSE(client, "OK");
  stalled.close();
  h.run_for(100);
  client.pub("t", std::string(20'000, 'x'));
  EXPECT_RESPONSE(client, "OK");
}

TEST(TcpPublish, Q_10_PressureThatStartsWhileABodyIsReadThrottlesItAndReturnsItsBudget) {
  BrokerHarness h(1, [](Config& config) { config.storage.min_free_bytes = 1 << 20; });
  ASSERT_TRUE(h.start());
  Client& client = h.connect();
  client.send("PUB t\n" + int32(8) + "half");
  ASSERT_TRUE(h.run_until([&] { return h.broker().publish_bytes_in_flight() > 0; }));
  const std::uint64_t capacity = h.disk().capacity;
  h.disk().capacity = 1 << 20;
  h.run_for(1'500);
  client.send("half");
  EXPECT_ERROR(client, "E_THROTTLED PUB disk pressure");
  EXPECT_EQ(h.broker().publish_bytes_in_flight(), 0u);
  EXPECT_FALSE(h.broker().engine().has_topic("t"));  // nothing was appended
  h.disk().capacity = capacity;
  h.run_for(1'500);
  client.pub("t", "x");
  EXPECT_RESPONSE(client, "OK");
}

// I-12: pressure gates client publishes only.
TEST(TcpPublish, B_22_DiskPressureThrottlesPublishesAndLetsConsumersGoOn) {
  BrokerHarness h(1, [](Config& config) {
    config.storage.min_free_bytes = 1 << 20;
    config.storage.disk_high_watermark_percent = 85;
    config.storage.disk_low_watermark_percent = 75;
  });
  ASSERT_TRUE(h.start());
  ASSERT_EQ(h.publish("t", "before"), "OK");
  Client& consumer = h.consumer("t", "c", 1);
  const auto message = consumer.message();
  ASSERT_TRUE(message);
  const std::uint64_t capacity = h.disk().capacity;
  h.disk().capacity = 1 << 20;
  h.run_for(1'500);
  Client& client = h.connect();
  client.pub("t", "x");
  EXPECT_ERROR(client, "E_THROTTLED PUB disk pressure");
  client.mpub("t", {"x", "y"});
  EXPECT_ERROR(client, "E_THROTTLED MPUB disk pressure");
  client.dpub("t", 1, "x");
  EXPECT_ERROR(client, "E_THROTTLED DPUB disk pressure");
  const auto http = h.http("POST", "/pub?topic=t", "x");
  EXPECT_EQ(http.status, 429);
  EXPECT_EQ(http.header("retry-after"), "1");
  consumer.fin(message->id);
  h.run_for(100);
  EXPECT_EQ(channel_stat(h, "t", "c", "in_flight_count"), 0);
  h.disk().capacity = capacity;
  h.run_for(1'500);
  client.pub("t", "x");
  EXPECT_RESPONSE(client, "OK");
}

TEST(TcpPublish, B_22_BetweenTheMarksPressureStaysAsItWas) {
  BrokerHarness h(1, [](Config& config) {
    config.storage.min_free_bytes = 1;
    config.storage.disk_high_watermark_percent = 85;
    config.storage.disk_low_watermark_percent = 75;
  });
  ASSERT_TRUE(h.start());
  ASSERT_EQ(h.publish("t", "before"), "OK");
  Client& client = h.connect();
  const auto at_percent = [&](std::uint64_t percent) {
    h.disk().capacity = h.disk().used() * 100 / percent;
    h.run_for(1'500);
    client.pub("t", "x");
    return client.answer().payload;
  };
  EXPECT_EQ(at_percent(80), "OK") << "from below";
  EXPECT_EQ(at_percent(90), "E_THROTTLED PUB disk pressure");
  EXPECT_EQ(at_percent(80), "E_THROTTLED PUB disk pressure") << "from above";
  EXPECT_EQ(h.http("POST", "/pub?topic=t", "x").status, 429);
  EXPECT_EQ(at_percent(70), "OK");
  EXPECT_EQ(at_percent(80), "OK") << "from below again";
  h.config().storage.min_free_bytes = 1ull << 30;
  h.disk().capacity = 1ull << 40;
  ASSERT_TRUE(h.restart());
  client.connect(h.tcp_address());
  EXPECT_EQ(at_percent(70), "E_THROTTLED PUB disk pressure") << "below the low mark, but not enough is free";
}

TEST(TcpPublish, B_28_ADrainingBrokerRefusesPublishesAndKeepsTheConnection) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  ASSERT_EQ(h.publish("t", "before"), "OK");
  Client& client = h.consumer("t", "c", 1);
  const auto message = client.message();
  ASSERT_TRUE(message);
  h.broker().set_drain(true, false);
  h.process().poke();
  client.pub("t", "x");
  EXPECT_ERROR(client, "E_DRAINING PUB broker is draining");
  client.fin(message->id);
  h.run_for(100);
  EXPECT_EQ(channel_stat(h, "t", "c", "in_flight_count"), 0);
  h.broker().set_drain(false, false);
  h.process().poke();
  client.pub("t", "x");
  EXPECT_RESPONSE(client, "OK");
}

TEST(TcpPublish, B_29_TheTopicLimitRefusesAndCloses) {
  BrokerHarness h(1, [](Config& config) { config.queue.max_topics = 1; });
  ASSERT_TRUE(h.start());
  ASSERT_EQ(h.publish("t", "x"), "OK");
  Client& client = h.connect();
  client.pub("u", "x");
  const Frame frame = client.answer();
  EXPECT_TRUE(frame.is_error("E_PUB_RETRY PUB not stored: ")) << frame.payload;
  EXPECT_TRUE(client.wait_closed());
  const auto http = h.http("POST", "/pub?topic=u", "x");
  EXPECT_EQ(http.status, 429);
}

TEST(TcpPublish, B_30_RetriableRefusalsMayCloseWithoutAFrame) {
  BrokerHarness h(1, [](Config& config) {
    config.queue.max_topics = 1;
    config.limits.disconnect_on_retriable_publish_error = true;
    config.limits.node_publish_inflight_bytes = 128 * 1'024;
    config.limits.connection_publish_inflight_bytes = 128 * 1'024;
  });
  ASSERT_TRUE(h.start());
  ASSERT_EQ(h.publish("t", "x"), "OK");
  const auto closes_silently = [&](const std::string& topic, const std::string& body) {
    Client& client = h.connect();
    client.pub(topic, body);
    EXPECT_TRUE(client.wait_closed());
    EXPECT_EQ(client.raw(), "");
  };
  closes_silently("u", "x");  // B-29
  Client& stalled = h.connect();
  stalled.send("PUB t\n" + int32(120 * 1'024) + "half");
  h.run_for(100);
  closes_silently("t", std::string(20'000, 'x'));  // B-21
  stalled.close();
  h.broker().set_drain(true, false);
  h.process().poke();
  closes_silently("t", "x");                                                                                     // B-28
  expect_fatal(h, "PUB t\n" + int32(kMessageMax + 1), "E_BAD_MESSAGE PUB message too big 20971521 > 20971520");  // B-19
}

TEST(TcpPublish, AConnectionBudgetHoldsInputBackWithoutAnError) {
  BrokerHarness h(1, [](Config& config) { config.limits.connection_publish_inflight_bytes = 16 * 1'024; });
  ASSERT_TRUE(h.start());
  Client& client = h.connect();
  for (int i = 0; i < 20; ++i) client.pub("t", std::string(7'000, 'x'));
  for (int i = 0; i < 20; ++i) EXPECT_RESPONSE(client, "OK");
}

}  // namespace
}  // namespace rq::broker::test
