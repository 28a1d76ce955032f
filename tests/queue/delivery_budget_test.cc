// Budgets of delivery: bytes of a batch, bytes of the node, message slots (page 30 sections 3.4, 7.3 and 7.4); what a disconnect
// and an Empty leave (section 3.11, D-10).
#include <gtest/gtest.h>

#include <map>
#include <memory>

#include "tests/queue/engine_world.h"

namespace rq::queue {
namespace {

EngineOptions uncached(std::uint64_t node_bytes, std::uint64_t connection_bytes) {
  EngineOptions options;
  options.entry_cache_bytes = 0;
  options.node_delivery_inflight_bytes = node_bytes;
  options.connection_delivery_inflight_bytes = connection_bytes;
  return options;
}

std::vector<std::size_t> sizes(EngineWorld& w) {
  std::vector<std::size_t> out;
  for (const Delivery& delivery : w.shard().deliveries) out.push_back(delivery.body.size());
  return out;
}

void fill(EngineWorld& w, std::string_view topic, int messages, std::size_t bytes) {
  for (int i = 0; i < messages; ++i) ASSERT_EQ(w.publish_and_wait(topic, {std::string(bytes, 'x')}), Code::ok);
}

TEST(DeliveryBudget, Q_41_ABatchEndsAtItsByteLimitAndTheNextMessageHasLostNoAttempt) {
  EngineWorld w(41, uncached(1 << 20, 3'500));
  fill(w, "t", 8, 1'000);
  w.world.run_for(kSecond);
  w.subscribe("t", "c", 64);
  ASSERT_TRUE(w.wait_deliveries(3));
  EXPECT_EQ(w.shard().deliveries.size(), 3u);
  ASSERT_TRUE(w.wait_deliveries(8));
  for (const Delivery& delivery : w.shard().deliveries) EXPECT_EQ(delivery.attempts, 1);
}

TEST(DeliveryBudget, Q_42_AMessageLargerThanTheConnectionsLimitIsDeliveredAlone) {
  EngineWorld w(42, uncached(1 << 20, 500));
  fill(w, "t", 1, 100);
  fill(w, "t", 1, 4'000);
  fill(w, "t", 1, 100);
  w.world.run_for(kSecond);
  w.subscribe("t", "c", 64);
  ASSERT_TRUE(w.wait_deliveries(3));
  EXPECT_EQ(sizes(w), (std::vector<std::size_t>{100, 4'000, 100}));
  for (const Delivery& delivery : w.shard().deliveries) EXPECT_EQ(delivery.attempts, 1);
}

TEST(DeliveryBudget, Q_65_AtTheSlotLimitNothingMoreIsReservedAndADurableFinishFreesOneSlot) {
  EngineOptions options;
  options.node_delivery_inflight_messages = 10;
  EngineWorld w(65, options);
  fill(w, "t", 12, 10);
  const ConsumerId a = w.subscribe("t", "c", 8);
  const ConsumerId b = w.subscribe("t", "c", 8);
  ASSERT_TRUE(w.wait_deliveries(10));
  w.world.run_for(kSecond);
  EXPECT_EQ(w.shard().deliveries.size(), 10u);
  EXPECT_EQ(w.engine().metrics().in_flight_messages, 10u);
  const Delivery first = w.shard().deliveries[0];
  ASSERT_EQ(w.engine().finish(first.consumer, first.id, w.now()), Code::ok);
  w.process->poke();
  ASSERT_TRUE(w.wait_deliveries(11));
  w.world.run_for(kSecond);
  ASSERT_EQ(w.shard().deliveries.size(), 11u);
  EXPECT_EQ(w.shard().deliveries[10].attempts, 1);
  w.engine().unsubscribe(a, w.now());
  w.engine().unsubscribe(b, w.now());
  w.process->poke();
  w.world.run_for(kSecond);
  EXPECT_EQ(w.engine().metrics().in_flight_messages, 0u);
  EXPECT_EQ(w.engine().metrics().delivery_bytes, 0u);
}

// The connection hears of a timeout at once and drops the id then, and with it the slot.
TEST(DeliveryBudget, Q_66_ASlotCountsAsLongAsTheConnectionHasTheId) {
  EngineOptions options;
  options.node_delivery_inflight_messages = 1;
  EngineWorld w(66, options);
  fill(w, "t", 2, 10);
  SubscribeOptions lease;
  lease.message_timeout_ms = 1'000;
  const ConsumerId a = w.subscribe("t", "c", 1, lease);
  ASSERT_TRUE(w.wait_deliveries(1));
  EXPECT_EQ(w.engine().in_flight_of(a), 1u);
  EXPECT_EQ(w.engine().metrics().in_flight_messages, 1u);
  w.engine().set_ready(a, 0);
  ASSERT_TRUE(w.wait([&] { return !w.shard().timed_out.empty(); }));
  EXPECT_EQ(w.engine().in_flight_of(a), 0u);
  EXPECT_EQ(w.engine().metrics().in_flight_messages, 0u);
  w.subscribe("t", "c", 1);
  ASSERT_TRUE(w.wait_deliveries(2));
  EXPECT_EQ(w.shard().deliveries[1].attempts, 2);
  EXPECT_EQ(w.engine().metrics().in_flight_messages, 1u);
}

TEST(DeliveryBudget, Q_68_BatchesWaitForTheNodesBytesInTheirOrderAndALeavingWaiterLeaksNothing) {
  EngineWorld w(68, uncached(2'400, 1'200));
  for (const char* topic : {"a", "b", "c"}) fill(w, topic, 1, 1'000);
  w.world.run_for(kSecond);
  const ConsumerId a = w.subscribe("a", "c", 1);
  ASSERT_TRUE(w.wait_deliveries(1));
  EXPECT_EQ(w.engine().metrics().delivery_bytes, 2'000u);
  const ConsumerId b = w.subscribe("b", "c", 1);
  w.world.run_for(kSecond);
  const ConsumerId c = w.subscribe("c", "c", 1);
  w.world.run_for(kSecond);
  EXPECT_EQ(w.shard().deliveries.size(), 1u);
  EXPECT_EQ(w.engine().metrics().delivery_waiters, 2u);
  EXPECT_EQ(w.engine().metrics().delivery_waits, 2u);
  // FIN does not wait for bytes (I-45), and gives none back: the frame may still be in the output.
  w.finish_all();
  EXPECT_EQ(w.engine().metrics().delivery_waiters, 2u);
  w.engine().written(a, 1'000);
  ASSERT_TRUE(w.wait_deliveries(1));
  EXPECT_EQ(w.shard().deliveries[0].consumer, b);
  EXPECT_EQ(w.engine().metrics().delivery_waiters, 1u);
  w.engine().unsubscribe(c, w.now());
  w.process->poke();
  w.world.run_for(kSecond);
  EXPECT_EQ(w.engine().metrics().delivery_waiters, 0u);
  w.engine().unsubscribe(b, w.now());
  w.process->poke();
  w.world.run_for(kSecond);
  EXPECT_EQ(w.engine().metrics().delivery_bytes, 0u);
  EXPECT_EQ(w.engine().metrics().in_flight_messages, 0u);
  w.shard().deliveries.clear();
  w.subscribe("c", "c", 1);
  ASSERT_TRUE(w.wait_deliveries(1));
  EXPECT_EQ(w.shard().deliveries[0].attempts, 1);
}

TEST(DeliveryBudget, AFullReadQueueGivesNothingNowAndEverythingLater) {
  EngineOptions options = uncached(1 << 20, 1 << 19);
  options.payload_read_queue = 1;
  EngineWorld w(69, options);
  for (const char* topic : {"a", "b", "c", "d"}) fill(w, topic, 1, 1'000);
  w.world.run_for(kSecond);
  for (const char* topic : {"a", "b", "c", "d"}) w.subscribe(topic, "c", 1);
  ASSERT_TRUE(w.wait_deliveries(4));
  for (const Delivery& delivery : w.shard().deliveries) EXPECT_EQ(delivery.attempts, 1);
}

// FIN acts at once here (D-17): none is queued in a connection.
TEST(DeliveryBudget, Q_43_ADisconnectReleasesOnceWhatNoRunningFinishTook) {
  EngineWorld w(43);
  fill(w, "t", 10, 10);
  const ConsumerId a = w.subscribe("t", "c", 10);
  ASSERT_TRUE(w.wait_deliveries(10));
  const std::vector<Delivery> held = std::move(w.shard().deliveries);
  w.shard().deliveries.clear();
  for (int i = 0; i < 3; ++i) ASSERT_EQ(w.engine().finish(a, held[static_cast<std::size_t>(i)].id, w.now()), Code::ok);
  w.engine().unsubscribe(a, w.now());
  w.process->poke();
  w.subscribe("t", "c", 100);
  ASSERT_TRUE(w.wait_deliveries(7));
  w.world.run_for(5 * kSecond);
  ASSERT_EQ(w.shard().deliveries.size(), 7u);
  for (std::size_t i = 0; i < 7; ++i) {
    EXPECT_EQ(w.shard().deliveries[i].id, held[i + 3].id);
    EXPECT_EQ(w.shard().deliveries[i].attempts, 2);
  }
}

TEST(DeliveryBudget, Q_46_AChannelEmptiedWhileABatchIsReadGoesOnWithWhatComesLater) {
  EngineWorld w(46, uncached(1 << 20, 1 << 19));
  fill(w, "t", 5, 1'000);
  w.world.run_for(kSecond);
  w.disk.faults.latency_ns_min = w.disk.faults.latency_ns_max = 300 * kMillisecond;
  const ConsumerId a = w.subscribe("t", "c", 0);
  w.engine().set_ready(a, 64);
  w.process->poke();
  w.world.run_for(50 * kMillisecond);
  EXPECT_TRUE(w.shard().deliveries.empty());
  ASSERT_EQ(w.admin(Admin::empty_channel, "t", "c"), Code::ok);
  w.world.run_for(2 * kSecond);
  EXPECT_TRUE(w.shard().deliveries.empty());
  EXPECT_TRUE(w.shard().closed.empty());
  fill(w, "t", 1, 7);
  ASSERT_TRUE(w.wait_deliveries(1));
  EXPECT_EQ(sizes(w), std::vector<std::size_t>{7});
  EXPECT_EQ(w.engine().metrics().delivery_bytes, 14u);
}

TEST(DeliveryBudget, AChannelThatStopsAtItsAckWindowSaysSoOnceAMinute) {
  EngineOptions options;
  options.max_ack_gap = 2;
  EngineWorld w(75, options);
  std::vector<std::string> lines;
  w.world.set_log([&](std::string_view, io::Level, std::string_view event, std::string_view fields) {
    if (event == "blocked_by_ack_window") lines.emplace_back(fields);
  });
  w.restart();
  fill(w, "t", 6, 10);
  w.subscribe("t", "c", 10);
  ASSERT_TRUE(w.wait([&] { return !lines.empty(); }));
  EXPECT_EQ(lines, std::vector<std::string>{"topic=t channel=c oldest_unfinished=1"});
  w.finish_all();
  ASSERT_TRUE(w.wait_deliveries(2));
  w.world.run_for(kSecond);
  EXPECT_EQ(lines.size(), 1u);
}

// Three Topics with more than enough for everybody, of which the first one came first.
struct Shares : testing::Test {
  static constexpr int kMessages = 100;
  void begin(EngineOptions options, std::uint32_t rdy) {
    w = std::make_unique<EngineWorld>(1, options);
    for (const char* topic : {"a", "b", "c"}) fill(*w, topic, kMessages, 100);
    for (const char* topic : {"a", "b", "c"}) topic_of[w->subscribe(topic, "c", rdy)] = topic;
  }
  // Finishes what was delivered, oldest first, one after the other.
  void finish(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      ASSERT_TRUE(w->wait_deliveries(finished + 1));
      const Delivery& next = w->shard().deliveries[finished++];
      ASSERT_EQ(w->engine().finish(next.consumer, next.id, w->now()), Code::ok);
      ASSERT_TRUE(w->wait([&] { return w->shard().commands.size() == finished; }));
    }
  }
  std::map<std::string, int> delivered() {
    std::map<std::string, int> out;
    for (const Delivery& delivery : w->shard().deliveries) ++out[topic_of.at(delivery.consumer)];
    return out;
  }
  std::unique_ptr<EngineWorld> w;
  std::map<ConsumerId, std::string> topic_of;
  std::size_t finished = 0;
};

TEST_F(Shares, ASlotGoesToWhoeverWaitsNotToWhoeverGaveItBack) {
  EngineOptions options;
  options.node_delivery_inflight_messages = 4;
  begin(options, 10);
  finish(32);
  for (const auto& [topic, count] : delivered()) EXPECT_GE(count, 10) << topic;
  EXPECT_EQ(delivered().size(), 3u);
}

TEST_F(Shares, OneSlotGoesRound) {
  EngineOptions options;
  options.node_delivery_inflight_messages = 1;
  begin(options, 10);
  finish(30);
  const auto counts = delivered();
  for (const char* topic : {"a", "b", "c"}) EXPECT_NEAR(counts.at(topic), 10, 1) << topic;
}

TEST_F(Shares, WhoeverWaitedAndWantsNoMoreIsPassedOver) {
  EngineOptions options;
  options.node_delivery_inflight_messages = 1;
  begin(options, 10);
  finish(3);
  for (const auto& [consumer, topic] : topic_of)
    if (topic == "b") w->engine().unsubscribe(consumer, w->now());
  w->process->poke();
  finish(20);
  EXPECT_GE(delivered().at("a"), 9);
  EXPECT_GE(delivered().at("c"), 9);
}

TEST_F(Shares, ReadsGoRoundToo) {
  EngineOptions options = uncached(1 << 20, 100);  // a message at a time
  options.payload_read_queue = 1;
  begin(options, kMessages);
  auto before = delivered();  // the first ones had it for themselves for a while
  ASSERT_TRUE(w->wait_deliveries(w->shard().deliveries.size() + 60));
  for (const auto& [topic, count] : delivered()) EXPECT_NEAR(count - before[topic], 20, 4) << topic;
}

}  // namespace
}  // namespace rq::queue
