// What a connection leaves that says CLS or stops reading (page 30 section 3.11, D-06).
#include <gtest/gtest.h>

#include "sim/harness.h"

namespace rq::sim {
namespace {

TEST(DisconnectCases, Q_44_AfterClsNothingNewIsDeliveredAndFinishesAreTaken) {
  BrokerHarness h(44);
  ASSERT_TRUE(h.start());
  for (int i = 0; i < 4; ++i) ASSERT_EQ(h.publish("t", std::to_string(i)), "OK");
  Client& consumer = h.consumer("t", "c", 2);
  ASSERT_TRUE(consumer.wait_messages(2));
  const auto first = consumer.message(), second = consumer.message();
  ASSERT_TRUE(first && second);
  consumer.cls();
  EXPECT_EQ(consumer.answer().payload, "CLOSE_WAIT");
  consumer.fin(first->id);
  consumer.fin(second->id);
  h.run_for(2'000);
  EXPECT_TRUE(consumer.messages().empty());
  EXPECT_EQ(h.broker().engine().metrics().finished_messages, 2u);
  consumer.close();
  Client& next = h.consumer("t", "c", 10);
  ASSERT_TRUE(next.wait_messages(2));
  h.run_for(1'000);
  ASSERT_EQ(next.messages().size(), 2u);
  EXPECT_EQ(next.messages()[0].body, "2");
  EXPECT_EQ(next.messages()[0].attempts, 1);
}

// What a write has been given to the network with is released, what waited behind it is cancelled.
TEST(DisconnectCases, Q_45_AReaderThatStopsIsClosedAndWhatWasNotWrittenGetsItsAttemptsBack) {
  BrokerHarness h(45);
  h.world().net().buffer_bytes = 64 * 1024;
  ASSERT_TRUE(h.start());
  constexpr std::size_t kMessages = 60, kInOneWrite = 32;  // of 64 buffers, two a message
  for (std::size_t i = 0; i < kMessages; ++i) ASSERT_EQ(h.publish("t", std::string(40'000, static_cast<char>('A' + i))), "OK");
  Client& consumer = h.consumer("t", "c", 0, R"({"heartbeat_interval":1000})");
  consumer.stop_reading(true);
  consumer.rdy(kMessages);
  ASSERT_TRUE(h.run_until([&] { return h.broker().engine().metrics().in_flight_messages > 0; }));
  ASSERT_TRUE(h.run_until([&] { return h.broker().engine().metrics().in_flight_messages == 0; }, 30'000));
  EXPECT_EQ(h.broker().engine().metrics().delivery_bytes, 0u);
  Client& next = h.consumer("t", "c", kMessages);
  ASSERT_TRUE(next.wait_messages(kMessages));
  std::size_t again = 0, fresh = 0;
  for (const Message& message : next.messages()) {
    EXPECT_LE(message.attempts, 2);
    ++(message.attempts == 2 ? again : fresh);
  }
  EXPECT_GE(again, 1u);
  EXPECT_GE(fresh, kMessages - kInOneWrite - 4);
}

}  // namespace
}  // namespace rq::sim
