// What official clients do that a server has to live with (page 10 section 8), and an idle connection over a long time.
#include "tests/broker/tcp_support.h"

namespace rq::broker::test {
namespace {

class ClientHabits : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(h.start()); }
  BrokerHarness h;
};

TEST_F(ClientHabits, C_101_ReadyToggledEveryFiftyMillisecondsLosesNothing) {
  Client& consumer = h.consumer("t", "c", 0);
  for (int i = 0; i < 20; ++i) ASSERT_EQ(h.publish("t", std::to_string(i)), "OK");
  std::size_t finished = 0;
  for (int i = 0; i < 100; ++i) {
    consumer.rdy(i % 2 == 0 ? 1 : 0);
    h.run_for(50);
    const auto messages = consumer.messages();
    for (; finished < messages.size(); ++finished) consumer.fin(messages[finished].id);
  }
  EXPECT_EQ(finished, 20u);
  EXPECT_EQ(channel_stat(h, "t", "c", "depth"), 0);
  EXPECT_FALSE(consumer.closed());
}

// nsqjs sends CLS in state 0 and destroys its socket at once.
TEST_F(ClientHabits, C_102_AWriterThatSendsClsAndGoesHarmsNobody) {
  const std::size_t lines = h.log.size();
  for (int i = 0; i < 20; ++i) {
    Client& writer = h.connect();
    writer.pub("t", "x");
    EXPECT_RESPONSE(writer, "OK");
    writer.cls();
    h.run_for(i % 3);
    writer.close();
  }
  h.run_for(5'000);
  EXPECT_EQ(h.broker().tcp_connections(), 0u);
  EXPECT_EQ(h.publish("t", "x"), "OK");
  EXPECT_LE(h.log.size(), lines + 20) << "at most one line for each";
}

TEST_F(ClientHabits, C_103_AProducerIdleForTenMinutesGetsHeartbeatsAndNothingElse) {
  Client& producer = h.connect();
  producer.keep_heartbeats(true);
  producer.identify(R"({"feature_negotiation":true})");
  h.run_for(1'000);
  producer.pub("t", "x");
  h.run_for(600'000);
  const auto frames = producer.take_frames();
  ASSERT_EQ(frames.size(), 2u + 20u);
  for (std::size_t i = 2; i < frames.size(); ++i) EXPECT_EQ(frames[i].payload, "_heartbeat_");
  EXPECT_USABLE(producer);
}

// At the largest limit the message is handed out 65,534 times; then it is a dead letter.
TEST(ClientHabitsLimits, C_104_SixtyFiveThousandRequeuesCostNeitherTheConnectionNorTheMessage) {
  BrokerHarness h(1, [](Config& config) { config.queue.max_delivery_attempts = 65'535; });
  ASSERT_TRUE(h.start());
  ASSERT_EQ(h.publish("t", "x"), "OK");
  Client& consumer = h.consumer("t", "c", 1);
  for (std::uint32_t delivery = 1; delivery < 65'535; ++delivery) {
    const auto message = consumer.message();
    ASSERT_TRUE(message.has_value()) << "delivery " << delivery;
    ASSERT_EQ(message->attempts, delivery);
    consumer.req(message->id, 0);
  }
  h.run_for(1'000);
  EXPECT_FALSE(consumer.closed());
  EXPECT_EQ(h.consumer("t.c.DLQ", "letters", 1).message()->body, "x");
}

// D-06: publishing after CLS works, and it is the client that closes.
TEST_F(ClientHabits, B_40_AfterClsWithOneInFlightFinIsTakenAndTheClientCloses) {
  Client& consumer = h.consumer("t", "c", 1);
  ASSERT_EQ(h.publish("t", "x"), "OK");
  const auto message = consumer.message();
  ASSERT_TRUE(message.has_value());
  consumer.cls();
  EXPECT_RESPONSE(consumer, "CLOSE_WAIT");
  consumer.pub("t", "y");
  EXPECT_RESPONSE(consumer, "OK");
  consumer.fin(message->id);
  h.run_for(1'000);
  EXPECT_EQ(channel_stat(h, "t", "c", "in_flight_count"), 0);
  EXPECT_TRUE(consumer.take_frames().empty());
  EXPECT_FALSE(consumer.closed());
}

}  // namespace
}  // namespace rq::broker::test
