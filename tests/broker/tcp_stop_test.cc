// Stopping, storage faults and limits of the whole Broker, seen from NSQ connections (page 31 sections 1.7, 1.8 and 10).
#include "tests/broker/tcp_support.h"

namespace rq::broker::test {
namespace {

TEST(BrokerStop, B_12_AStopWithoutClientsOrWithAnIdleOneIsPromptAndClean) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  Instant asked = h.now();
  EXPECT_TRUE(h.stop());
  EXPECT_LE(h.now() - asked, kSecond);
  ASSERT_TRUE(h.start());
  Client& idle = h.consumer("t", "c", 1);
  asked = h.now();
  EXPECT_TRUE(h.stop());
  EXPECT_LE(h.now() - asked, 30 * kSecond);
  EXPECT_TRUE(idle.wait_closed());
  EXPECT_TRUE(idle.take_frames().empty());
}

TEST(BrokerStop, AConsumerMayFinishWhatItHoldsWhileTheBrokerStops) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  ASSERT_EQ(h.publish("t", "x"), "OK");
  ASSERT_EQ(h.publish("t", "y"), "OK");
  Client& client = h.consumer("t", "c", 1);
  const auto message = client.message();
  ASSERT_TRUE(message);
  h.broker().request_stop();
  h.process().poke();
  h.run_for(1'000);
  EXPECT_TRUE(h.running());
  client.pub("t", "z");
  EXPECT_ERROR(client, "E_DRAINING PUB broker is draining");
  client.fin(message->id);
  ASSERT_TRUE(h.run_until([&] { return !h.running(); }, 5'000));
  EXPECT_EQ(h.last_exit(), Broker::Exit::clean);
  EXPECT_TRUE(client.messages().empty());
  ASSERT_TRUE(h.start());
  Client& next = h.consumer("t", "c", 5);
  const auto left = next.message();
  ASSERT_TRUE(left);
  EXPECT_EQ(left->body, "y");
}

TEST(BrokerStop, AConsumerThatHoldsAMessageIsCutAtTheGrace) {
  BrokerHarness h(1, [](Config& config) { config.shutdown.grace_seconds = 3; });
  ASSERT_TRUE(h.start());
  ASSERT_EQ(h.publish("t", "x"), "OK");
  Client& client = h.consumer("t", "c", 1);
  ASSERT_TRUE(client.message());
  const Instant asked = h.now();
  EXPECT_TRUE(h.stop());
  EXPECT_GE(h.now() - asked, 2'700 * kMillisecond);
  EXPECT_LE(h.now() - asked, 3'500 * kMillisecond);
}

TEST(BrokerStop, Q_92_AStopWithFiveInFlightEndsCleanlyWithinTheGraceAndKeepsAttemptsAndCounters) {
  BrokerHarness h(92, [](Config& config) { config.shutdown.grace_seconds = 3; });
  ASSERT_TRUE(h.start());
  for (int i = 0; i < 5; ++i) ASSERT_EQ(h.publish("t", "x"), "OK");
  Client& client = h.consumer("t", "c", 5);
  ASSERT_TRUE(client.wait_messages(5));
  const std::int64_t requeues = channel_stat(h, "t", "c", "requeue_count"), timeouts = channel_stat(h, "t", "c", "timeout_count");
  const Instant asked = h.now();
  EXPECT_TRUE(h.stop());
  EXPECT_LE(h.now() - asked, 3'500 * kMillisecond);
  EXPECT_EQ(h.last_exit(), Broker::Exit::clean);
  ASSERT_TRUE(h.start());
  Client& next = h.consumer("t", "c", 5);
  ASSERT_TRUE(next.wait_messages(5));
  for (const auto& message : next.messages()) EXPECT_EQ(message.attempts, 2);
  EXPECT_EQ(channel_stat(h, "t", "c", "requeue_count"), requeues);
  EXPECT_EQ(channel_stat(h, "t", "c", "timeout_count"), timeouts);
}

TEST(BrokerStop, AStorageFaultEndsTheProcessWithin250Milliseconds) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  ASSERT_EQ(h.publish("t", "kept"), "OK");
  Client& client = h.connect();
  h.disk().faults.sync_fail = 1'024;
  const Instant sent = h.now();
  client.pub("t", "lost");
  const Frame frame = client.answer();
  EXPECT_TRUE(frame.is_error("E_PUB_FAILED PUB failed ") || frame.is_error("E_PUB_RETRY ")) << frame.payload;
  ASSERT_TRUE(h.run_until([&] { return !h.running(); }, 1'000));
  EXPECT_LE(h.now() - sent, 260 * kMillisecond);
  EXPECT_EQ(h.last_exit(), Broker::Exit::failed);
  EXPECT_NE(h.last_exit_reason(), "");
  h.disk().faults.sync_fail = 0;
  ASSERT_TRUE(h.start());
  Client& consumer = h.consumer("t", "c", 5);
  const auto message = consumer.message();
  ASSERT_TRUE(message);
  EXPECT_EQ(message->body, "kept");
}

TEST(BrokerStop, ManyIdleConnectionsCostNothingPerTurn) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  for (int i = 0; i < 200; ++i) h.connect().nop();
  h.run_for(1'000);
  EXPECT_EQ(h.broker().tcp_connections(), 200u);
  const std::uint64_t turns = h.process().turn().turns();
  h.run_for(20'000);  // before the first heartbeat: only the disk guard and the engine look around
  EXPECT_LE(h.process().turn().turns() - turns, 400u);
}

}  // namespace
}  // namespace rq::broker::test
