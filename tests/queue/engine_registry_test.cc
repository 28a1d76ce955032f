// What the set of Topics and Channels, and statistics of it, show to others (page 30 sections 0.1, 1.2 and 14).
#include <gtest/gtest.h>

#include <set>

#include "tests/queue/engine_world.h"

namespace rq::queue {
namespace {

// I-57: whoever refreshes when the revision moved ends with the current set, also over a crash at any disk step.
TEST(EngineRegistry, EveryChangeOfTheSetIsFollowedByAHigherRevision) {
  EngineWorld w(57);
  std::uint64_t revision = w.engine().registry_revision();
  const auto moved = [&](const char* what) {
    EXPECT_TRUE(w.wait([&] { return w.engine().registry_revision() > revision; })) << what;
    w.world.run_for(kSecond);
    revision = w.engine().registry_revision();
  };
  ASSERT_EQ(w.publish_and_wait("t", {"a"}), Code::ok);
  moved("a Topic by its first publish");
  ASSERT_EQ(w.admin(Admin::create_channel, "t", "c"), Code::ok);
  moved("a Channel");
  const ConsumerId consumer = w.subscribe("t", "e#ephemeral", 0);
  moved("an ephemeral Channel");
  w.engine().unsubscribe(consumer, w.now());
  w.process->poke();
  ASSERT_TRUE(w.wait([&] { return !w.engine().has_channel("t", "e#ephemeral"); }));
  moved("its end with the last consumer");
  ASSERT_EQ(w.publish_and_wait("t", {"b"}), Code::ok);
  ASSERT_EQ(w.admin(Admin::pause_topic, "t"), Code::ok);
  ASSERT_EQ(w.admin(Admin::empty_channel, "t", "c"), Code::ok);
  w.world.run_for(kSecond);
  EXPECT_EQ(w.engine().registry_revision(), revision) << "neither publishing, pausing nor emptying";
  ASSERT_EQ(w.admin(Admin::delete_channel, "t", "c"), Code::ok);
  moved("a Channel's deletion");
  ASSERT_EQ(w.admin(Admin::delete_topic, "t"), Code::ok);
  moved("a Topic's deletion");
  w.restart(true);
  moved("a start");
}

// I-06.
TEST(EngineRegistry, ANameThatIsCreatedAnewStartsEmptyAtPositionOneAndIdsGoOn) {
  EngineWorld w(6);
  ASSERT_EQ(w.publish_and_wait("t", {"a", "b", "c"}), Code::ok);
  w.subscribe("t", "old", 5);
  ASSERT_TRUE(w.wait_deliveries(3));
  const MessageId last = w.shard().deliveries[2].id;
  ASSERT_EQ(w.admin(Admin::delete_topic, "t"), Code::ok);
  w.shard().deliveries.clear();
  ASSERT_EQ(w.publish_and_wait("t", {"new"}), Code::ok);
  const TopicStats stats = w.stats().at(0);
  EXPECT_EQ(stats.published_count, 1u);
  EXPECT_TRUE(stats.channels.empty());
  w.subscribe("t", "c", 5);
  ASSERT_TRUE(w.wait_deliveries(1));
  EXPECT_EQ(w.bodies(), std::vector<std::string>{"new"});
  EXPECT_GT(w.shard().deliveries[0].id, last);
}

// I-03: at every event of the world a snapshot shows all of a group or nothing of it.
TEST(EngineRegistry, ASnapshotNeverShowsHalfAPublishGroup) {
  EngineWorld w(3);
  ASSERT_EQ(w.admin(Admin::create_topic, "t"), Code::ok);
  w.disk.faults.latency_ns_min = w.disk.faults.latency_ns_max = kMillisecond;
  std::uint64_t last = 0;
  for (int i = 0; i < 5; ++i) last = w.publish("t", {"x", "y"});
  std::set<std::uint64_t> seen;
  while (!w.shard().published.contains(last)) {
    for (const TopicStats& topic : w.stats()) seen.insert(topic.published_count);
    w.world.run_for(100 * kMicrosecond);
  }
  seen.insert(w.stats().at(0).published_count);
  EXPECT_EQ(seen, (std::set<std::uint64_t>{0, 10}));
}

}  // namespace
}  // namespace rq::queue
