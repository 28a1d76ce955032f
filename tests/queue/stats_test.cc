// Statistics beside other work: a turn looks at a bounded number of things (page 30 section 3.10).
#include <gtest/gtest.h>

#include "tests/queue/engine_world.h"

namespace rq::queue {
namespace {

TEST(Stats, ManyQuestionsAboutManyDelayedMessagesAreAnsweredOverManyTurns) {
  constexpr std::size_t kQuestions = 5, kDelayed = 20'000;
  EngineWorld w(1);
  w.shard().check_invariants = false;
  ASSERT_EQ(w.admin(Admin::create_channel, "t", "a"), Code::ok);
  ASSERT_EQ(w.admin(Admin::create_channel, "t", "b"), Code::ok);
  ASSERT_EQ(w.publish_and_wait("t", std::vector<std::string>(kDelayed, "later"), 60'000), Code::ok);
  ASSERT_EQ(w.publish_and_wait("u", {"now"}), Code::ok);

  const std::uint64_t turns = w.shard().turn.turns();
  for (std::uint64_t i = 1; i <= kQuestions; ++i) w.engine().stats({}, {}, static_cast<WaiterId>(1'000'000 + i), w.now());
  ASSERT_TRUE(w.wait([&] { return w.shard().stats.size() == kQuestions; }));
  EXPECT_GE(w.shard().turn.turns() - turns, kQuestions * 3 * kDelayed / 8'192);
  for (const auto& [waiter, done] : w.shard().stats) {
    ASSERT_EQ(done.topics.size(), 2u);
    EXPECT_EQ(done.topics[0].channels.at(0).deferred_count, kDelayed);
    EXPECT_EQ(done.topics[0].channels.at(1).deferred_count, kDelayed);
    EXPECT_EQ(done.topics[1].name, "u");
  }
}

TEST(Stats, AQuestionAboutOneTopicLooksAtThatOneAlone) {
  EngineWorld w(2);
  for (const char* topic : {"a", "b", "c"}) ASSERT_EQ(w.publish_and_wait(topic, {"m"}), Code::ok);
  const auto ask = [&](std::string_view topic) {
    w.shard().stats.clear();
    w.engine().stats(topic, {}, WaiterId{1'000'000}, w.now());
    w.wait([&] { return !w.shard().stats.empty(); });
    std::string names;
    for (const TopicStats& row : w.shard().stats[1'000'000].topics) names += row.name;
    return names;
  };
  EXPECT_EQ(ask("b"), "b");
  EXPECT_EQ(ask("bb"), "");
  EXPECT_EQ(ask(" "), "");
  EXPECT_EQ(ask(""), "abc");
}

TEST(Stats, ADeletionWaitsForAPageThatStatisticsReadAlsoWithoutAnyChannel) {
  EngineOptions options;
  options.max_segment_bytes = 4'096;
  EngineWorld w(3, options);
  for (int i = 0; i < 30; ++i) ASSERT_EQ(w.publish_and_wait("t", {std::string(300, 'x')}, 60'000), Code::ok);
  w.disk.faults.latency_ns_min = w.disk.faults.latency_ns_max = 20 * kMillisecond;
  w.engine().stats({}, {}, WaiterId{1'000'000}, w.now());
  w.process->poke();
  w.world.run_for(10 * kMillisecond);
  ASSERT_TRUE(w.shard().stats.empty());
  EXPECT_EQ(w.admin(Admin::delete_topic, "t"), Code::ok);
  EXPECT_TRUE(w.wait([&] { return !w.shard().stats.empty(); }));
}

}  // namespace
}  // namespace rq::queue
