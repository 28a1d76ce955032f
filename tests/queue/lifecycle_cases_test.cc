// Numbered cases of page 30 about Channels over their life: disconnects, pause, empty, checkpoints, counters, names used again.
#include <gtest/gtest.h>

#include <set>

#include "tests/queue/engine_world.h"

namespace rq::queue {
namespace {

const std::string kWal = "data/topics/74/channels/63.wal";  // of Channel "c" of Topic "t"
const std::string kCheckpoint = "data/topics/74/channels/63.checkpoint";

void slow_disk(EngineWorld& w, std::int64_t ms) {
  w.disk.faults.latency_ns_min = w.disk.faults.latency_ns_max = ms * kMillisecond;
}

ChannelStats channel(EngineWorld& w) { return w.stats().at(0).channels.at(0); }

// The two commands that the connection had sent but nobody had taken are gone with it.
TEST(LifecycleCases, Q_43_ADisconnectWithThreeFinsOnTheirWayFinishesThemAndReleasesTheOtherSevenOnce) {
  EngineWorld w(43);
  for (int i = 0; i < 10; ++i) ASSERT_EQ(w.publish_and_wait("t", {"m" + std::to_string(i)}), Code::ok);
  const ConsumerId gone = w.subscribe("t", "c", 10);
  ASSERT_TRUE(w.wait_deliveries(10));
  const std::vector<Delivery> held = w.shard().deliveries;
  w.shard().deliveries.clear();
  slow_disk(w, 20);
  for (std::size_t i = 0; i < 3; ++i) ASSERT_EQ(w.engine().finish(gone, held[i].id, w.now()), Code::ok);
  w.process->poke();
  w.world.run_for(5 * kMillisecond);  // their barrier runs
  EXPECT_TRUE(w.shard().commands.empty());
  w.engine().unsubscribe(gone, w.now());
  w.process->poke();
  w.subscribe("t", "c", 50);
  ASSERT_TRUE(w.wait_deliveries(7));
  w.world.run_for(5 * kSecond);
  EXPECT_EQ(w.bodies(), (std::vector<std::string>{"m3", "m4", "m5", "m6", "m7", "m8", "m9"}));
  for (const Delivery& delivery : w.shard().deliveries) EXPECT_EQ(delivery.attempts, 2);
  EXPECT_EQ(channel(w).ack_cursor, 3u);
  EXPECT_EQ(channel(w).in_flight_count, 7u);
}

TEST(LifecycleCases, Q_47_AnEmptyWithAPublishOutstandingTakesWhatIsWrittenAndLeavesWhatFollows) {
  EngineWorld w(47);
  ASSERT_EQ(w.admin(Admin::create_channel, "t", "c"), Code::ok);
  ASSERT_EQ(w.publish_and_wait("t", {"old"}), Code::ok);
  slow_disk(w, 20);
  const std::uint64_t outstanding = w.publish("t", {"written"});
  w.world.run_for(3 * kMillisecond);
  ASSERT_FALSE(w.shard().published.contains(outstanding));
  w.engine().admin(Admin::empty_channel, "t", "c", static_cast<WaiterId>(9'000), w.now());
  w.process->poke();
  while (!w.shard().admin.contains(9'000)) {
    ASSERT_LE(channel(w).depth, 2u);  // negative would be huge
    w.world.run_for(kMillisecond);
  }
  EXPECT_EQ(w.shard().admin[9'000].code, Code::ok);
  ASSERT_EQ(w.publish_and_wait("t", {"later"}), Code::ok);
  EXPECT_EQ(channel(w).depth, 1u);
  w.subscribe("t", "c", 10);
  ASSERT_TRUE(w.wait_deliveries(1));
  w.world.run_for(kSecond);
  EXPECT_EQ(w.bodies(), std::vector<std::string>{"later"});
}

TEST(LifecycleCases, Q_48_APausedTopicSettlesWhatIsInFlightAndHandsOutNothingNew) {
  EngineWorld w(48);
  for (int i = 0; i < 5; ++i) ASSERT_EQ(w.publish_and_wait("t", {"m" + std::to_string(i)}), Code::ok);
  SubscribeOptions options;
  options.message_timeout_ms = 5'000;
  const ConsumerId consumer = w.subscribe("t", "c", 3, options);
  ASSERT_TRUE(w.wait_deliveries(3));
  const std::vector<Delivery> held = w.shard().deliveries;
  w.shard().deliveries.clear();
  ASSERT_EQ(w.admin(Admin::pause_topic, "t"), Code::ok);
  EXPECT_EQ(w.engine().finish(consumer, held[0].id, w.now()), Code::ok);
  EXPECT_EQ(w.engine().requeue(consumer, held[1].id, 0, w.now()), Code::ok);
  w.process->poke();
  ASSERT_TRUE(w.wait([&] { return w.shard().commands.size() == 2 && w.shard().timed_out.size() == 1; }));
  w.world.run_for(20 * kSecond);
  EXPECT_TRUE(w.shard().deliveries.empty());  // neither fresh ones nor the two that came back
  EXPECT_EQ(channel(w).depth, 4u);
  w.restart(true);
  EXPECT_TRUE(w.stats().at(0).paused);
  w.subscribe("t", "c", 10);
  w.world.run_for(5 * kSecond);
  EXPECT_TRUE(w.shard().deliveries.empty());
  ASSERT_EQ(w.admin(Admin::unpause_topic, "t"), Code::ok);
  EXPECT_TRUE(w.wait_deliveries(4));
}

// D-17: FINs act at once, so the 257th is under way as well; what counts is that none fails and all end.
TEST(LifecycleCases, Q_49_Of257FinsOnOneConnectionNoneFails) {
  EngineWorld w(49);
  ASSERT_EQ(w.publish_and_wait("t", std::vector<std::string>(300, "m")), Code::ok);
  const ConsumerId consumer = w.subscribe("t", "c", 257);
  ASSERT_TRUE(w.wait_deliveries(257));
  const std::vector<Delivery> held = w.shard().deliveries;
  slow_disk(w, 10);
  for (const Delivery& delivery : held) ASSERT_EQ(w.engine().finish(consumer, delivery.id, w.now()), Code::ok);
  w.process->poke();
  ASSERT_TRUE(w.wait([&] { return w.shard().commands.size() == 257; }));
  for (const CommandDone& done : w.shard().commands) EXPECT_EQ(done.outcome.code, Code::ok);
  EXPECT_EQ(channel(w).ack_cursor, 257u);
}

// Finishes all but one of 8,192; the last FIN makes the checkpoint due.
void finish_but_one(EngineWorld& w, ConsumerId& consumer, MessageId& last) {
  w.shard().check_invariants = false;
  for (int i = 0; i < 16; ++i) ASSERT_EQ(w.publish_and_wait("t", std::vector<std::string>(512, "m")), Code::ok);
  consumer = w.subscribe("t", "c", 2'500);
  for (std::size_t done = 0; done < 8'191;) {
    ASSERT_TRUE(w.wait([&] { return !w.shard().deliveries.empty(); }));
    if (done + w.shard().deliveries.size() == 8'192) {
      last = w.shard().deliveries.back().id;
      w.shard().deliveries.pop_back();
    }
    done += w.shard().deliveries.size();
    w.finish_all();
  }
  ASSERT_TRUE(w.wait([&] { return w.engine().quiet(); }));
}

TEST(LifecycleCases, Q_50_ACrashAtEachStepOfACheckpointRecoversTheSameState) {
  int steps = 0;
  bool cut = false;
  for (int crash_at = 0; crash_at == 0 || crash_at <= steps; ++crash_at) {
    EngineWorld w(50);
    ConsumerId consumer = ConsumerId::none;
    MessageId last = 0;
    finish_but_one(w, consumer, last);
    ASSERT_GT(w.disk.content(kWal).size(), 8'191u * 29 - 1);
    int seen = 0;
    bool dead = false;
    w.disk.on_step = [&] {
      if (++seen == crash_at) w.world.at(0, [&] { dead = true, w.process->kill(); });
    };
    ASSERT_EQ(w.engine().finish(consumer, last, w.now()), Code::ok);
    w.process->poke();
    w.world.run_for(5 * kSecond);
    w.disk.on_step = nullptr;
    if (crash_at == 0) {
      steps = seen;
      ASSERT_GE(steps, 3);
      cut = w.disk.content(kWal).empty();
    }
    ASSERT_EQ(dead, crash_at > 0);
    w.restart(crash_at % 2 == 0);
    ASSERT_EQ(w.engine().state(), EngineState::open) << crash_at;
    EXPECT_EQ(channel(w).ack_cursor, 8'192u) << crash_at;
    EXPECT_EQ(channel(w).depth, 0u) << crash_at;
    EXPECT_EQ(channel(w).message_count, 8'192u) << crash_at;
  }
  EXPECT_TRUE(cut);
}

TEST(LifecycleCases, Q_51_ATornLastWalRecordIsCutAndAFlippedBitInACompleteOneRefusesTheStart) {
  EngineWorld w(51);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(w.publish_and_wait("t", {"m"}), Code::ok);
  w.subscribe("t", "c", 2);
  ASSERT_TRUE(w.wait_deliveries(2));
  w.finish_all();
  w.process->kill();
  const std::string wal = w.disk.content(kWal);
  ASSERT_EQ(wal.size(), 58u);
  w.disk.put(kWal, wal.substr(0, 50));
  w.process->start();
  ASSERT_TRUE(w.wait([&] { return w.engine().state() == EngineState::open; }));
  EXPECT_EQ(channel(w).ack_cursor, 1u);
  EXPECT_EQ(w.disk.content(kWal), wal.substr(0, 29));
  w.process->kill();
  std::string damaged = wal;
  damaged.back() = static_cast<char>(damaged.back() ^ 1);
  w.disk.put(kWal, damaged);
  w.process->start();
  ASSERT_TRUE(w.wait([&] { return w.engine().state() == EngineState::faulted; }));
  EXPECT_EQ(w.engine().fault()->file, "topics/74/channels/63.wal");
  EXPECT_EQ(w.engine().fault()->offset, 29u);
}

TEST(LifecycleCases, Q_52_AtLevelTwoATimeoutCountThatWasReadIsNeverTakenBack) {
  EngineOptions options;
  options.feature_level = 2;
  EngineWorld w(52, options);
  ASSERT_EQ(w.publish_and_wait("t", {"m"}), Code::ok);
  SubscribeOptions impatient;
  impatient.message_timeout_ms = 1'000;
  w.subscribe("t", "c", 1, impatient);
  std::uint64_t read = 0;
  for (std::uint64_t count = 1; count <= 5; ++count) {
    ASSERT_TRUE(w.wait([&] { return w.shard().timed_out.size() >= count; }));
    read = channel(w).timeout_count;
    EXPECT_GE(read + 1, count);  // the last one may not be durable yet
  }
  ASSERT_TRUE(w.wait([&] { return (read = channel(w).timeout_count) >= 5; }));
  w.restart(true);
  EXPECT_GE(channel(w).timeout_count, read);
}

// Random publishes, deliveries, answers, empties, restarts and collections against a set of unfinished positions.
TEST(LifecycleCases, Q_53_MessageCountNeverFallsAndDepthIsWhatIsUnfinished) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    EngineOptions options;
    options.max_segment_bytes = 600;
    options.maintenance_startup_delay_seconds = 0;
    options.bootstrap_retention_seconds = 1;
    EngineWorld w(seed, options);
    Random draws = w.world.random("ops");
    ASSERT_EQ(w.admin(Admin::create_channel, "t", "c"), Code::ok);
    std::set<std::uint64_t> unfinished;  // positions; a body begins with its own
    std::uint64_t published = 0, count_before = 0;
    SubscribeOptions patient;
    patient.message_timeout_ms = 900'000;
    ConsumerId consumer = w.subscribe("t", "c", 3, patient);
    for (int op = 0; op < 60; ++op) {
      const std::uint64_t draw = draws.below(10);
      if (draw < 4) {
        ++published;
        ASSERT_EQ(w.publish_and_wait("t", {std::to_string(published) + " " + std::string(draws.below(120), 'b')}), Code::ok);
        unfinished.insert(published);
      } else if (draw < 7) {
        w.world.run_for(10 * kMillisecond);
        std::vector<Delivery> taken;
        taken.swap(w.shard().deliveries);
        for (const Delivery& delivery : taken) {
          const std::size_t before = w.shard().commands.size();
          if (draws.below(4) == 0) {
            ASSERT_EQ(w.engine().requeue(consumer, delivery.id, 0, w.now()), Code::ok);
          } else {
            ASSERT_EQ(w.engine().finish(consumer, delivery.id, w.now()), Code::ok);
            ASSERT_EQ(unfinished.erase(std::stoull(std::string(text_of(delivery.body.bytes())))), 1u);
          }
          ASSERT_TRUE(w.wait([&] { return w.shard().commands.size() > before; }));
        }
      } else if (draw == 7) {
        ASSERT_EQ(w.admin(Admin::empty_channel, "t", "c"), Code::ok);
        w.shard().deliveries.clear();
        unfinished.clear();
      } else if (draw == 8) {
        w.world.run_for(6 * kSecond);  // a collection
      } else {
        w.restart(draws.below(2) == 0);
        ASSERT_EQ(w.engine().state(), EngineState::open);
        consumer = w.subscribe("t", "c", 3, patient);
      }
      const ChannelStats stats = channel(w);
      ASSERT_EQ(stats.depth, unfinished.size()) << "seed " << seed << " op " << op << " draw " << draw;
      ASSERT_GE(stats.message_count, count_before) << "seed " << seed << " op " << op;
      count_before = stats.message_count;
    }
  }
}

TEST(LifecycleCases, Q_89_ASubscriberThatComesAsTheLastOneLeavesGetsEverythingPublishedAfterItsOk) {
  for (const bool leave_first : {true, false}) {
    for (std::int64_t pause_us = 0; pause_us < 400; pause_us += 100) {
      EngineWorld w(89);
      const ConsumerId last = w.subscribe("t", "e#ephemeral", 5);
      if (leave_first) w.engine().unsubscribe(last, w.now());
      w.engine().subscribe("t", "e#ephemeral", {}, static_cast<WaiterId>(7'000), w.now());
      w.process->poke();
      w.world.run_for(pause_us * kMicrosecond);
      if (!leave_first) w.engine().unsubscribe(last, w.now());
      w.process->poke();
      ASSERT_TRUE(w.wait([&] { return w.shard().subscribed.contains(7'000); }));
      ASSERT_TRUE(w.shard().subscribed[7'000].outcome.ok());
      const std::uint64_t first = w.publish("t", {"a"});
      ASSERT_EQ(w.publish_and_wait("t", {"b"}), Code::ok);
      ASSERT_TRUE(w.shard().published.contains(first));
      w.engine().set_ready(w.shard().subscribed[7'000].consumer, 10);
      ASSERT_TRUE(w.wait_deliveries(2)) << leave_first << " " << pause_us;
      EXPECT_EQ(w.bodies(), (std::vector<std::string>{"a", "b"}));
    }
  }
}

// What --salvage has set aside, and a directory that is nobody's: no storage fault, and the name is free.
TEST(LifecycleCases, ATopicWithStrangersInItsDirectoryIsDeletedAndMadeAgain) {
  EngineWorld w(1);
  ASSERT_EQ(w.admin(Admin::create_channel, "t", "c"), Code::ok);
  ASSERT_EQ(w.publish_and_wait("t", {"old"}), Code::ok);
  w.disk.put("data/topics/74/manifest.salvage", "kept");
  w.disk.put("data/topics/74/segments/segment-00000000000000000001.rqlog.salvage-9", "kept");
  w.disk.put("data/topics/74/channels/of-somebody/file", "");
  EXPECT_EQ(w.admin(Admin::delete_topic, "t"), Code::ok);
  EXPECT_EQ(w.engine().state(), EngineState::open);
  EXPECT_FALSE(w.disk.exists("data/topics/74/manifest"));
  ASSERT_EQ(w.publish_and_wait("t", {"new"}), Code::ok);
  w.restart(true);
  ASSERT_EQ(w.engine().state(), EngineState::open);
  w.subscribe("t", "d", 10);
  EXPECT_TRUE(w.wait_deliveries(1));
  EXPECT_EQ(w.bodies(), std::vector<std::string>{"new"});
}

TEST(LifecycleCases, DeletedMadeAndDeletedAgainInOneTurn) {
  EngineWorld w(1);
  ASSERT_EQ(w.publish_and_wait("t", {"old"}), Code::ok);
  w.ask(Admin::delete_topic, "t");
  const std::uint64_t made = w.ask(Admin::create_topic, "t");
  const std::uint64_t again = w.ask(Admin::delete_topic, "t");
  const std::uint64_t third = w.ask(Admin::delete_topic, "t");
  ASSERT_TRUE(w.wait([&] { return w.shard().admin.contains(third); }));
  EXPECT_EQ(w.shard().admin[made].code, Code::ok);
  EXPECT_EQ(w.shard().admin[again].code, Code::ok);
  EXPECT_EQ(w.shard().admin[third].code, Code::topic_not_found);
  EXPECT_TRUE(w.stats().empty());
}

TEST(LifecycleCases, Q_93_AnIdOfADeletedTopicMeansNothingToItsSuccessor) {
  EngineWorld w(93);
  ASSERT_EQ(w.publish_and_wait("t", {"old"}), Code::ok);
  const ConsumerId holder = w.subscribe("t", "c", 1);
  ASSERT_TRUE(w.wait_deliveries(1));
  const MessageId held = w.shard().deliveries[0].id;
  w.shard().deliveries.clear();
  ASSERT_EQ(w.admin(Admin::delete_topic, "t"), Code::ok);
  ASSERT_EQ(w.publish_and_wait("t", {"new"}), Code::ok);
  EXPECT_EQ(w.engine().finish(holder, held, w.now()), Code::not_in_flight);
  const ConsumerId next = w.subscribe("t", "c", 1);
  ASSERT_TRUE(w.wait_deliveries(1));
  EXPECT_NE(w.shard().deliveries[0].id, held);
  EXPECT_EQ(w.engine().finish(next, held, w.now()), Code::not_in_flight);
  EXPECT_EQ(w.engine().finish(holder, w.shard().deliveries[0].id, w.now()), Code::not_in_flight);
  const TopicStats stats = w.stats().at(0);
  EXPECT_EQ(stats.published_count, 1u);
  EXPECT_EQ(stats.channels.at(0).depth, 1u);
  EXPECT_EQ(stats.channels.at(0).in_flight_count, 1u);
  EXPECT_EQ(stats.channels.at(0).ack_cursor, 0u);
}

}  // namespace
}  // namespace rq::queue
