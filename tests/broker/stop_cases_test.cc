// A clean stop with messages in flight (page 30 section 12).
#include <gtest/gtest.h>

#include "tests/broker/http_test_support.h"

namespace rq::sim {
namespace {

// I-54.
TEST(Stop, Q_92_WithFiveInFlightItEndsWithinTheGraceAndKeepsAttemptsAndCounters) {
  BrokerHarness h(92);
  ASSERT_TRUE(h.start());
  Client& consumer = h.consumer("t", "c", 5);
  for (int i = 0; i < 5; ++i) ASSERT_EQ(h.publish("t", "m" + std::to_string(i)), "OK");
  ASSERT_TRUE(consumer.wait_messages(5));
  for (const Message& message : consumer.messages()) EXPECT_EQ(message.attempts, 1);
  const Instant asked = h.now();
  ASSERT_TRUE(h.stop());
  EXPECT_EQ(h.last_exit(), broker::Broker::Exit::clean);
  EXPECT_LE(h.now() - asked, 31 * kSecond);
  ASSERT_TRUE(h.start());
  const boost::json::value stats = json_of(h.http("GET", "/v1/stats"));
  const boost::json::object& channel = first_channel(stats);
  EXPECT_EQ(channel.at("message_count").to_number<int>(), 5);
  EXPECT_EQ(channel.at("depth").to_number<int>(), 5);
  EXPECT_EQ(channel.at("requeue_count").to_number<int>(), 0);
  EXPECT_EQ(channel.at("timeout_count").to_number<int>(), 0);
  Client& again = h.consumer("t", "c", 5);
  ASSERT_TRUE(again.wait_messages(5));
  for (const Message& message : again.messages()) EXPECT_EQ(message.attempts, 2);
}

// A supervisor that changes its mind finds a directory that was closed as usual.
TEST(Stop, WhileItOpensItFinishesTheOpeningAndTheNextStartFindsEverything) {
  BrokerHarness h(93);
  ASSERT_TRUE(h.start());
  for (int i = 0; i < 5; ++i) ASSERT_EQ(h.publish("t" + std::to_string(i), "m"), "OK");
  for (std::int64_t ms = 0; ms < 10; ++ms) {
    h.kill();
    h.boot();
    h.run_for(ms);
    ASSERT_TRUE(h.stop()) << ms;
  }
  ASSERT_TRUE(h.start());
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(h.consumer("t" + std::to_string(i), "c").message());
}

// ... and need not wait for a long recovery: shutdown.grace_seconds bounds it (page 31 section 1.7).
TEST(Stop, WhileItOpensForLongItEndsWithTheGrace) {
  BrokerHarness h(95);
  ASSERT_TRUE(h.start());
  ASSERT_EQ(h.publish("t", "m"), "OK");
  h.kill();
  h.disk().faults.latency_ns_min = h.disk().faults.latency_ns_max = 10 * kSecond;
  h.boot();
  h.run_for(1'000);
  const Instant asked = h.now();
  ASSERT_TRUE(h.stop());
  EXPECT_GE(h.now() - asked, 29 * kSecond);
  EXPECT_LE(h.now() - asked, 31 * kSecond);
  h.disk().faults.latency_ns_min = h.disk().faults.latency_ns_max = kMillisecond;
  ASSERT_TRUE(h.start());
  EXPECT_TRUE(h.consumer("t", "c").message());
}

// Its client may keep the connection; the stop does not wait for it to be closed.
TEST(Stop, AnHttpAnswerOnItsWayIsTheLastOneOfItsConnection) {
  BrokerHarness h(97);
  ASSERT_TRUE(h.start());
  for (int i = 0; i < 700; ++i) ASSERT_EQ(h.publish("topic-" + std::to_string(i), "m"), "OK");
  Client& client = h.client();
  ASSERT_TRUE(client.connect(h.http_address(), ""));
  client.stop_reading(true);
  client.send("GET /stats?format=json HTTP/1.1\r\nHost: x\r\n\r\n");
  h.run_for(1'000);
  h.broker().request_stop();
  h.process().poke();
  h.run_for(1'000);
  ASSERT_TRUE(h.running());
  client.stop_reading(false);
  EXPECT_TRUE(h.run_until([&] { return !h.running(); }, 5'000));
  EXPECT_TRUE(client.raw().ends_with("}")) << client.raw().size();
}

// Page 31 section 1.6: "ready" is said when the first reading of the volume is known, not before.
TEST(Readiness, IsNotSaidBeforeTheVolumeWasLookedAt) {
  BrokerHarness h(94);
  h.disk().claims_full = true;
  h.boot();
  Client& client = h.client();
  ASSERT_TRUE(client.connect(h.http_address(), ""));
  h.run_until([&] {
    client.send("GET /v1/health HTTP/1.1\r\nHost: x\r\n\r\n");
    return h.broker().serving();
  });
  h.run_for(100);
  EXPECT_EQ(client.raw().find("\"ready\""), std::string::npos) << client.raw();
  EXPECT_NE(client.raw().find("recovering"), std::string::npos) << client.raw();
  EXPECT_NE(client.raw().find("disk_pressure"), std::string::npos) << client.raw();
}

}  // namespace
}  // namespace rq::sim
