// Protective eviction (page 30 section 8, page 20 section 7.2).
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/queue/engine_world.h"

namespace rq::queue {
namespace {

EngineOptions small_segments() {
  EngineOptions options;
  options.max_segment_bytes = 4'096;
  options.maintenance_startup_delay_seconds = 1'000'000;
  return options;
}

void fill(EngineWorld& w, const std::string& topic, int messages) {
  for (int i = 0; i < messages; ++i) ASSERT_EQ(w.publish_and_wait(topic, {std::to_string(i) + std::string(300, 'x')}), Code::ok);
}

// Asks once and waits until it is over.
void evict(EngineWorld& w) {
  w.engine().evict_oldest(w.now());
  w.wait([&] { return w.engine().quiet(); });
}

std::vector<std::string> audits(const EngineWorld& w) {
  std::vector<std::string> found;
  for (const std::string& path : w.disk.files())
    if (path.starts_with("/data/audit/")) found.push_back(path);
  return found;
}

TEST(Eviction, AnOperationThatWaitsForOneGoesOnBehindItAlsoWithoutAnyChannel) {
  for (std::int64_t ms = 0; ms < 400; ms += 20) {
    EngineWorld w(static_cast<std::uint64_t>(ms), small_segments());
    fill(w, "t", 30);
    w.disk.faults.latency_ns_min = w.disk.faults.latency_ns_max = 20 * kMillisecond;
    w.engine().evict_oldest(w.now());
    w.process->poke();
    w.world.run_for(ms * kMillisecond);
    EXPECT_EQ(w.admin(Admin::create_channel, "t", "c"), Code::ok) << ms;
  }
}

TEST(Eviction, S_67_TheOldestSegmentGoesWithAnAuditFileAndEveryFloorBehindIt) {
  EngineWorld w(67, small_segments());
  ASSERT_EQ(w.admin(Admin::create_channel, "t", "a"), Code::ok);
  ASSERT_EQ(w.admin(Admin::create_channel, "t", "b"), Code::ok);
  fill(w, "t", 30);
  const std::uint64_t before = w.stats().at(0).segment_count;
  evict(w);
  const TopicStats stats = w.stats().at(0);
  EXPECT_EQ(stats.segment_count, before - 1);
  const std::uint64_t evicted = w.engine().metrics().protective_evicted_messages;
  EXPECT_GT(evicted, 0u);
  EXPECT_EQ(stats.message_count, 30 - evicted);
  EXPECT_EQ(w.engine().metrics().protective_evictions, 1u);
  ASSERT_EQ(audits(w).size(), 1u);
  const std::string tail = "-74-" + std::string(18, '0') + (evicted < 10 ? "0" : "") + std::to_string(evicted) + ".json";
  EXPECT_TRUE(audits(w)[0].ends_with(tail)) << audits(w)[0];
  const std::string audit = w.disk.durable_content(audits(w)[0]);
  EXPECT_NE(audit.find("\"topic\":\"t\",\"first_position\":1,\"through_position\":" + std::to_string(evicted)),
            std::string::npos);
  EXPECT_NE(audit.find("segment-00000000000000000001.rqlog"), std::string::npos);
  w.restart(true);
  for (const ChannelStats& channel : w.stats().at(0).channels) {
    EXPECT_EQ(channel.ack_cursor, evicted);
    EXPECT_EQ(channel.depth, 30 - evicted);
    EXPECT_EQ(channel.message_count, 30u);
  }
}

// The process dies after the nth step on the disk, for every n, until an eviction gets through (I-46).
TEST(Eviction, Q_72_ACrashAtEveryStepLeavesTheSegmentReadableOrEveryFloorBeyondIt) {
  int crashes = 0;
  for (int nth = 1, hit = 1; hit == 1; ++nth) {
    EngineWorld w(static_cast<std::uint64_t>(nth), small_segments());
    ASSERT_EQ(w.admin(Admin::create_channel, "t", "a"), Code::ok);
    ASSERT_EQ(w.admin(Admin::create_channel, "t", "b"), Code::ok);
    fill(w, "t", 30);
    int steps = 0;
    hit = 0;
    w.disk.on_step = [&] {
      if (++steps != nth) return;
      hit = 1;
      w.process->kill();
    };
    w.engine().evict_oldest(w.now());
    w.process->poke();
    w.world.run_for(kSecond);
    w.disk.on_step = nullptr;
    crashes += hit;
    if (hit == 1) {
      if (nth % 2 == 0) w.disk.power_loss();
      w.process->start();
      ASSERT_TRUE(w.wait([&] { return w.engine().state() != EngineState::opening; }));
      ASSERT_EQ(w.engine().state(), EngineState::open) << nth << " " << w.engine().fault()->message();
    }
    const TopicStats stats = w.stats().at(0);
    const std::uint64_t gone = 30 - stats.message_count;
    EXPECT_TRUE(gone == 0 || audits(w).size() == 1) << nth;
    for (const ChannelStats& channel : stats.channels) {
      EXPECT_GE(channel.ack_cursor, gone) << nth;
      EXPECT_EQ(channel.depth, 30 - channel.ack_cursor) << nth;  // what is there is readable
    }
    w.subscribe("t", "a", 100);
    ASSERT_TRUE(w.wait_deliveries(stats.channels.at(0).depth)) << nth;
  }
  EXPECT_GT(crashes, 5);
}

TEST(Eviction, Q_72_TheTokenOfAnEvictedMessageIsStale) {
  EngineWorld w(72, small_segments());
  const ConsumerId consumer = w.subscribe("t", "c", 1);
  fill(w, "t", 30);
  ASSERT_TRUE(w.wait_deliveries(1));
  evict(w);
  EXPECT_EQ(w.engine().finish(consumer, w.shard().deliveries[0].id, w.now()), Code::not_in_flight);
  const std::uint64_t evicted = w.engine().metrics().protective_evicted_messages;
  ASSERT_TRUE(w.wait_deliveries(2));
  EXPECT_EQ(w.bodies()[1].substr(0, w.bodies()[1].find('x')), std::to_string(evicted));
}

TEST(Eviction, TheTopicWithTheOldestMessageLosesItsActiveTailWhenNothingIsSealed) {
  EngineWorld w(1, small_segments());
  fill(w, "old", 2);
  w.world.run_for(kSecond);
  fill(w, "young", 30);
  evict(w);
  EXPECT_EQ(w.stats().at(0).name, "old");
  EXPECT_EQ(w.stats().at(0).message_count, 0u);
  EXPECT_EQ(w.stats().at(0).unrouted_depth, 0u);
  EXPECT_EQ(w.stats().at(1).message_count, 30u);
  w.restart(true);
  ASSERT_EQ(w.publish_and_wait("old", {"next"}), Code::ok);
  w.subscribe("old", "c", 5);
  ASSERT_TRUE(w.wait_deliveries(1));
  EXPECT_EQ(w.bodies(), std::vector<std::string>{"next"});
  EXPECT_EQ(w.stats().at(0).published_count, 3u);
}

TEST(Eviction, Q_71_ASegmentThatIsBeingReadIsLeftAloneThisTime) {
  EngineOptions options = small_segments();
  options.entry_cache_bytes = 0;
  EngineWorld w(71, options);
  ASSERT_EQ(w.admin(Admin::create_channel, "t", "c"), Code::ok);
  fill(w, "t", 30);
  w.world.run_for(kSecond);
  fill(w, "u", 30);
  const ConsumerId consumer = w.subscribe("t", "c", 0);
  w.disk.faults.latency_ns_min = w.disk.faults.latency_ns_max = 300 * kMillisecond;
  w.engine().set_ready(consumer, 1);
  w.world.run_for(20 * kMillisecond);
  w.engine().evict_oldest(w.now());
  w.disk.faults = {};
  w.world.run_for(2 * kSecond);
  EXPECT_EQ(w.engine().metrics().protective_evictions, 0u);  // and no other Topic is tried
  evict(w);
  EXPECT_EQ(w.engine().metrics().protective_evictions, 1u);
}

}  // namespace
}  // namespace rq::queue
