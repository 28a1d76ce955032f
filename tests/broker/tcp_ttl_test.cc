// TTL_DISCARD on a connection: what is not written at its deadline, or at a change of the policy, is never written (page 30
// sections 9.1 and 9.3).
#include "tests/broker/tcp_support.h"

namespace rq::broker::test {
namespace {

class TcpTtl : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(h.start());
    ASSERT_EQ(h.publish("t", std::string(1 << 20, 'a')), "OK");  // far more than the network holds
    ASSERT_EQ(h.publish("t", "behind"), "OK");
    others = h.broker().tcp_connections();
  }
  void configure(const queue::DeliveryPolicy& policy) {
    h.broker().engine().configure("t", policy, false, queue::WaiterId::none, h.process().turn().now());
    h.process().poke();
    ASSERT_TRUE(h.run_until([&] { return h.broker().engine().policy_of("t") == policy; }));
  }
  // A consumer that stopped reading in the middle of the first message.
  Client& half_written() {
    Client& client = h.connect();
    client.sub("t", "c");
    EXPECT_EQ(client.answer().payload, "OK");
    client.stop_reading(true);
    client.rdy(5);
    h.run_for(500);
    return client;
  }
  void expect_cut(Client& client) {
    client.stop_reading(false);
    ASSERT_TRUE(client.wait_closed());
    EXPECT_TRUE(client.messages().empty());
  }
  BrokerHarness h;
  std::uint64_t others = 0;  // connections of the harness
};

TEST_F(TcpTtl, Q_79_B_41_AChangeOfThePolicyClosesAConnectionWithAHalfWrittenFrame) {
  Client& client = half_written();
  Client& idle = h.connect();
  idle.sub("t", "other");
  EXPECT_RESPONSE(idle, "OK");
  configure({true, 2});
  EXPECT_TRUE(h.run_until([&] { return h.broker().tcp_connections() == others + 1; }));  // only the one with a frame under way
  h.run_for(3'000);
  expect_cut(client);
  h.run_for(20'000);
  EXPECT_TRUE(h.consumer("t", "c", 5).messages().empty());
  EXPECT_USABLE(idle);
}

TEST_F(TcpTtl, AFrameThatIsNotWrittenAtItsDeadlineClosesTheConnection) {
  configure({true, 4});
  Client& client = half_written();
  h.run_for(2'500);
  EXPECT_EQ(h.broker().tcp_connections(), others + 1);
  h.run_for(1'500);
  EXPECT_EQ(h.broker().tcp_connections(), others);
  expect_cut(client);
  EXPECT_EQ(channel_stat(h, "t", "c", "in_flight_count"), 0);
  EXPECT_EQ(channel_stat(h, "t", "c", "depth"), 0);
}

TEST_F(TcpTtl, TheMetricCountsTheDiscardsOfThisProcess) {
  configure({true, 1});
  h.run_for(3'000);
  EXPECT_NE(h.http("GET", "/metrics").body.find("rustqueue_ttl_discarded_messages_total 2\n"), std::string::npos);
  ASSERT_TRUE(h.restart());
  EXPECT_NE(h.http("GET", "/metrics").body.find("rustqueue_ttl_discarded_messages_total 0\n"), std::string::npos);
  EXPECT_NE(h.http("GET", "/v1/stats").body.find("\"ttl_discarded_messages\":2"), std::string::npos);
}

}  // namespace
}  // namespace rq::broker::test
