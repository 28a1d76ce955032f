// Ack modes, id blocks over restarts, remains of deletions: cases of pages 20 and 30 that the Engine decides.
#include <gtest/gtest.h>

#include <functional>

#include "core/queue/channel_lane.h"
#include "tests/queue/engine_world.h"

namespace rq::queue {
namespace {

EngineOptions mode(AckMode ack_mode) {
  EngineOptions options;
  options.ack_mode = ack_mode;
  return options;
}

TEST(EngineModes, S_15_AfterAKillTheNextIdIsTheEndOfTheFirstBlockAndNeverARepeat) {
  EngineWorld w(15);
  w.subscribe("t", "c", 5);
  ASSERT_EQ(w.publish_and_wait("t", {"a"}), Code::ok);
  ASSERT_TRUE(w.wait_deliveries(1));
  EXPECT_EQ(w.shard().deliveries[0].id, 1ull << 48 | 1);
  w.finish_all();
  w.restart();
  ASSERT_EQ(w.publish_and_wait("t", {"b"}), Code::ok);
  w.subscribe("t", "c", 5);
  ASSERT_TRUE(w.wait_deliveries(1));
  EXPECT_EQ(w.shard().deliveries[0].id, 1ull << 48 | 1'048'577);
}

TEST(EngineModes, S_43_ATopicThatIsCreatedOverRemainsOfADeletionStartsEmptyAndReopens) {
  EngineWorld w(43);
  ASSERT_EQ(w.publish_and_wait("t", {"old", "older"}), Code::ok);
  ASSERT_EQ(w.admin(Admin::create_channel, "t", "stale"), Code::ok);
  w.process->kill();
  w.disk.remove("data/topics/74/manifest");  // as a recursive removal leaves it half-way
  w.process->start();
  ASSERT_TRUE(w.wait([&] { return w.engine().state() == EngineState::open; }));
  EXPECT_TRUE(w.stats().empty());
  ASSERT_EQ(w.publish_and_wait("t", {"new"}), Code::ok);
  EXPECT_TRUE(w.stats().at(0).channels.empty());
  w.restart(true);
  ASSERT_EQ(w.engine().state(), EngineState::open);
  w.subscribe("t", "c", 5);
  ASSERT_TRUE(w.wait_deliveries(1));
  w.world.run_for(kSecond);
  EXPECT_EQ(w.bodies(), std::vector<std::string>{"new"});
}

TEST(EngineModes, S_60_ACheckpointAfter8192CommandsEmptiesTheWalAndTheFloorSurvivesAKill) {
  EngineWorld w(60);
  w.shard().check_invariants = false;
  for (int i = 0; i < 17; ++i) ASSERT_EQ(w.publish_and_wait("t", std::vector<std::string>(482, "m")), Code::ok);
  w.subscribe("t", "c", 2500);
  std::size_t done = 0;
  while (done < 8'192) {
    ASSERT_TRUE(w.wait([&] { return !w.shard().deliveries.empty(); }));
    if (w.shard().deliveries.size() > 8'192 - done) w.shard().deliveries.resize(8'192 - done);
    done += w.shard().deliveries.size();
    w.finish_all();
  }
  ASSERT_TRUE(w.wait([&] { return w.engine().quiet(); }));
  EXPECT_EQ(w.disk.content("data/topics/74/channels/63.wal").size(), 0u);
  w.restart();
  EXPECT_EQ(w.stats().at(0).channels.at(0).ack_cursor, 8'192u);
}

TEST(EngineModes, CommandsGoOnWhileTheFileOfACheckpointIsCreatedAndTheWalStaysBounded) {
  EngineWorld w(61);
  w.shard().check_invariants = false;
  for (int i = 0; i < 28; ++i) ASSERT_EQ(w.publish_and_wait("t", std::vector<std::string>(500, "m")), Code::ok);
  const ConsumerId consumer = w.subscribe("t", "c", 1'000);
  const auto wal_commands = [&] { return w.disk.content("data/topics/74/channels/63.wal").size() / 29; };
  const auto consume_while = [&](const std::function<bool()>& wanted) {
    while (wanted() && w.wait([&] { return !w.shard().deliveries.empty(); })) w.finish_all();
  };
  consume_while([&] { return wal_commands() < 7'000; });
  w.disk.faults.no_handles = 1'024;
  consume_while([] { return true; });  // until the consumer has no room left
  EXPECT_EQ(wal_commands(), ChannelLane::kCommandsMax);
  EXPECT_EQ(w.engine().in_flight_of(consumer), 1'000u);
  w.disk.faults.no_handles = 0;
  consume_while([&] { return w.stats().at(0).channels.at(0).depth > 0; });
  ASSERT_TRUE(w.wait([&] { return w.engine().quiet() && w.engine().in_flight_of(consumer) == 0; }));
  EXPECT_EQ(wal_commands(), 14'000u - ChannelLane::kCommandsMax);
  w.restart();
  EXPECT_EQ(w.stats().at(0).channels.at(0).ack_cursor, 14'000u);
}

TEST(EngineModes, Q_13_WriteAckAnswersAtOnceAndDeliversAfterTheBackgroundSync) {
  EngineWorld w(13, mode(AckMode::write_ack));
  w.subscribe("t", "c", 5);
  ASSERT_TRUE(w.wait([&] { return w.engine().quiet(); }));
  const Instant start = w.world.now();
  ASSERT_EQ(w.publish_and_wait("t", {"a"}), Code::ok);
  EXPECT_LT(w.world.now() - start, 10 * kMillisecond);
  EXPECT_TRUE(w.shard().deliveries.empty());
  ASSERT_TRUE(w.wait_deliveries(1));
  EXPECT_GE(w.world.now() - start, 10 * kMillisecond);
  EXPECT_LT(w.world.now() - start, 20 * kMillisecond);
}

// Section 2.5: answered after the write. A killed process leaves what it has written.
TEST(EngineModes, ARelaxedAnswerComesAfterTheWriteSoThatAKillLosesNothing) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    EngineOptions options = mode(seed % 2 == 0 ? AckMode::write_ack : AckMode::nsq_relaxed);
    options.relaxed_sync_interval_ms = 60'000;
    EngineWorld w(seed, options);
    w.disk.faults.latency_ns_min = 5 * kMillisecond;
    w.disk.faults.latency_ns_max = 10 * kMillisecond;
    ASSERT_EQ(w.publish_and_wait("t", {"first"}), Code::ok);
    const Instant start = w.world.now();
    ASSERT_EQ(w.publish_and_wait("t", {"kept"}), Code::ok);
    EXPECT_GE(w.world.now() - start, 5 * kMillisecond);
    w.restart();
    EXPECT_EQ(w.stats().at(0).message_count, 2u);
  }
}

// Also S-39: the channel that had finished the lost message gets the new one; neither id nor position is used again.
TEST(EngineModes, Q_14_S_39_ALostRelaxedTailThatWasFinishedIsAbsentAndItsPositionNeverReused) {
  int lost = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    EngineOptions options = mode(AckMode::nsq_relaxed);
    options.relaxed_sync_interval_ms = 60'000;
    EngineWorld w(seed, options);
    w.subscribe("t", "c", 5);
    ASSERT_EQ(w.publish_and_wait("t", {"gone"}), Code::ok);
    ASSERT_TRUE(w.wait_deliveries(1));
    const MessageId first = w.shard().deliveries[0].id;
    w.finish_all();  // the FIN is durable, the message is not
    w.restart(true);
    ASSERT_EQ(w.engine().state(), EngineState::open);
    const TopicStats stats = w.stats().at(0);
    EXPECT_EQ(stats.channels.at(0).depth, 0u);
    EXPECT_EQ(stats.published_count, 1u);  // the position is taken either way
    lost += stats.message_count == 0 ? 1 : 0;
    ASSERT_EQ(w.publish_and_wait("t", {"new"}), Code::ok);
    w.subscribe("t", "c", 5);
    ASSERT_TRUE(w.wait_deliveries(1));
    EXPECT_EQ(w.bodies(), std::vector<std::string>{"new"});
    EXPECT_GT(w.shard().deliveries[0].id, first);
    EXPECT_EQ(w.stats().at(0).published_count, 1u);  // the new one is not durable yet (D-25)
  }
  EXPECT_GT(lost, 0);
}

TEST(EngineModes, Q_15_TheRelaxedSyncStartsAtTheCountOrAtTheTimerAndTheLagReturnsToZero) {
  EngineWorld w(15, mode(AckMode::nsq_relaxed));
  ASSERT_EQ(w.publish_and_wait("t", {"first"}), Code::ok);
  ASSERT_TRUE(w.wait([&] { return w.stats().at(0).unsynced_messages == 0; }));
  Instant start = w.world.now();
  std::uint64_t barriers = w.engine().metrics().barriers;
  w.publish("t", std::vector<std::string>(2'500, "m"));
  ASSERT_TRUE(w.wait([&] { return w.engine().metrics().barriers > barriers; }));
  EXPECT_LT(w.world.now() - start, 5 * kMillisecond);  // at the count, not at the timer
  ASSERT_TRUE(w.wait([&] { return w.stats().at(0).unsynced_messages == 0; }));
  start = w.world.now();
  barriers = w.engine().metrics().barriers;
  ASSERT_EQ(w.publish_and_wait("t", {"alone"}), Code::ok);
  ASSERT_TRUE(w.wait([&] { return w.engine().metrics().barriers > barriers; }));
  EXPECT_GE(w.world.now() - start, 10 * kMillisecond);
  ASSERT_TRUE(w.wait([&] { return w.stats().at(0).unsynced_messages == 0; }));
  EXPECT_EQ(w.stats().at(0).sync_lag_ms, 0u);
  EXPECT_LT(w.world.now() - start, 20 * kMillisecond);
}

TEST(EngineModes, WhatComesAfterABarrierForTheCountHasAnIntervalOfItsOwn) {
  EngineWorld w(18, mode(AckMode::write_ack));
  ASSERT_EQ(w.publish_and_wait("t", {"first"}), Code::ok);
  ASSERT_TRUE(w.wait([&] { return w.stats().at(0).unsynced_messages == 0; }));
  const Instant start = w.world.now();
  const std::uint64_t barriers = w.engine().metrics().barriers;
  w.publish("t", std::vector<std::string>(2'500, "m"));
  w.world.run_for(5 * kMillisecond);
  ASSERT_EQ(w.engine().metrics().barriers, barriers + 1);
  w.publish("t", {"alone"});
  w.world.run_for(start + 14 * kMillisecond - w.world.now());
  EXPECT_EQ(w.engine().metrics().barriers, barriers + 1);
  w.world.run_for(start + 16 * kMillisecond - w.world.now());
  EXPECT_EQ(w.engine().metrics().barriers, barriers + 2);
}

TEST(EngineModes, EveryRelaxedTopicIsSyncedInItsTimeAndOneThatGoesIsForgotten) {
  EngineWorld w(19, mode(AckMode::write_ack));
  constexpr int kTopics = 40;
  for (int i = 0; i < kTopics; ++i) ASSERT_EQ(w.publish_and_wait("t" + std::to_string(i), {"first"}), Code::ok);
  ASSERT_TRUE(w.wait([&] { return w.engine().quiet(); }));
  w.world.run_for(kSecond);
  for (int i = 0; i < kTopics; ++i) {
    w.publish("t" + std::to_string(i), {"m"});
    w.world.run_for(100 * kMicrosecond);
  }
  w.ask(Admin::delete_topic, "t0");
  w.world.run_for(20 * kMillisecond);
  const auto stats = w.stats();
  EXPECT_EQ(stats.size(), kTopics - 1u);
  for (const TopicStats& topic : stats) EXPECT_EQ(topic.unsynced_messages, 0u) << topic.name;
}

// The interval counts from the oldest message that no barrier holds, a running one included.
TEST(EngineModes, ARelaxedTopicUnderConstantLoadSyncsOncePerInterval) {
  EngineWorld w(16, mode(AckMode::nsq_relaxed));
  ASSERT_EQ(w.publish_and_wait("t", {"first"}), Code::ok);
  ASSERT_TRUE(w.wait([&] { return w.stats().at(0).unsynced_messages == 0; }));
  const std::uint64_t barriers = w.engine().metrics().barriers;
  const Instant start = w.world.now();
  std::uint64_t published = 0;
  while (w.world.now() - start < 200 * kMillisecond) {
    ASSERT_EQ(w.publish_and_wait("t", {"m"}), Code::ok);
    ++published;
  }
  EXPECT_GT(published, 200u);
  EXPECT_GE(w.engine().metrics().barriers - barriers, 10u);
  EXPECT_LE(w.engine().metrics().barriers - barriers, 21u);
}

// What comes while a barrier runs is written with the next one: one append, however many publishes.
TEST(EngineModes, PublishesDuringABarrierAreOneAppend) {
  EngineWorld w(17, mode(AckMode::durable));
  w.disk.faults.latency_ns_min = w.disk.faults.latency_ns_max = 5 * kMillisecond;
  ASSERT_EQ(w.publish_and_wait("t", {"first"}), Code::ok);
  const std::uint64_t appends = w.engine().metrics().appends, barriers = w.engine().metrics().barriers;
  w.publish("t", {"a"});
  ASSERT_TRUE(w.wait([&] { return w.engine().metrics().barriers == barriers + 1; }));
  EXPECT_EQ(w.engine().metrics().appends, appends + 1);
  for (int i = 0; i < 20; ++i) {
    w.publish("t", {"b"});
    w.world.run_for(50 * kMicrosecond);
  }
  ASSERT_EQ(w.engine().metrics().barriers, barriers + 1);
  ASSERT_EQ(w.publish_and_wait("t", {"last"}), Code::ok);
  EXPECT_EQ(w.engine().metrics().barriers, barriers + 2);
  EXPECT_EQ(w.engine().metrics().appends, appends + 2);
}

}  // namespace
}  // namespace rq::queue
