// TTL_DISCARD (page 30 sections 9.2 and 9.3).
#include <gtest/gtest.h>

#include "tests/queue/engine_world.h"

namespace rq::queue {
namespace {

const DeliveryPolicy kFive{true, 5};

class Ttl : public ::testing::Test {
 protected:
  static void make(EngineWorld& w, const DeliveryPolicy& policy = kFive) {
    ASSERT_EQ(w.configure("t", policy, true).code, Code::ok);
  }
  static void jump(EngineWorld& w, std::int64_t ns) {
    w.process->wall_offset_ns += ns;
    w.process->poke();
  }
};

TEST_F(Ttl, Q_73_WithoutAChannelAMessageGoesAtItsDeadlineAndTheFirstChannelGetsNothing) {
  EngineWorld w(73);
  make(w);
  ASSERT_EQ(w.publish_and_wait("t", {"m"}), Code::ok);
  w.world.run_for(4'900 * kMillisecond);
  EXPECT_EQ(w.stats().at(0).message_count, 1u);
  EXPECT_EQ(w.stats().at(0).unrouted_depth, 1u);
  w.world.run_for(400 * kMillisecond);
  EXPECT_EQ(w.stats().at(0).message_count, 0u);
  EXPECT_EQ(w.stats().at(0).unrouted_depth, 0u);
  EXPECT_EQ(w.stats().at(0).ttl_discarded_messages, 1u);
  EXPECT_EQ(w.engine().metrics().ttl_discarded_messages, 1u);
  w.restart(true);
  EXPECT_EQ(w.stats().at(0).ttl_discarded_messages, 1u);
  EXPECT_EQ(w.engine().metrics().ttl_discarded_messages, 0u);
  w.subscribe("t", "c", 5);
  w.world.run_for(10 * kSecond);
  EXPECT_TRUE(w.shard().deliveries.empty());
}

TEST_F(Ttl, Q_74_AMessageInFlightAtItsDeadlineIsGone) {
  EngineWorld w(74);
  make(w);
  const ConsumerId consumer = w.subscribe("t", "c", 1);
  ASSERT_EQ(w.publish_and_wait("t", {"m"}), Code::ok);
  ASSERT_TRUE(w.wait_deliveries(1));
  const MessageId id = w.shard().deliveries[0].id;
  w.world.run_for(4'900 * kMillisecond);
  EXPECT_EQ(w.engine().touch(consumer, id, w.now()), Code::ok);  // does not reach beyond the deadline
  EXPECT_EQ(w.engine().in_flight_of(consumer), 1u);
  w.world.run_for(300 * kMillisecond);
  EXPECT_EQ(w.engine().in_flight_of(consumer), 0u);
  EXPECT_EQ(w.engine().finish(consumer, id, w.now()), Code::not_in_flight);
  EXPECT_EQ(w.engine().metrics().in_flight_messages, 0u);
  const TopicStats stats = w.stats().at(0);
  EXPECT_EQ(stats.channels.at(0).depth, 0u);
  EXPECT_EQ(stats.channels.at(0).timeout_count, 0u);
  EXPECT_EQ(w.stats().size(), 1u);  // no dead-letter Topic
  w.world.run_for(20 * kSecond);
  EXPECT_EQ(w.shard().deliveries.size(), 1u);
}

TEST_F(Ttl, AMessagePublishedWhileAPassIsStoredGoesAtItsOwnDeadline) {
  for (std::int64_t ms = 0; ms < 300; ms += 20) {
    EngineWorld w(static_cast<std::uint64_t>(ms));
    make(w);
    w.disk.faults.latency_ns_min = w.disk.faults.latency_ns_max = 20 * kMillisecond;
    ASSERT_EQ(w.publish_and_wait("t", {"first"}), Code::ok);
    w.world.run_for(4'900 * kMillisecond + ms * kMillisecond);
    ASSERT_EQ(w.publish_and_wait("t", {"second"}), Code::ok);
    w.world.run_for(6 * kSecond);
    EXPECT_EQ(w.stats().at(0).message_count, 0u) << ms;
    EXPECT_EQ(w.stats().at(0).ttl_discarded_messages, 2u) << ms;
  }
}

TEST_F(Ttl, AnOperationThatWaitsForAPassGoesOnBehindItAlsoWithoutAnyChannel) {
  for (std::int64_t ms = 0; ms < 300; ms += 10) {
    EngineWorld w(static_cast<std::uint64_t>(ms));
    make(w);
    ASSERT_EQ(w.publish_and_wait("t", {"m"}), Code::ok);
    w.world.run_for(4'900 * kMillisecond + ms * kMillisecond);
    w.disk.faults.latency_ns_min = w.disk.faults.latency_ns_max = 20 * kMillisecond;
    EXPECT_EQ(w.admin(Admin::create_channel, "t", "c"), Code::ok) << ms;
  }
}

TEST_F(Ttl, APolicyUnderWhichTheBacklogHasExpiredIsAnsweredAlsoWithoutAnyChannel) {
  EngineWorld w(1);
  ASSERT_EQ(w.publish_and_wait("t", {"m"}), Code::ok);
  w.world.run_for(6 * kSecond);
  EXPECT_EQ(w.configure("t", kFive).code, Code::ok);
  EXPECT_EQ(w.stats().at(0).message_count, 0u);
}

TEST_F(Ttl, WhatExpiredWhileTheTopicWasPausedIsInNoDepth) {
  EngineWorld w(1);
  make(w);
  ASSERT_EQ(w.admin(Admin::create_channel, "t", "c"), Code::ok);
  ASSERT_EQ(w.admin(Admin::pause_topic, "t"), Code::ok);
  ASSERT_EQ(w.publish_and_wait("t", {"m"}), Code::ok);
  EXPECT_EQ(w.stats().at(0).unrouted_depth, 1u);
  w.world.run_for(5'300 * kMillisecond);
  EXPECT_EQ(w.stats().at(0).unrouted_depth, 0u);
  EXPECT_EQ(w.stats().at(0).channels.at(0).depth, 0u);
}

TEST_F(Ttl, AtTheDeadlineCommandsFailAlsoBeforeThePassRan) {
  EngineWorld w(1);
  make(w);
  const ConsumerId consumer = w.subscribe("t", "c", 3);
  ASSERT_EQ(w.publish_and_wait("t", {"a", "b", "c"}), Code::ok);
  ASSERT_TRUE(w.wait_deliveries(3));
  const std::int64_t expires = w.shard().deliveries[0].expires.ns;
  EXPECT_EQ(expires, w.shard().deliveries[0].timestamp_ns + 5 * kSecond);
  Now late = w.now();
  late.wall.ns = expires;
  EXPECT_EQ(w.engine().finish(consumer, w.shard().deliveries[0].id, late), Code::not_in_flight);
  EXPECT_EQ(w.engine().requeue(consumer, w.shard().deliveries[1].id, 0, late), Code::not_in_flight);
  EXPECT_EQ(w.engine().touch(consumer, w.shard().deliveries[2].id, late), Code::not_in_flight);
  --late.wall.ns;
  EXPECT_EQ(w.engine().finish(consumer, w.shard().deliveries[0].id, late), Code::ok);
}

TEST_F(Ttl, Q_75_RequeuedDeferredFreshAndInFlightCopiesEndInOneDiscard) {
  EngineWorld w(75);
  make(w);
  for (const char* channel : {"fresh", "flight", "requeued", "late"})
    ASSERT_EQ(w.admin(Admin::create_channel, "t", channel), Code::ok);
  ASSERT_EQ(w.admin(Admin::pause_channel, "t", "fresh"), Code::ok);
  const ConsumerId flight = w.subscribe("t", "flight", 1);
  const ConsumerId requeued = w.subscribe("t", "requeued", 1);
  ASSERT_EQ(w.publish_and_wait("t", {"m"}), Code::ok);
  ASSERT_TRUE(w.wait_deliveries(2));
  const MessageId id = w.shard().deliveries[0].id;
  w.engine().set_ready(requeued, 0);
  ASSERT_EQ(w.engine().requeue(requeued, id, 60'000, w.now()), Code::ok);  // beyond the deadline: accepted
  ASSERT_TRUE(w.wait([&] { return w.shard().commands.size() == 1; }));
  ASSERT_EQ(w.publish_and_wait("t", {"deferred"}, 60'000), Code::ok);
  w.world.run_for(5'300 * kMillisecond);
  const TopicStats stats = w.stats().at(0);
  EXPECT_EQ(stats.ttl_discarded_messages, 2u);
  EXPECT_EQ(stats.message_count, 0u);
  for (const ChannelStats& channel : stats.channels) {
    EXPECT_EQ(channel.depth, 0u) << channel.name;
    EXPECT_EQ(channel.in_flight_count + channel.deferred_count, 0u) << channel.name;
    EXPECT_EQ(channel.message_count, 2u) << channel.name;
  }
  EXPECT_EQ(w.engine().finish(flight, id, w.now()), Code::not_in_flight);
  EXPECT_EQ(w.shard().timed_out.size(), 1u);
  w.world.run_for(120 * kSecond);
  EXPECT_EQ(w.shard().deliveries.size(), 2u);
}

// The process dies after the nth step on the disk, for every n, until the discard gets through.
TEST_F(Ttl, Q_76_S_50_ACrashAtEveryStepOfADiscardCountsOnceAndRevivesNothing) {
  int crashes = 0;
  for (int nth = 1, hit = 1; hit == 1; ++nth) {
    EngineWorld w(static_cast<std::uint64_t>(nth));
    make(w);
    ASSERT_EQ(w.admin(Admin::create_channel, "t", "a"), Code::ok);
    ASSERT_EQ(w.admin(Admin::create_channel, "t", "b"), Code::ok);
    ASSERT_EQ(w.publish_and_wait("t", {"1", "2", "3"}), Code::ok);
    w.world.run_for(2 * kSecond);
    ASSERT_EQ(w.publish_and_wait("t", {"4"}), Code::ok);
    int steps = 0;
    hit = 0;
    w.disk.on_step = [&] {
      if (++steps == nth) {
        hit = 1;
        w.process->kill();
      }
    };
    w.world.run_for(4 * kSecond);
    w.disk.on_step = nullptr;
    crashes += hit;
    if (hit == 1) {
      if (nth % 2 == 0) w.disk.power_loss();
      w.process->start();
      ASSERT_TRUE(w.wait([&] { return w.engine().state() != EngineState::opening; }));
      ASSERT_EQ(w.engine().state(), EngineState::open) << nth << " " << w.engine().fault()->message();
    }
    const TopicStats stats = w.stats().at(0);
    EXPECT_EQ(stats.ttl_discarded_messages, 3u) << nth;
    EXPECT_EQ(stats.message_count, 1u) << nth;
    for (const ChannelStats& channel : stats.channels) EXPECT_EQ(channel.depth, 1u) << nth << " " << channel.name;
    w.subscribe("t", "a", 5);
    ASSERT_TRUE(w.wait_deliveries(1)) << nth;
    EXPECT_EQ(w.bodies(), std::vector<std::string>{"4"}) << nth;
  }
  EXPECT_GT(crashes, 3);
}

TEST_F(Ttl, Q_77_ABatchInWhichAMessageExpiresDuringTheReadIsCancelledAsAWhole) {
  EngineOptions options;
  options.entry_cache_bytes = 0;
  EngineWorld w(77, options);
  make(w);
  ASSERT_EQ(w.admin(Admin::create_channel, "t", "c"), Code::ok);
  ASSERT_EQ(w.publish_and_wait("t", {"1"}), Code::ok);
  w.world.run_for(2 * kSecond);
  ASSERT_EQ(w.publish_and_wait("t", {"2", "3"}), Code::ok);
  w.world.run_for(2'900 * kMillisecond);
  w.disk.faults.latency_ns_min = w.disk.faults.latency_ns_max = 300 * kMillisecond;
  const ConsumerId consumer = w.subscribe("t", "c", 0);
  w.engine().set_ready(consumer, 3);
  w.world.run_for(320 * kMillisecond);
  EXPECT_TRUE(w.shard().deliveries.empty());
  w.disk.faults = {};
  ASSERT_TRUE(w.wait_deliveries(2));
  w.world.run_for(kSecond);
  EXPECT_EQ(w.bodies(), (std::vector<std::string>{"2", "3"}));
  for (const Delivery& delivery : w.shard().deliveries) EXPECT_EQ(delivery.attempts, 1u);
}

TEST_F(Ttl, Q_78_WhatExpiredStaysGoneAndARaisedTtlAppliesToWhatDidNot) {
  for (const DeliveryPolicy& later : {DeliveryPolicy{true, 3'600}, DeliveryPolicy{}}) {
    EngineWorld w(78);
    make(w);
    ASSERT_EQ(w.admin(Admin::create_channel, "t", "c"), Code::ok);
    ASSERT_EQ(w.publish_and_wait("t", {"old"}), Code::ok);
    w.world.run_for(6 * kSecond);
    ASSERT_EQ(w.publish_and_wait("t", {"new"}), Code::ok);
    w.world.run_for(2 * kSecond);
    EXPECT_TRUE(w.configure("t", later).changed);
    w.world.run_for(60 * kSecond);
    w.restart();
    w.subscribe("t", "c", 5);
    ASSERT_TRUE(w.wait_deliveries(1));
    EXPECT_EQ(w.bodies(), std::vector<std::string>{"new"});
    EXPECT_EQ(w.stats().at(0).ttl_discarded_messages, 1u);
  }
}

TEST_F(Ttl, ShorteningIsInForceAtTheAnswer) {
  EngineWorld w(2);
  make(w, {});
  ASSERT_EQ(w.admin(Admin::create_channel, "t", "c"), Code::ok);
  ASSERT_EQ(w.publish_and_wait("t", std::vector<std::string>(60'000, "m")), Code::ok);
  ASSERT_EQ(w.publish_and_wait("t", std::vector<std::string>(30'000, "m")), Code::ok);
  w.world.run_for(10 * kSecond);
  ASSERT_EQ(w.publish_and_wait("t", {"young"}), Code::ok);
  EXPECT_TRUE(w.configure("t", kFive).changed);  // two passes of at most 65,536
  EXPECT_EQ(w.engine().metrics().ttl_discarded_messages, 90'000u);
  EXPECT_EQ(w.stats().at(0).message_count, 1u);
  EXPECT_EQ(w.stats().at(0).channels.at(0).depth, 1u);
}

// I-50.
TEST_F(Ttl, Q_80_AClockThatJumpsForwardExpiresForGoodAndOneThatJumpsBackKeepsTheTimestamps) {
  EngineWorld w(80);
  make(w);
  w.subscribe("t", "c", 0);
  ASSERT_EQ(w.publish_and_wait("t", {"old"}), Code::ok);
  jump(w, 24ll * 3'600 * kSecond);
  ASSERT_TRUE(w.wait([&] { return w.engine().metrics().ttl_discarded_messages == 1; }, kSecond));
  ASSERT_EQ(w.publish_and_wait("t", {"tomorrow"}), Code::ok);
  jump(w, -24ll * 3'600 * kSecond);
  ASSERT_EQ(w.publish_and_wait("t", {"today"}), Code::ok);  // takes the newest timestamp: lives a day and five seconds
  w.world.run_for(3'600 * kSecond);
  EXPECT_EQ(w.stats().at(0).ttl_discarded_messages, 1u);
  w.restart();
  w.subscribe("t", "c", 5);
  ASSERT_TRUE(w.wait_deliveries(2));
  EXPECT_EQ(w.bodies(), (std::vector<std::string>{"tomorrow", "today"}));
  EXPECT_EQ(w.shard().deliveries[0].timestamp_ns, w.shard().deliveries[1].timestamp_ns);
}

TEST_F(Ttl, WhatExpiredWhileTheProcessWasDownGoesBeforeTheEngineIsOpen) {
  EngineOptions options;
  options.max_segment_bytes = 16'384;
  EngineWorld w(3, options);
  make(w);
  ASSERT_EQ(w.admin(Admin::create_channel, "t", "c"), Code::ok);
  for (int i = 0; i < 50; ++i) {
    ASSERT_EQ(w.publish_and_wait("t", std::vector<std::string>(40, std::string(50, 'x'))), Code::ok);
    w.world.run_for(20 * kMillisecond);
  }
  w.process->kill();
  w.world.run_for(4'500 * kMillisecond);
  w.process->start();
  ASSERT_TRUE(w.wait([&] { return w.engine().state() == EngineState::open; }));
  const std::uint64_t gone = w.engine().metrics().ttl_discarded_messages;
  EXPECT_GT(gone, 500u);
  EXPECT_LT(gone, 2'000u);
  EXPECT_EQ(gone % 40, 0u);  // whole publishes: one timestamp each
  EXPECT_EQ(w.stats().at(0).message_count, 2'000u - gone);
  EXPECT_EQ(w.stats().at(0).channels.at(0).depth, 2'000u - gone);
}

TEST_F(Ttl, PauseAndRdyZeroDoNotStopExpiryAndCollectionNeedsNoBootstrapWindow) {
  EngineOptions options;
  options.max_segment_bytes = 4'096;
  options.maintenance_startup_delay_seconds = 0;
  EngineWorld w(4, options);
  make(w);
  ASSERT_EQ(w.admin(Admin::create_channel, "t", "c"), Code::ok);
  ASSERT_EQ(w.admin(Admin::pause_topic, "t"), Code::ok);
  for (int i = 0; i < 30; ++i) ASSERT_EQ(w.publish_and_wait("t", {std::string(500, 'x')}), Code::ok);
  w.world.run_for(20 * kSecond);  // far less than the window of 90 s
  EXPECT_EQ(w.stats().at(0).ttl_discarded_messages, 30u);
  EXPECT_EQ(w.stats().at(0).segment_count, 1u);
}

}  // namespace
}  // namespace rq::queue
