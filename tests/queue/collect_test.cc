// Collection of segments that nobody needs any more (page 30 section 6).
#include <gtest/gtest.h>

#include "tests/queue/engine_world.h"

namespace rq::queue {
namespace {

EngineOptions collecting(std::uint64_t bootstrap_seconds = 1) {
  EngineOptions options;
  options.max_segment_bytes = 4096;
  options.maintenance_startup_delay_seconds = 0;
  options.bootstrap_retention_seconds = bootstrap_seconds;
  return options;
}

void fill(EngineWorld& w, int messages) {
  for (int i = 0; i < messages; ++i) ASSERT_EQ(w.publish_and_wait("t", {std::to_string(i) + std::string(300, 'x')}), Code::ok);
}

void consume(EngineWorld& w, std::size_t messages) {
  for (std::size_t done = 0; done < messages;) {
    ASSERT_TRUE(w.wait([&] { return !w.shard().deliveries.empty(); }));
    done += w.shard().deliveries.size();
    w.finish_all();
  }
}

TEST(Collect, Q_54_WithoutAChannelEverythingStaysThroughRestartsAndTime) {
  EngineWorld w(54, collecting());
  fill(w, 100);
  for (int restart = 0; restart < 3; ++restart) {
    w.world.run_for(10ll * 24 * 3600 * kSecond);
    w.restart(true);
  }
  w.subscribe("t", "c", 200);
  ASSERT_TRUE(w.wait_deliveries(100));
}

TEST(Collect, Q_55_AnEphemeralChannelNeverMovesTheUnroutedBoundary) {
  EngineWorld w(55, collecting());
  ConsumerId ephemeral = w.subscribe("t", "e#ephemeral", 200);
  fill(w, 60);
  consume(w, 60);
  w.engine().unsubscribe(ephemeral, w.now());
  w.process->poke();
  w.world.run_for(30 * kSecond);
  w.subscribe("t", "c", 200);
  ASSERT_TRUE(w.wait_deliveries(60));
}

TEST(Collect, S_47_WhatWasPublishedWithoutAChannelSurvivesRestartsAndCollectionUpToTheBoundary) {
  EngineWorld w(47, collecting());
  ASSERT_EQ(w.admin(Admin::create_channel, "t", "gone"), Code::ok);
  ASSERT_EQ(w.publish_and_wait("t", {"before the boundary"}), Code::ok);
  ASSERT_EQ(w.admin(Admin::delete_channel, "t", "gone"), Code::ok);
  fill(w, 40);
  w.restart(true);
  w.world.run_for(60 * kSecond);
  w.restart();
  w.subscribe("t", "c", 200);
  ASSERT_TRUE(w.wait_deliveries(40));
  w.world.run_for(kSecond);
  EXPECT_EQ(w.shard().deliveries.size(), 40u);
  EXPECT_EQ(w.bodies().front().substr(0, 2), "0x");
}

TEST(Collect, Q_56_ALaterChannelStartsWithTheSegmentThatReachesIntoTheBootstrapWindow) {
  EngineWorld w(56, collecting(90));
  w.subscribe("t", "first", 100);
  fill(w, 40);
  consume(w, 40);
  w.world.run_for(60 * kSecond);
  w.subscribe("t", "minute", 100);
  ASSERT_TRUE(w.wait_deliveries(40));  // finished by the first one, still here for the second one
  w.finish_all();
  fill(w, 40);
  consume(w, 80);
  w.world.run_for(60 * kSecond);  // the first forty are 120 s old, the others 60 s
  w.subscribe("t", "two", 200);
  ASSERT_TRUE(w.wait_deliveries(40));
  w.world.run_for(kSecond);
  // From the start of the segment that holds the first young message: some of the old ones, not all.
  EXPECT_GE(w.shard().deliveries.size(), 40u);
  EXPECT_LT(w.shard().deliveries.size(), 60u);
}

// I-42: an idle tick writes nothing.
TEST(Collect, Q_61_AHalfFinishedActiveSegmentStaysAndAWhollyFinishedLogGoesWithItsPositionsKept) {
  EngineWorld w(61, collecting());
  w.subscribe("t", "c", 1);
  ASSERT_EQ(w.publish_and_wait("t", {"a", "b"}), Code::ok);
  ASSERT_TRUE(w.wait_deliveries(1));
  w.finish_all();
  ASSERT_TRUE(w.wait_deliveries(1));
  w.world.run_for(20 * kSecond);
  const std::uint64_t barriers = w.engine().metrics().barriers;
  w.world.run_for(20 * kSecond);
  EXPECT_EQ(w.engine().metrics().barriers, barriers);  // an idle tick writes nothing
  EXPECT_EQ(w.stats().at(0).segment_count, 1u);
  EXPECT_EQ(w.stats().at(0).message_count, 2u);
  w.finish_all();
  ASSERT_TRUE(w.wait([&] { return w.stats().at(0).message_count == 0; }));
  w.restart(true);
  EXPECT_EQ(w.stats().at(0).published_count, 2u);
  ASSERT_EQ(w.publish_and_wait("t", {"c"}), Code::ok);
  w.subscribe("t", "c", 1);
  ASSERT_TRUE(w.wait_deliveries(1));
  EXPECT_EQ(w.bodies(), std::vector<std::string>{"c"});
  EXPECT_EQ(w.stats().at(0).published_count, 3u);
}

TEST(Collect, Q_62_EveryOfThreeHundredTopicsIsVisitedWithinThreeTicks) {
  EngineWorld w(62, collecting());
  w.shard().check_invariants = false;
  for (int i = 0; i < 300; ++i) {
    const std::string topic = "t" + std::to_string(i);
    ASSERT_EQ(w.admin(Admin::create_channel, topic, "c"), Code::ok);
    ASSERT_EQ(w.publish_and_wait(topic, {"m"}), Code::ok);
    ASSERT_EQ(w.admin(Admin::empty_channel, topic, "c"), Code::ok);
  }
  // One round seals, the next one collects.
  w.world.run_for(2 * kSecond + 6 * 5 * kSecond + kSecond);
  for (const TopicStats& stats : w.stats()) EXPECT_EQ(stats.message_count, 0u) << stats.name;
}

TEST(Collect, Q_63_AMessageInFlightOnAnEphemeralChannelHoldsItsSegment) {
  EngineWorld w(63, collecting());
  SubscribeOptions slow;
  slow.message_timeout_ms = 60'000;
  const ConsumerId holder = w.subscribe("t", "e#ephemeral", 1, slow);
  ASSERT_EQ(w.admin(Admin::create_channel, "t", "c"), Code::ok);
  fill(w, 40);
  ASSERT_EQ(w.admin(Admin::empty_channel, "t", "c"), Code::ok);
  ASSERT_TRUE(w.wait_deliveries(1));
  w.world.run_for(30 * kSecond);
  EXPECT_EQ(w.stats().at(0).message_count, 40u);
  w.world.run_for(40 * kSecond);  // it timed out and was handed out again; the consumer still holds it
  EXPECT_EQ(w.stats().at(0).message_count, 40u);
  w.engine().set_ready(holder, 0);
  w.finish_all();
  w.world.run_for(20 * kSecond);
  EXPECT_LT(w.stats().at(0).message_count, 40u);
}

TEST(Collect, S_68_AKillInTheMiddleOfACollectionLosesNothingAndIndexesContinue) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    EngineWorld w(seed, collecting());
    w.subscribe("t", "c", 30);
    fill(w, 60);
    consume(w, 30);
    w.disk.faults.latency_ns_min = w.disk.faults.latency_ns_max = 20 * kMillisecond;
    w.wait([&] { return w.stats().at(0).message_count < 60; }, 20 * kSecond);
    w.world.run_for(static_cast<std::int64_t>(seed) * 5 * kMillisecond);
    w.disk.faults = {};
    w.restart(seed % 2 == 0);
    ASSERT_EQ(w.engine().state(), EngineState::open) << seed << " " << (w.engine().fault() ? w.engine().fault()->message() : "");
    ASSERT_EQ(w.publish_and_wait("t", {"last"}), Code::ok);
    const ChannelStats stats = w.stats().at(0).channels.at(0);
    w.subscribe("t", "c", 100);
    ASSERT_TRUE(w.wait_deliveries(stats.depth)) << seed;
    EXPECT_EQ(w.bodies().back(), "last");
    EXPECT_LE(w.bodies().front().substr(0, 2), "30");
    EXPECT_GE(stats.depth, 31u);
  }
}

TEST(Collect, S_69_AfterEverythingWasPurgedIndexAndPositionGoOn) {
  EngineWorld w(69, collecting());
  w.subscribe("t", "c", 50);
  fill(w, 30);
  consume(w, 30);
  ASSERT_TRUE(w.wait([&] { return w.stats().at(0).message_count == 0; }));
  for (int round = 0; round < 3; ++round) {
    w.restart(true);
    ASSERT_EQ(w.engine().state(), EngineState::open);
    EXPECT_EQ(w.stats().at(0).published_count, 30u + static_cast<unsigned>(round));
    ASSERT_EQ(w.publish_and_wait("t", {"m"}), Code::ok);
    w.subscribe("t", "c", 5);
    ASSERT_TRUE(w.wait_deliveries(1));
    w.finish_all();
  }
}

}  // namespace
}  // namespace rq::queue
