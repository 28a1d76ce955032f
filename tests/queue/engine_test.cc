#include <gtest/gtest.h>

#include "tests/queue/engine_world.h"

namespace rq::queue {
namespace {

EngineOptions small_segments() {
  EngineOptions options;
  options.max_segment_bytes = 4096;
  options.message_index_cache_bytes = 65'536;
  options.entry_cache_bytes = 1;
  return options;
}

TEST(Engine, AnAnsweredPublishIsDeliveredAndFinishedForGood) {
  EngineWorld w(1);
  ASSERT_EQ(w.engine().state(), EngineState::open);
  EXPECT_EQ(w.publish_and_wait("t", {"a", "b"}), Code::ok);
  w.subscribe("t", "c", 10);
  ASSERT_TRUE(w.wait_deliveries(2));
  EXPECT_EQ(w.bodies(), (std::vector<std::string>{"a", "b"}));
  w.finish_all();
  w.restart(true);
  w.subscribe("t", "c", 10);
  w.world.run_for(kSecond);
  EXPECT_TRUE(w.shard().deliveries.empty());
}

TEST(Engine, EverythingAnsweredSurvivesAPowerLoss) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    EngineWorld w(seed, small_segments());
    for (int i = 0; i < 30; ++i)
      ASSERT_EQ(w.publish_and_wait("t", {"message " + std::to_string(i) + std::string(300, 'x')}), Code::ok);
    w.publish("t", {"unanswered"});
    w.restart(true);
    ASSERT_EQ(w.engine().state(), EngineState::open) << (w.engine().fault() ? w.engine().fault()->message() : "");
    w.subscribe("t", "c", 100);
    ASSERT_TRUE(w.wait_deliveries(30)) << seed;
    for (int i = 0; i < 30; ++i)
      EXPECT_EQ(w.bodies()[static_cast<std::size_t>(i)].substr(0, 10), ("message " + std::to_string(i) + "xx").substr(0, 10));
  }
}

TEST(Engine, ColdMessagesComeFromSealedSegmentsThroughPagesAndReads) {
  EngineWorld w(2, small_segments());
  for (int i = 0; i < 200; ++i) ASSERT_EQ(w.publish_and_wait("t", {std::to_string(i) + std::string(200, 'y')}), Code::ok);
  const ConsumerId consumer = w.subscribe("t", "c", 300);
  ASSERT_TRUE(w.wait_deliveries(200));
  EXPECT_GT(w.engine().metrics().metadata_reads, 0u);
  EXPECT_EQ(w.engine().in_flight_of(consumer), 200u);
  w.finish_all();
  EXPECT_EQ(w.engine().in_flight_of(consumer), 0u);
  EXPECT_EQ(w.stats().at(0).channels.at(0).depth, 0u);
}

TEST(Engine, EightThousandFinishesMakeACheckpointAndAnEmptyWal) {
  EngineWorld w(3);
  std::vector<std::string> bodies(500, "m");
  for (int i = 0; i < 17; ++i) ASSERT_EQ(w.publish_and_wait("t", bodies), Code::ok);
  w.subscribe("t", "c", 2500);
  std::size_t done = 0;
  while (done < 8500) {
    ASSERT_TRUE(w.wait([&] { return !w.shard().deliveries.empty(); }));
    done += w.shard().deliveries.size();
    w.finish_all();
  }
  ASSERT_TRUE(w.wait([&] { return w.engine().quiet(); }));
  EXPECT_LT(w.disk.content("data/topics/74/channels/63.wal").size(), 1024u * 29u);
  w.restart();
  const TopicStats stats = w.stats().at(0);
  EXPECT_EQ(stats.channels.at(0).depth, 0u);
  EXPECT_EQ(stats.channels.at(0).ack_cursor, 8500u);
}

TEST(Engine, ACleanStopKeepsAttemptsAndLeavesTheMarker) {
  EngineWorld w(4);
  ASSERT_EQ(w.publish_and_wait("t", {"a"}), Code::ok);
  const ConsumerId consumer = w.subscribe("t", "c", 1);
  ASSERT_TRUE(w.wait_deliveries(1));
  w.engine().unsubscribe(consumer, w.now());
  ASSERT_TRUE(w.stop());
  EXPECT_NE(w.disk.content("data/.rustqueue.lock").find("clean"), std::string::npos);
  w.restart();
  w.subscribe("t", "c", 1);
  ASSERT_TRUE(w.wait_deliveries(1));
  EXPECT_EQ(w.shard().deliveries[0].attempts, 2);
}

TEST(Engine, ADeletedTopicIsGoneAndItsNameStartsAnew) {
  EngineWorld w(5, small_segments());
  for (int i = 0; i < 40; ++i) ASSERT_EQ(w.publish_and_wait("t", {std::string(300, 'x')}), Code::ok);
  const ConsumerId consumer = w.subscribe("t", "c", 5);
  ASSERT_TRUE(w.wait_deliveries(5));
  EXPECT_EQ(w.admin(Admin::delete_topic, "t"), Code::ok);
  ASSERT_EQ(w.shard().closed.size(), 1u);
  EXPECT_EQ(w.shard().closed[0].consumer, consumer);
  EXPECT_TRUE(w.stats().empty());
  EXPECT_EQ(w.publish_and_wait("t", {"new"}), Code::ok);
  w.shard().deliveries.clear();
  w.subscribe("t", "c", 5);
  ASSERT_TRUE(w.wait_deliveries(1));
  EXPECT_EQ(w.bodies(), std::vector<std::string>{"new"});
  EXPECT_EQ(w.stats().at(0).published_count, 1u);
}

TEST(Engine, DeletingTheLastChannelKeepsWhatIsPublishedAfterwards) {
  EngineWorld w(6);
  ASSERT_EQ(w.publish_and_wait("t", {"old"}), Code::ok);
  ASSERT_EQ(w.admin(Admin::create_channel, "t", "c"), Code::ok);
  ASSERT_EQ(w.admin(Admin::delete_channel, "t", "c"), Code::ok);
  EXPECT_EQ(w.admin(Admin::delete_channel, "t", "c"), Code::channel_not_found);
  ASSERT_EQ(w.publish_and_wait("t", {"new"}), Code::ok);
  w.restart(true);
  w.subscribe("t", "d", 5);
  ASSERT_TRUE(w.wait_deliveries(1));
  w.world.run_for(kSecond);
  EXPECT_EQ(w.bodies(), std::vector<std::string>{"new"});
}

TEST(Engine, PausedTopicsAndChannelsDeliverNothingUntilReleased) {
  EngineWorld w(7);
  ASSERT_EQ(w.publish_and_wait("t", {"a"}), Code::ok);
  ASSERT_EQ(w.admin(Admin::create_channel, "t", "c"), Code::ok);
  ASSERT_EQ(w.admin(Admin::pause_channel, "t", "c"), Code::ok);
  ASSERT_EQ(w.admin(Admin::pause_topic, "t"), Code::ok);
  w.restart(true);
  w.subscribe("t", "c", 5);
  w.world.run_for(kSecond);
  EXPECT_TRUE(w.shard().deliveries.empty());
  ASSERT_EQ(w.admin(Admin::unpause_topic, "t"), Code::ok);
  w.world.run_for(kSecond);
  EXPECT_TRUE(w.shard().deliveries.empty());
  ASSERT_EQ(w.admin(Admin::unpause_channel, "t", "c"), Code::ok);
  EXPECT_TRUE(w.wait_deliveries(1));
}

TEST(Engine, DelayedMessagesAreCountedInSealedAndActiveSegments) {
  EngineWorld w(8, small_segments());
  ASSERT_EQ(w.admin(Admin::create_channel, "t", "c"), Code::ok);
  for (int i = 0; i < 50; ++i) ASSERT_EQ(w.publish_and_wait("t", {std::string(300, 'x')}, i % 2 == 0 ? 60'000 : 0), Code::ok);
  EXPECT_EQ(w.stats().at(0).channels.at(0).deferred_count, 25u);
  EXPECT_EQ(w.stats().at(0).channels.at(0).depth, 50u);
  w.subscribe("t", "c", 100);
  ASSERT_TRUE(w.wait_deliveries(25));
  w.finish_all();
  EXPECT_EQ(w.stats().at(0).channels.at(0).deferred_count, 25u);
  ASSERT_TRUE(w.wait([&] { return w.shard().deliveries.size() >= 25; }, 120 * kSecond));
  EXPECT_EQ(w.stats().at(0).channels.at(0).deferred_count, 0u);
}

TEST(Engine, AFailedBarrierFailsEveryWaiterAndIsolatesTheStorage) {
  EngineWorld w(9);
  ASSERT_EQ(w.publish_and_wait("t", {"a"}), Code::ok);
  w.disk.faults.sync_fail = 1024;
  EXPECT_EQ(w.publish_and_wait("t", {"b"}), Code::storage);
  EXPECT_EQ(w.engine().state(), EngineState::faulted);
  EXPECT_EQ(w.publish_and_wait("other", {"c"}), Code::storage);
  w.disk.faults.sync_fail = 0;
  w.restart();
  EXPECT_EQ(w.engine().state(), EngineState::open);
}

}  // namespace
}  // namespace rq::queue
