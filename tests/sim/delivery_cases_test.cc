// Page 30 section 16: what goes on while a barrier runs, and what a crash leaves of FIN and attempts.
#include <set>

#include "core/storage/paths.h"
#include "sim/harness.h"
#include "tests/sim/engine_fixture.h"

namespace rq::sim {
namespace {

using queue::Code;
using queue::Engine;

// Submits `action` while every disk call takes `ns`, then makes the disk fast again: only what it submitted is slow.
void slowly(EngineWorld& w, std::int64_t ns, const std::function<void(Engine&, Now)>& action) {
  w.slow_disk(ns);
  w.act(action);
  w.slow_disk(50 * kMicrosecond);
}

// I-01: nothing that a consumer does waits for a publish barrier.
TEST(DeliveryCases, Q_21_WhileAPublishBarrierRunsOlderMessagesAreDeliveredFinishedAndReleased) {
  EngineWorld w(21);
  ASSERT_TRUE(w.open());
  for (const char* body : {"a", "b", "c"}) ASSERT_TRUE(w.publish("t", body).ok());
  const queue::ConsumerId idle = w.subscribe("t", "c", 0);
  ASSERT_NE(idle, queue::ConsumerId::none);
  w.published.clear();
  slowly(w, 10 * kSecond, [&](Engine& e, Now now) { ASSERT_TRUE(e.publish("t", w.bodies("slow"), 0, w.waiter(9), now).ok()); });
  const Instant begin = w.world.now();
  const queue::ConsumerId c = w.subscribe("t", "c", 10);
  ASSERT_TRUE(w.wait_deliveries(3, kSecond));
  EXPECT_TRUE(w.finish(c, w.deliveries[0].event.id));
  w.act([&](Engine& e, Now now) {
    e.set_ready(idle, 10);
    e.unsubscribe(c, now);  // releases the other two
  });
  ASSERT_TRUE(w.wait_deliveries(5, kSecond));
  EXPECT_EQ(w.deliveries[3].event.attempts, 2);
  EXPECT_LT(w.world.now() - begin, kSecond);
  EXPECT_TRUE(w.published.empty()) << "the barrier still runs";
  EXPECT_EQ(w.deliveries.size(), 5u) << "what it covers is not visible";
  ASSERT_TRUE(w.world.run_until([&] { return w.published.size() == 1 && w.deliveries.size() == 6; }, 30 * kSecond));
  EXPECT_TRUE(w.published[0].event.outcome.ok());
}

// I-01: nor for the barrier of a Channel.
TEST(DeliveryCases, Q_22_WhileAWalBarrierRunsDeliveryAndPublishingGoOnAndTheNextFinWaits) {
  EngineWorld w(22);
  ASSERT_TRUE(w.open());
  for (const char* body : {"a", "b", "c"}) ASSERT_TRUE(w.publish("t", body).ok());
  const queue::ConsumerId c = w.subscribe("t", "c", 3);
  ASSERT_TRUE(w.wait_deliveries(3));
  const queue::ConsumerId other = w.subscribe("t", "c", 1);
  slowly(w, 10 * kSecond, [&](Engine& e, Now now) { EXPECT_EQ(e.finish(c, w.deliveries[0].event.id, now), Code::ok); });
  w.published.clear();
  const Instant begin = w.world.now();
  w.act([&](Engine& e, Now now) { EXPECT_EQ(e.finish(c, w.deliveries[1].event.id, now), Code::ok); });
  EXPECT_TRUE(w.publish("t", "d").ok());
  ASSERT_TRUE(w.wait_deliveries(4, kSecond));
  EXPECT_EQ(w.deliveries[3].event.consumer, other);
  EXPECT_LT(w.world.now() - begin, kSecond);
  EXPECT_TRUE(w.commands.empty()) << "neither FIN is answered";
  w.act([&](Engine& e, Now) { EXPECT_EQ(e.in_flight_of(c), 3u) << "no room before the barrier"; });
  ASSERT_TRUE(w.world.run_until([&] { return w.commands.size() == 2; }, 30 * kSecond));
  EXPECT_GE(w.commands[0].at - begin, 9 * kSecond);
  w.act([&](Engine& e, Now) { EXPECT_EQ(e.in_flight_of(c), 1u); });
}

TEST(DeliveryCases, Q_23_AFinWhoseRoomCameBackIsFinalOverACrash) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    BrokerHarness h(seed);
    ASSERT_TRUE(h.start());
    Client& c = h.consumer("t", "c", 1);
    h.consumer("t", "other", 0);
    ASSERT_EQ(h.publish("t", "first"), "OK");
    ASSERT_EQ(h.publish("t", "second"), "OK");
    const auto first = c.message();
    ASSERT_TRUE(first);
    c.fin(first->id);
    ASSERT_TRUE(c.message()) << "the second one shows that RDY room is back";
    h.power_loss();
    ASSERT_TRUE(h.start()) << h.last_exit_reason();
    Client& again = h.consumer("t", "c", 10);
    h.run_for(2'000);
    ASSERT_EQ(again.messages().size(), 1u);
    EXPECT_EQ(again.messages()[0].body, "second");
    Client& other = h.consumer("t", "other", 10);
    h.run_for(2'000);
    EXPECT_EQ(other.messages().size(), 2u) << "other Channels are unaffected";
  }
}

TEST(DeliveryCases, Q_24_AFinAppendedButNotDurableAppliesOrNotAndTheFloorFits) {
  std::set<std::size_t> outcomes;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    EngineWorld w(seed);
    ASSERT_TRUE(w.open());
    ASSERT_TRUE(w.publish("t", "a").ok());
    const queue::ConsumerId c = w.subscribe("t", "c", 1);
    ASSERT_TRUE(w.wait_deliveries(1));
    const std::string wal = storage::DataPaths("data").wal("t", "c");
    ASSERT_TRUE(w.disk.exists(wal));
    const std::size_t bytes = w.disk.content(wal).size();
    w.slow_disk(5 * kMillisecond);
    w.act([&](Engine& e, Now now) { EXPECT_EQ(e.finish(c, w.deliveries[0].event.id, now), Code::ok); });
    ASSERT_TRUE(w.world.run_until([&] { return w.disk.content(wal).size() > bytes; }, kSecond));
    ASSERT_TRUE(w.commands.empty());
    ASSERT_TRUE(w.crash_and_open()) << w.engine().fault()->message();
    w.engine().check_invariants();
    w.deliveries.clear();
    w.subscribe("t", "c", 1);
    w.world.run_for(kSecond);
    ASSERT_LE(w.deliveries.size(), 1u);
    const queue::TopicStats stats = w.topic_stats("t");
    ASSERT_EQ(stats.channels.size(), 1u);
    EXPECT_EQ(stats.channels[0].ack_cursor, w.deliveries.empty() ? 1u : 0u);
    EXPECT_EQ(stats.channels[0].depth, w.deliveries.size());
    outcomes.insert(w.deliveries.size());
  }
  EXPECT_EQ(outcomes, (std::set<std::size_t>{0, 1})) << "both outcomes occur";
}

// I-26, I-27.
TEST(DeliveryCases, Q_32_AttemptsFallBackInACrashAndStayOverACleanRestart) {
  for (const bool clean : {false, true}) {
    BrokerHarness h(32);
    ASSERT_TRUE(h.start());
    Client& c = h.consumer("t", "c");
    ASSERT_EQ(h.publish("t", "body"), "OK");
    const auto first = c.message();
    ASSERT_TRUE(first);
    EXPECT_EQ(first->attempts, 1);
    if (clean) {
      ASSERT_TRUE(h.stop());
    } else {
      h.power_loss();
    }
    ASSERT_TRUE(h.start());
    const auto again = h.consumer("t", "c").message();
    ASSERT_TRUE(again);
    EXPECT_EQ(again->id, first->id);
    EXPECT_EQ(again->attempts, clean ? 2 : 1);
  }
}

}  // namespace
}  // namespace rq::sim
