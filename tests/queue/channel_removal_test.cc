// Creating and deleting Channels: where the next one starts, and what a crash in between leaves (page 30 section 5).
#include <gtest/gtest.h>

#include <set>

#include "tests/queue/engine_world.h"

namespace rq::queue {
namespace {

// A hundred messages, all finished by the only Channel.
void hundred_finished(EngineWorld& w) {
  const ConsumerId consumer = w.subscribe("t", "c", 100);
  ASSERT_EQ(w.publish_and_wait("t", std::vector<std::string>(100, "old")), Code::ok);
  ASSERT_TRUE(w.wait_deliveries(100));
  w.finish_all();
  w.engine().unsubscribe(consumer, w.now());
  ASSERT_TRUE(w.wait([&] { return w.engine().quiet(); }));
}

std::vector<std::string> five() { return {"n1", "n2", "n3", "n4", "n5"}; }

TEST(ChannelRemoval, Q_57_AfterTheLastChannelIsDeletedTheNextOneGetsWhatWasPublishedSince) {
  EngineWorld w(57);
  ASSERT_NO_FATAL_FAILURE(hundred_finished(w));
  ASSERT_EQ(w.admin(Admin::delete_channel, "t", "c"), Code::ok);
  ASSERT_EQ(w.publish_and_wait("t", five()), Code::ok);
  w.subscribe("t", "d", 10);
  ASSERT_TRUE(w.wait_deliveries(5));
  w.world.run_for(kSecond);
  EXPECT_EQ(w.bodies(), five());
}

TEST(ChannelRemoval, Q_58_ACrashAtAnyEventOfTheDeleteLeavesTheChannelAsItWasOrGone) {
  std::set<bool> back;
  for (std::size_t events = 0;; ++events) {
    EngineWorld w(58);
    ASSERT_NO_FATAL_FAILURE(hundred_finished(w));
    w.engine().admin(Admin::delete_channel, "t", "c", static_cast<WaiterId>(999), w.now());
    w.process->poke();
    for (std::size_t i = 0; i < events && !w.shard().admin.contains(999); ++i) w.world.step();
    const bool answered = w.shard().admin.contains(999);
    w.restart(events % 2 == 0);
    ASSERT_EQ(w.engine().state(), EngineState::open) << events;
    const TopicStats stats = w.stats().at(0);
    const bool kept = !stats.channels.empty();
    back.insert(kept);
    EXPECT_FALSE(kept && answered) << events;
    if (kept) {
      EXPECT_EQ(stats.channels[0].ack_cursor, 100u) << events;
    }
    EXPECT_EQ(stats.unrouted_depth, 0u) << events;
    ASSERT_EQ(w.publish_and_wait("t", five()), Code::ok) << events;
    w.restart(true);
    w.subscribe("t", kept ? "c" : "d", 10);
    ASSERT_TRUE(w.wait_deliveries(5)) << events;
    w.world.run_for(kSecond);
    EXPECT_EQ(w.bodies(), five()) << events;
    if (answered) break;
  }
  EXPECT_EQ(back.size(), 2u);
}

TEST(ChannelRemoval, Q_59_ACrashBetweenTheFirstCheckpointAndTheManifestKeepsTheBacklogForTheChannel) {
  EngineWorld w(59);
  ASSERT_EQ(w.publish_and_wait("t", five()), Code::ok);
  w.engine().admin(Admin::create_channel, "t", "c", static_cast<WaiterId>(999), w.now());
  const std::string manifest = w.disk.content("data/topics/74/manifest");
  ASSERT_TRUE(w.wait([&] { return w.disk.exists("data/topics/74/channels/63.checkpoint"); }));
  ASSERT_EQ(w.disk.content("data/topics/74/manifest"), manifest);
  ASSERT_NE(manifest.find("unrouted_from_position"), std::string::npos);
  w.restart();
  EXPECT_EQ(w.disk.content("data/topics/74/manifest").find("unrouted_from_position"), std::string::npos);
  w.subscribe("t", "c", 10);
  ASSERT_TRUE(w.wait_deliveries(5));
  EXPECT_EQ(w.bodies(), five());
}

TEST(ChannelRemoval, Q_89_ASubscriberThatMeetsTheLastLeaveOfAnEphemeralChannelGetsWhatFollowsItsAnswer) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    EngineWorld w(seed);
    const ConsumerId first = w.subscribe("t", "c#ephemeral", 1);
    ASSERT_EQ(w.publish_and_wait("t", {"old"}), Code::ok);
    const auto second = static_cast<WaiterId>(999);
    // Both in one turn, in either order.
    if (seed % 2 == 0) w.engine().unsubscribe(first, w.now());
    w.engine().subscribe("t", "c#ephemeral", {}, second, w.now());
    if (seed % 2 == 1) w.engine().unsubscribe(first, w.now());
    ASSERT_TRUE(w.wait([&] { return w.shard().subscribed.contains(999); }));
    const SubscribeDone& done = w.shard().subscribed[999];
    ASSERT_TRUE(done.outcome.ok());
    w.shard().deliveries.clear();
    w.engine().set_ready(done.consumer, 10);
    ASSERT_EQ(w.publish_and_wait("t", {"n1"}), Code::ok);
    ASSERT_EQ(w.publish_and_wait("t", {"n2"}), Code::ok);
    ASSERT_TRUE(w.wait([&] {
      const std::vector<std::string> bodies = w.bodies();
      return bodies.size() >= 2 && bodies[bodies.size() - 2] == "n1" && bodies.back() == "n2";
    })) << seed;
  }
}

}  // namespace
}  // namespace rq::queue
