// SUB, RDY, FIN, REQ, TOUCH and CLS over a connection (page 10 section 10, C-47 to C-66).
#include "tests/broker/tcp_support.h"

namespace rq::broker::test {
namespace {

class TcpConsume : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(h.start()); }
  void publish(const std::string& topic, int count) {
    for (int i = 0; i < count; ++i) ASSERT_EQ(h.publish(topic, "m" + std::to_string(i)), "OK");
  }
  BrokerHarness h;
};

TEST_F(TcpConsume, C_47_OkComesBeforeTheFirstMessage) {
  publish("t", 3);
  Client& client = h.connect();
  client.send("SUB t c\nRDY 1\n");
  ASSERT_TRUE(client.wait_frames(2));
  EXPECT_EQ(client.frames()[0].payload, "OK");
  EXPECT_EQ(client.frames()[1].type, 2);
}

TEST_F(TcpConsume, C_48_SubWithHeartbeatsDisabledIsRefused) {
  expect_fatal(h, "SUB t\n", "E_INVALID SUB insufficient number of parameters");
  Client& client = h.connect();
  client.identify(R"({"heartbeat_interval":-1})");
  EXPECT_RESPONSE(client, "OK");
  client.sub("t", "c");
  EXPECT_FATAL(client, "E_INVALID cannot SUB with heartbeats disabled");
  EXPECT_FALSE(h.broker().engine().has_topic("t"));
}

TEST_F(TcpConsume, C_49_ASecondSubIsRefused) {
  Client& client = h.connect();
  client.sub("t", "c");
  EXPECT_RESPONSE(client, "OK");
  client.sub("t", "d");
  EXPECT_FATAL(client, "E_INVALID cannot SUB in current state");
}

TEST_F(TcpConsume, C_50_NamesHaveAtMost64BytesWithTheirSuffix) {
  Client& client = h.connect();
  client.sub("t", std::string(54, 'c') + "#ephemeral");
  EXPECT_RESPONSE(client, "OK");
  const std::string longer(65, 'c');
  expect_fatal(h, "SUB t " + longer + "\n", "E_BAD_CHANNEL SUB channel name \"" + longer + "\" is not valid");
  expect_fatal(h, "SUB " + longer + " c\n", "E_BAD_TOPIC SUB topic name \"" + longer + "\" is not valid");
  expect_fatal(h, "SUB t a#ephemeralx\n", "E_BAD_CHANNEL SUB channel name \"a#ephemeralx\" is not valid");
}

TEST_F(TcpConsume, C_51_NamesInErrorsAreQuoted) {
  expect_fatal(h, "SUB t c\"\\x\n", R"(E_BAD_CHANNEL SUB channel name "c\"\\x" is not valid)");
}

TEST_F(TcpConsume, C_52_B_27_ReadyCounts) {
  publish("t", 3);
  Client& client = h.connect();
  client.sub("t", "c");
  EXPECT_RESPONSE(client, "OK");
  client.send("RDY \n");
  h.run_for(500);
  EXPECT_TRUE(client.messages().empty());
  client.send("RDY\n");
  ASSERT_TRUE(client.wait_messages(1));
  h.run_for(500);
  EXPECT_EQ(client.messages().size(), 1u);
  client.take_frames();
  client.send("RDY 2500\n");
  EXPECT_TRUE(client.wait_messages(2));
  client.take_frames();
  client.send("RDY 2501\n");
  EXPECT_FATAL(client, "E_INVALID RDY count 2501 out of range 0-2500");
  Client& other = h.connect();
  other.sub("t", "c");
  EXPECT_RESPONSE(other, "OK");
  other.send("RDY -1\n");
  EXPECT_FATAL(other, "E_INVALID RDY could not parse count -1");
  expect_fatal(h, "RDY 1\n", "E_INVALID cannot RDY in current state");
}

TEST_F(TcpConsume, C_53_ReadyIsAWindow) {
  publish("t", 8);
  Client& client = h.consumer("t", "c", 5);
  ASSERT_TRUE(client.wait_messages(5));
  h.run_for(500);
  const auto messages = client.messages();
  ASSERT_EQ(messages.size(), 5u);
  client.rdy(2);
  for (std::size_t i = 0; i < 3; ++i) client.fin(messages[i].id);
  h.run_for(500);
  EXPECT_EQ(client.messages().size(), 5u);
  client.fin(messages[3].id);
  ASSERT_TRUE(client.wait_messages(6));
  h.run_for(500);
  EXPECT_EQ(client.messages().size(), 6u);
}

TEST_F(TcpConsume, C_54_ReadyZeroStopsDeliveryAndFinGoesOn) {
  publish("t", 6);
  Client& client = h.consumer("t", "c", 3);
  ASSERT_TRUE(client.wait_messages(3));
  client.rdy(0);
  for (const auto& message : client.messages()) client.fin(message.id);
  client.take_frames();
  h.run_for(1'000);
  EXPECT_TRUE(client.frames().empty());
  EXPECT_EQ(channel_stat(h, "t", "c", "in_flight_count"), 0);
  EXPECT_EQ(channel_stat(h, "t", "c", "depth"), 3);
}

TEST_F(TcpConsume, C_55_FinOfAnUnknownIdFailsAndTheConnectionGoesOn) {
  Client& client = h.consumer("t", "c", 1);
  for (const std::string id : {"0123456789abcdef", "zzzz%%%%6789abcd"}) {
    client.fin(id);
    EXPECT_ERROR(client, "E_FIN_FAILED FIN " + id + " failed ID not in flight");
    client.req(id, 0);
    EXPECT_ERROR(client, "E_REQ_FAILED REQ " + id + " failed ID not in flight");
    client.touch(id);
    EXPECT_ERROR(client, "E_TOUCH_FAILED TOUCH " + id + " failed ID not in flight");
  }
  EXPECT_USABLE(client);
}

TEST_F(TcpConsume, C_56_AnIdHasSixteenBytes) {
  for (const char* line : {"FIN 0123456789abcde\n", "FIN 0123456789abcdef0\n", "TOUCH x\n", "REQ 0123456789abcde 0\n"}) {
    SCOPED_TRACE(line);
    Client& client = h.consumer("t", "c", 1);
    client.send(line);
    EXPECT_FATAL(client, "E_INVALID invalid message ID");
  }
  Client& client = h.consumer("t", "c", 1);
  client.send("FIN\n");
  EXPECT_FATAL(client, "E_INVALID FIN insufficient number of params");
  Client& requeue = h.consumer("t", "c", 1);
  requeue.send("REQ 0123456789abcdef\n");
  EXPECT_FATAL(requeue, "E_INVALID REQ insufficient number of params");
  expect_fatal(h, "FIN 0123456789abcdef\n", "E_INVALID cannot FIN in current state");
  expect_fatal(h, "REQ 0123456789abcdef 0\n", "E_INVALID cannot REQ in current state");
  expect_fatal(h, "TOUCH 0123456789abcdef\n", "E_INVALID cannot TOUCH in current state");
}

TEST_F(TcpConsume, C_57_AnotherConnectionOfTheChannelDoesNotOwnTheMessage) {
  publish("t", 1);
  Client& owner = h.consumer("t", "c", 1);
  const auto message = owner.message();
  ASSERT_TRUE(message);
  Client& other = h.consumer("t", "c", 1);
  other.fin(message->id);
  EXPECT_ERROR(other, "E_FIN_FAILED FIN " + message->id + " failed client does not own message");
  other.touch(message->id);
  EXPECT_ERROR(other, "E_TOUCH_FAILED TOUCH " + message->id + " failed client does not own message");
  other.req(message->id, 0);
  EXPECT_ERROR(other, "E_REQ_FAILED REQ " + message->id + " failed client does not own message");
  EXPECT_USABLE(other);
  owner.fin(message->id);
  h.run_for(100);
  EXPECT_TRUE(owner.frames().empty());
  EXPECT_EQ(channel_stat(h, "t", "c", "in_flight_count"), 0);
  EXPECT_USABLE(owner);
}

TEST_F(TcpConsume, C_58_RequeueWithoutDelayRedeliversAtOnce) {
  publish("t", 1);
  Client& client = h.consumer("t", "c", 1);
  const auto first = client.message();
  ASSERT_TRUE(first);
  EXPECT_EQ(first->attempts, 1);
  const Instant sent = h.now();
  client.req(first->id, 0);
  const auto second = client.message();
  ASSERT_TRUE(second);
  EXPECT_LE(second->at - sent, 20 * kMillisecond);
  EXPECT_EQ(second->attempts, 2);
  EXPECT_EQ(second->id, first->id);
  EXPECT_EQ(second->timestamp_ns, first->timestamp_ns);
  EXPECT_EQ(second->body, first->body);
  EXPECT_EQ(channel_stat(h, "t", "c", "requeue_count"), 1);
}

TEST_F(TcpConsume, C_59_ARequeueDelayIsClampedToAnHour) {
  publish("t", 1);
  Client& client = h.consumer("t", "c", 1);
  const auto first = client.message();
  ASSERT_TRUE(first);
  const Instant sent = h.now();
  client.req(first->id, 99'999'999'999);
  h.run_for(100);
  EXPECT_TRUE(client.frames().empty());
  EXPECT_EQ(channel_stat(h, "t", "c", "deferred_count"), 1);
  const auto second = client.message(3'700'000);
  ASSERT_TRUE(second);
  EXPECT_GE(second->at - sent, 3'600 * kSecond);
  EXPECT_LE(second->at - sent, 3'601 * kSecond);
  client.send("REQ " + second->id + " -1\n");
  EXPECT_FATAL(client, "E_INVALID REQ could not parse timeout -1");
}

TEST_F(TcpConsume, C_60_AnUnansweredMessageIsRedeliveredAfterItsTimeout) {
  publish("t", 1);
  Client& client = h.consumer("t", "c", 1, R"({"msg_timeout":1000})");
  const auto first = client.message();
  ASSERT_TRUE(first);
  const auto second = client.message();
  ASSERT_TRUE(second);
  EXPECT_EQ(second->attempts, 2);
  EXPECT_EQ(second->id, first->id);
  EXPECT_GE(second->at - first->at, 995 * kMillisecond);
  EXPECT_LE(second->at - first->at, 1'200 * kMillisecond);
  client.fin(second->id);
  h.run_for(11'000);  // D-25: the count is shown once no crash can take it back
  EXPECT_EQ(channel_stat(h, "t", "c", "timeout_count"), 1);
  EXPECT_EQ(channel_stat(h, "t", "c", "requeue_count"), 0);
}

TEST_F(TcpConsume, C_61_FinAfterTheTimeoutFailsAndTheConnectionGoesOn) {
  publish("t", 1);
  Client& client = h.consumer("t", "c", 1, R"({"msg_timeout":1000})");
  const auto first = client.message();
  ASSERT_TRUE(first);
  client.rdy(0);
  h.run_for(2'000);
  client.fin(first->id);
  EXPECT_ERROR(client, "E_FIN_FAILED FIN " + first->id + " failed ID not in flight");
  EXPECT_USABLE(client);
}

TEST(TcpConsumeLimits, C_62_TouchExtendsUpToTheMaximumTimeout) {
  BrokerHarness h(1, [](Config& config) {
    config.queue.max_message_timeout_ms = 3'000;
    config.queue.message_timeout_ms = 1'000;
  });
  ASSERT_TRUE(h.start());
  ASSERT_EQ(h.publish("t", "x"), "OK");
  Client& client = h.consumer("t", "c", 1, R"({"msg_timeout":1000,"output_buffer_timeout":25})");
  const auto first = client.message();
  ASSERT_TRUE(first);
  for (int i = 0; i < 5; ++i) {
    h.run_for(500);
    client.touch(first->id);
  }
  h.run_for(400);
  EXPECT_TRUE(client.frames().empty());
  const auto second = client.message();
  ASSERT_TRUE(second);
  EXPECT_EQ(second->attempts, 2);
  EXPECT_GE(second->at - first->at, 2'990 * kMillisecond);
  EXPECT_LE(second->at - first->at, 3'200 * kMillisecond);
}

TEST_F(TcpConsume, C_63_ADisconnectedConsumersMessagesGoToTheNextOne) {
  publish("t", 3);
  Client& first = h.consumer("t", "c", 3);
  ASSERT_TRUE(first.wait_messages(3));
  first.close();
  Client& second = h.consumer("t", "c", 3);
  ASSERT_TRUE(second.wait_messages(3, 61'000));
  for (const auto& message : second.messages()) EXPECT_EQ(message.attempts, 2);
}

TEST_F(TcpConsume, C_64_AfterClsTheConnectionStaysForWhatIsInFlight) {
  publish("t", 2);
  Client& client = h.consumer("t", "c", 1);
  const auto message = client.message();
  ASSERT_TRUE(message);
  client.cls();
  EXPECT_RESPONSE(client, "CLOSE_WAIT");
  client.send("RDY zz\nRDY 5\n");
  client.fin(message->id);
  h.run_for(35'000);
  EXPECT_TRUE(client.frames().empty());
  EXPECT_GE(client.heartbeats(), 1u);
  EXPECT_EQ(channel_stat(h, "t", "c", "in_flight_count"), 0);
  EXPECT_USABLE(client);
  client.cls();
  EXPECT_FATAL(client, "E_INVALID cannot CLS in current state");
}

// In the form of D-06: publishing goes on, and the client closes.
TEST_F(TcpConsume, Q_44_AfterClsWithTwoInFlightNothingNewComesAndBothFinsAreTaken) {
  publish("t", 5);
  Client& client = h.consumer("t", "c", 2);
  const auto first = client.message();
  const auto second = client.message();
  ASSERT_TRUE(first && second);
  client.cls();
  EXPECT_RESPONSE(client, "CLOSE_WAIT");
  client.fin(first->id);
  client.send("RDY 10\n");
  client.fin(second->id);
  h.run_for(1'000);
  EXPECT_TRUE(client.messages().empty());
  EXPECT_TRUE(client.frames().empty());
  EXPECT_EQ(channel_stat(h, "t", "c", "in_flight_count"), 0);
  EXPECT_EQ(channel_stat(h, "t", "c", "depth"), 3);
  EXPECT_USABLE(client);
  EXPECT_FALSE(client.closed());
}

TEST_F(TcpConsume, C_65_ClsWithoutASubscriptionIsRefused) { expect_fatal(h, "CLS\n", "E_INVALID cannot CLS in current state"); }

TEST_F(TcpConsume, C_66_TwoChannelsGetTheSameIdWithTheirOwnAttempts) {
  Client& a = h.consumer("t", "a", 1);
  Client& b = h.consumer("t", "b", 1);
  publish("t", 1);
  const auto at_a = a.message();
  const auto at_b = b.message();
  ASSERT_TRUE(at_a && at_b);
  EXPECT_EQ(at_a->id, at_b->id);
  a.req(at_a->id, 0);
  const auto again = a.message();
  ASSERT_TRUE(again);
  EXPECT_EQ(again->attempts, 2);
  EXPECT_EQ(at_b->attempts, 1);
  EXPECT_TRUE(b.messages().empty());
}

TEST_F(TcpConsume, C_67_TheFirstChannelGetsTheBacklogAndALaterOneTheBootstrapWindow) {
  publish("t", 2);
  Client& a = h.consumer("t", "a", 10);
  ASSERT_TRUE(a.wait_messages(2));
  Client& b = h.consumer("t", "b", 10);
  EXPECT_TRUE(b.wait_messages(2));
  publish("t", 1);
  EXPECT_TRUE(a.wait_messages(3));
  EXPECT_TRUE(b.wait_messages(3));
}

TEST_F(TcpConsume, C_68_APausedTopicDeliversNothingUntilItIsUnpaused) {
  Client& client = h.consumer("t", "c", 10);
  EXPECT_EQ(h.http("POST", "/topic/pause?topic=t").status, 200);
  publish("t", 2);
  h.run_for(1'000);
  EXPECT_TRUE(client.messages().empty());
  EXPECT_EQ(topic_stat(h, "t", "depth"), 2);
  EXPECT_EQ(channel_stat(h, "t", "c", "depth"), 0);
  publish("t", 1);
  EXPECT_EQ(topic_stat(h, "t", "depth"), 3);
  EXPECT_EQ(channel_stat(h, "t", "c", "depth"), 0);
  EXPECT_EQ(h.http("POST", "/topic/unpause?topic=t").status, 200);
  EXPECT_TRUE(client.wait_messages(3));
  EXPECT_EQ(topic_stat(h, "t", "depth"), 0);
}

TEST_F(TcpConsume, C_69_APausedChannelDeliversNothingUntilItIsUnpaused) {
  Client& client = h.consumer("t", "c", 10);
  EXPECT_EQ(h.http("POST", "/channel/pause?topic=t&channel=c").status, 200);
  publish("t", 2);
  h.run_for(1'000);
  EXPECT_TRUE(client.messages().empty());
  EXPECT_EQ(channel_stat(h, "t", "c", "client_count"), 1);
  EXPECT_EQ(h.http("POST", "/channel/unpause?topic=t&channel=c").status, 200);
  EXPECT_TRUE(client.wait_messages(2));
}

TEST_F(TcpConsume, C_72_AnEmptiedChannelDeliversTheNextMessageWithoutRdyOrFin) {
  publish("t", 3);
  Client& client = h.consumer("t", "c", 2);
  ASSERT_TRUE(client.wait_messages(2));
  const auto held = client.messages();
  client.take_frames();
  EXPECT_EQ(h.http("POST", "/channel/empty?topic=t&channel=c").status, 200);
  EXPECT_EQ(channel_stat(h, "t", "c", "in_flight_count"), 0);
  EXPECT_EQ(channel_stat(h, "t", "c", "depth"), 0);
  ASSERT_EQ(h.publish("t", "next"), "OK");
  const auto next = client.message();
  ASSERT_TRUE(next);
  EXPECT_EQ(next->body, "next");
  client.fin(held[0].id);
  EXPECT_ERROR(client, "E_FIN_FAILED FIN " + held[0].id + " failed ID not in flight");
}

TEST_F(TcpConsume, C_76_ACleanRestartDeliversEverythingAgainAndAttemptsGoOn) {
  publish("t", 2);
  Client& client = h.consumer("t", "c", 1);
  ASSERT_TRUE(client.message());
  Client& producer = h.connect();
  producer.dpub("t", 500, "deferred");
  EXPECT_RESPONSE(producer, "OK");
  EXPECT_TRUE(h.stop());
  ASSERT_TRUE(h.start());
  Client& next = h.consumer("t", "c", 10);
  ASSERT_TRUE(next.wait_messages(3));
  for (const auto& message : next.messages()) EXPECT_EQ(message.attempts, message.body == "m0" ? 2 : 1) << message.body;
}

TEST_F(TcpConsume, C_74_ALoneMessageArrivesAtOnce) {
  Client& client = h.consumer("t", "c", 10);
  const Instant sent = h.now();
  publish("t", 1);
  const auto message = client.message();
  ASSERT_TRUE(message);
  EXPECT_LE(message->at - sent, 50 * kMillisecond);
}

TEST(TcpConsumeLimits, C_75_TheConsumerLimitOfAChannel) {
  BrokerHarness h(1, [](Config& config) { config.limits.max_channel_consumers = 1; });
  ASSERT_TRUE(h.start());
  Client& first = h.consumer("t", "c", 1);
  Client& second = h.connect();
  second.sub("t", "c");
  EXPECT_FATAL(second, "E_SUB_FAILED SUB failed consumers for t:c exceeds limit of 1");
  EXPECT_USABLE(first);
}

TEST(TcpConsumeLimits, C_73_DeletingAChannelOrItsTopicClosesItsSubscribersWithoutAFrame) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  for (const char* deletion : {"/channel/delete?topic=t&channel=c", "/topic/delete?topic=t"}) {
    Client& client = h.consumer("t", "c", 1);
    Client& second = h.consumer("t", "c", 1);
    EXPECT_EQ(h.http("POST", deletion).status, 200);
    for (Client* each : {&client, &second}) {
      ASSERT_TRUE(each->wait_closed()) << deletion;
      EXPECT_FALSE(each->was_reset()) << deletion;
      EXPECT_TRUE(each->take_frames().empty()) << deletion;
    }
    EXPECT_FALSE(h.broker().engine().has_channel("t", "c")) << deletion;
    EXPECT_EQ(h.broker().engine().has_topic("t"), std::string_view(deletion).starts_with("/channel")) << deletion;
    Client& again = h.consumer("t", "c", 1);
    EXPECT_TRUE(h.broker().engine().has_channel("t", "c")) << deletion;
    ASSERT_EQ(h.publish("t", "x"), "OK");
    const auto message = again.message();
    ASSERT_TRUE(message) << deletion;
    again.fin(message->id);
  }
}

TEST(TcpConsumeLimits, ASlowConsumerIsCutAtItsWriteLimitAndOthersAreServed) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  h.world().net().fragment = false;
  for (int i = 0; i < 8; ++i) ASSERT_EQ(h.publish("t", std::string(1 << 20, 'x')), "OK");
  Client& slow = h.connect();
  slow.identify(R"({"heartbeat_interval":1000})");
  EXPECT_RESPONSE(slow, "OK");
  slow.sub("t", "c");
  EXPECT_RESPONSE(slow, "OK");
  slow.stop_reading(true);
  slow.rdy(8);
  h.run_for(5'000);
  EXPECT_EQ(h.broker().tcp_connections(), 1u);  // the publisher's
  Client& other = h.consumer("t", "c", 8);
  EXPECT_TRUE(other.wait_messages(8, 61'000));
}

// What was written counts as an attempt; what never left the Broker does not.
TEST(TcpConsumeLimits, Q_45_AClientThatStopsReadingIsClosedAndOnlyWhatWasWrittenCountsAsAttempt) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  h.world().net().fragment = false;
  ASSERT_EQ(h.publish("t", std::string(1 << 20, 'x')), "OK");
  Client& slow = h.connect();
  slow.identify(R"({"heartbeat_interval":1000})");
  EXPECT_RESPONSE(slow, "OK");
  slow.sub("t", "c");
  EXPECT_RESPONSE(slow, "OK");
  slow.stop_reading(true);
  slow.rdy(8);
  h.run_for(500);  // its first frame is stuck half-way
  for (int i = 0; i < 7; ++i) ASSERT_EQ(h.publish("t", "small"), "OK");
  h.run_for(5'000);
  EXPECT_EQ(h.broker().tcp_connections(), 1u);  // the publisher's
  EXPECT_EQ(channel_stat(h, "t", "c", "in_flight_count"), 0);
  Client& other = h.consumer("t", "c", 8);
  ASSERT_TRUE(other.wait_messages(8, 1'000));  // released at once, not at their timeout
  for (const auto& message : other.messages()) EXPECT_EQ(message.attempts, message.body == "small" ? 1 : 2);
}

}  // namespace
}  // namespace rq::broker::test
