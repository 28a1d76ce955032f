// The metadata budget of page 30 section 7.1, through the Engine on the simulated disk.
#include <gtest/gtest.h>

#include <set>

#include "tests/queue/engine_world.h"

namespace rq::queue {
namespace {

EngineOptions with_budget(std::uint64_t bytes) {
  EngineOptions options;
  options.message_index_cache_bytes = bytes;
  return options;
}

std::uint64_t segments_of(EngineWorld& w, std::string_view topic) {
  for (const TopicStats& stats : w.stats())
    if (stats.name == topic) return stats.segment_count;
  return 0;
}

std::vector<std::string> some(std::size_t count, const std::string& body) { return std::vector<std::string>(count, body); }

TEST(MetadataBudget, Q_69_WithOnePageOfBudgetAHundredTopicsAreSpilledAndEverythingIsReadable) {
  EngineWorld w(69, with_budget(65'536));
  std::vector<std::uint64_t> waiters;
  for (int round = 0; round < 3; ++round)
    for (int topic = 0; topic < 100; ++topic)
      waiters.push_back(w.publish("t" + std::to_string(topic), some(1 + topic % 3, "body " + std::to_string(round))));
  ASSERT_TRUE(w.wait([&] { return w.shard().published.size() == waiters.size(); }, 600 * kSecond));
  for (const std::uint64_t waiter : waiters) EXPECT_EQ(w.shard().published[waiter].code, Code::ok);
  for (const TopicStats& stats : w.stats()) EXPECT_GE(stats.segment_count, 3u) << stats.name;
  for (int topic = 0; topic < 100; ++topic) {
    w.shard().deliveries.clear();
    w.subscribe("t" + std::to_string(topic), "c", 100);
    const std::size_t each = 1 + static_cast<std::size_t>(topic) % 3;
    ASSERT_TRUE(w.wait_deliveries(3 * each)) << topic;
    const std::vector<std::string> bodies = w.bodies();
    EXPECT_EQ(std::set<std::string>(bodies.begin(), bodies.end()), (std::set<std::string>{"body 0", "body 1", "body 2"}));
  }
}

TEST(MetadataBudget, TheLargestTailIsSealedAndTheOthersStay) {
  EngineWorld w(1, with_budget(65'536 + 64 * 100));  // 100 messages in tails
  ASSERT_EQ(w.publish_and_wait("small", some(20, "s")), Code::ok);
  ASSERT_EQ(w.publish_and_wait("large", some(60, "l")), Code::ok);
  ASSERT_EQ(w.publish_and_wait("new", some(30, "n")), Code::ok);
  EXPECT_EQ(segments_of(w, "small"), 1u);
  EXPECT_EQ(segments_of(w, "large"), 2u);
  EXPECT_EQ(segments_of(w, "new"), 1u);
}

TEST(MetadataBudget, AGroupLargerThanTheBudgetGoesAloneAndIsSealedAtOnce) {
  EngineWorld w(2, with_budget(65'536 + 64 * 100));
  ASSERT_EQ(w.publish_and_wait("small", some(20, "s")), Code::ok);
  const std::uint64_t huge = w.publish("huge", some(500, "h"));
  const std::uint64_t next = w.publish("small", {"after"});
  ASSERT_TRUE(w.wait([&] { return w.shard().published.contains(huge) && w.shard().published.contains(next); }));
  EXPECT_EQ(w.shard().published[huge].code, Code::ok);
  EXPECT_EQ(w.shard().published[next].code, Code::ok);
  ASSERT_TRUE(w.wait([&] { return segments_of(w, "huge") == 2; }));
  EXPECT_EQ(segments_of(w, "small"), 2u);
  w.subscribe("huge", "c", 2'500);
  ASSERT_TRUE(w.wait_deliveries(500));
}

TEST(MetadataBudget, TailsAboveTheBudgetAreSealedAtOpening) {
  EngineWorld w(3);
  ASSERT_EQ(w.publish_and_wait("a", some(50, "a")), Code::ok);
  ASSERT_EQ(w.publish_and_wait("b", some(80, "b")), Code::ok);
  w.set_options([](EngineOptions& options) { options.message_index_cache_bytes = 65'536 + 64 * 60; });
  w.restart();
  ASSERT_TRUE(w.wait([&] { return segments_of(w, "b") == 2; }));
  EXPECT_EQ(segments_of(w, "a"), 1u);
}

TEST(MetadataBudget, ADeletedTopicThatWaitsLetsTheNextOneGoOn) {
  EngineWorld w(4, with_budget(65'536 + 64 * 100));
  ASSERT_EQ(w.publish_and_wait("t", some(100, "t")), Code::ok);
  w.disk.faults.latency_ns_min = w.disk.faults.latency_ns_max = 20 * kMillisecond;
  ASSERT_EQ(w.admin(Admin::create_topic, "gone"), Code::ok);
  const std::uint64_t dropped = w.publish("gone", {"x"});
  w.world.run_for(kMillisecond);
  const std::uint64_t next = w.publish("t", {"y"});
  ASSERT_EQ(w.admin(Admin::delete_topic, "gone"), Code::ok);
  ASSERT_TRUE(w.wait([&] { return w.shard().published.contains(next) && w.shard().published.contains(dropped); }));
  EXPECT_EQ(w.shard().published[next].code, Code::ok);
}

TEST(MetadataBudget, ATopicWhoseWaitingPublishIsRefusedLetsTheNextOneGoOn) {
  for (std::int64_t ms = 0; ms < 200; ms += 10) {
    EngineWorld w(static_cast<std::uint64_t>(ms), with_budget(65'536 + 64 * 100));
    ASSERT_EQ(w.publish_and_wait("t", some(100, "t")), Code::ok);
    ASSERT_EQ(w.admin(Admin::create_topic, "fenced"), Code::ok);
    w.disk.faults.latency_ns_min = w.disk.faults.latency_ns_max = 20 * kMillisecond;
    FenceSnapshot fences;
    fences.topics.emplace_back("fenced", w.now().wall.ms() + 600'000);
    w.engine().sync_fences(fences, WaiterId{1'000'000});
    w.process->poke();
    w.world.run_for(ms * kMillisecond);
    const std::uint64_t waits = w.publish("fenced", {"x"});
    w.world.run_for(kMillisecond);
    const std::uint64_t next = w.publish("t", {"y"});
    ASSERT_TRUE(w.wait([&] { return w.shard().published.contains(next) && w.shard().published.contains(waits); })) << ms;
    EXPECT_EQ(w.shard().published[next].code, Code::ok) << ms;
  }
}

// Operations that follow each other without a pause leave room for a rotation between them.
TEST(MetadataBudget, ASealIsNotStarvedByOperations) {
  EngineWorld w(5, with_budget(65'536));
  ASSERT_EQ(w.publish_and_wait("t", {"first"}), Code::ok);
  for (std::uint64_t i = 0; i < 50; ++i)
    w.engine().admin(i % 2 == 0 ? Admin::pause_topic : Admin::unpause_topic, "t", {}, static_cast<WaiterId>(1'000 + i), w.now());
  const std::uint64_t waiter = w.publish("t", {"second"});
  ASSERT_TRUE(w.wait([&] { return w.shard().published.contains(waiter); }));
  EXPECT_LT(w.shard().admin.size(), 50u);
}

}  // namespace
}  // namespace rq::queue
