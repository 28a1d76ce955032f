// Ephemeral Topics and the bound of ephemeral Channels (D-21, D-47), through the Engine on the simulated disk.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <deque>
#include <map>
#include <set>

#include "tests/queue/engine_world.h"

namespace rq::queue {
namespace {

constexpr std::string_view kTopic = "t#ephemeral";

EngineOptions with_queue(std::uint64_t messages, std::uint64_t bytes = 64ull << 20) {
  EngineOptions options;
  options.ephemeral_queue_messages = messages;
  options.node_ephemeral_bytes = bytes;
  return options;
}

std::vector<std::string> numbered(int from, int count) {
  std::vector<std::string> bodies;
  for (int i = 0; i < count; ++i) bodies.push_back(std::to_string(from + i));
  return bodies;
}

TopicStats stats_of(EngineWorld& w, std::string_view topic) {
  for (TopicStats& stats : w.stats())
    if (stats.name == topic) return stats;
  return {};
}

bool on_disk(EngineWorld& w, std::string_view topic) {
  std::string hex;
  for (const char c : topic) hex += {"0123456789abcdef"[c >> 4], "0123456789abcdef"[c & 15]};
  for (const std::string& path : w.disk.files())
    if (path.find(hex) != std::string::npos) return true;
  return false;
}

TEST(EphemeralTopic, IsDeliveredToItsChannelsInOrderAndLeavesNothingOnDisk) {
  EngineWorld w(1);
  w.subscribe(kTopic, "a", 100);
  w.subscribe(kTopic, "b#ephemeral", 100);
  ASSERT_EQ(w.publish_and_wait(kTopic, numbered(0, 10)), Code::ok);
  ASSERT_TRUE(w.wait_deliveries(20));
  std::map<ConsumerId, std::vector<std::string>> got;
  for (const Delivery& delivery : w.shard().deliveries) got[delivery.consumer].emplace_back(text_of(delivery.body.bytes()));
  ASSERT_EQ(got.size(), 2u);
  for (const auto& [consumer, bodies] : got) EXPECT_EQ(bodies, numbered(0, 10));
  w.finish_all();
  EXPECT_EQ(stats_of(w, kTopic).message_count, 0u);  // let go once both are done
  EXPECT_FALSE(on_disk(w, kTopic));
  w.restart();
  EXPECT_FALSE(w.engine().has_topic(kTopic));
}

TEST(EphemeralTopic, KeepsWhatCameBeforeItsFirstChannelWithinTheBound) {
  EngineWorld w(2, with_queue(3));
  ASSERT_EQ(w.publish_and_wait(kTopic, numbered(0, 5)), Code::ok);
  EXPECT_EQ(stats_of(w, kTopic).unrouted_depth, 3u);
  EXPECT_EQ(stats_of(w, kTopic).published_count, 5u);
  w.subscribe(kTopic, "c#ephemeral", 100);
  ASSERT_TRUE(w.wait_deliveries(3));
  w.world.run_for(kSecond);
  EXPECT_EQ(w.bodies(), numbered(0, 3));
  w.finish_all();
  w.subscribe(kTopic, "later", 100);  // a later one starts empty
  w.world.run_for(kSecond);
  EXPECT_TRUE(w.shard().deliveries.empty());
}

TEST(EphemeralTopic, C_71_AFullChannelDropsTheNewestAndThePublishSucceeds) {
  for (const std::string_view topic : {kTopic, std::string_view("durable")}) {
    EngineWorld w(3, with_queue(3));
    const ConsumerId consumer = w.subscribe(topic, "c#ephemeral", 0);
    for (int i = 0; i < 10; ++i) ASSERT_EQ(w.publish_and_wait(topic, numbered(i, 1)), Code::ok);
    const TopicStats stats = stats_of(w, topic);
    ASSERT_EQ(stats.channels.size(), 1u);
    EXPECT_EQ(stats.channels[0].depth, 3u);
    EXPECT_EQ(stats.channels[0].message_count, 10u);
    w.engine().set_ready(consumer, 100);
    ASSERT_TRUE(w.wait_deliveries(3));
    w.world.run_for(kSecond);
    EXPECT_EQ(w.bodies(), numbered(0, 3));
    w.finish_all();
    ASSERT_EQ(w.publish_and_wait(topic, numbered(10, 2)), Code::ok);
    ASSERT_TRUE(w.wait_deliveries(2));
    EXPECT_EQ(w.bodies(), numbered(10, 2));
  }
}

TEST(EphemeralTopic, AStalledChannelDoesNotTakeMessagesFromAnother) {
  EngineWorld w(4, with_queue(3));
  w.subscribe(kTopic, "stalled", 0);
  w.subscribe(kTopic, "working", 100);
  for (int i = 0; i < 50; ++i) {
    ASSERT_EQ(w.publish_and_wait(kTopic, numbered(i, 1)), Code::ok);
    ASSERT_TRUE(w.wait_deliveries(1));
    EXPECT_EQ(w.bodies(), numbered(i, 1));
    w.finish_all();
  }
  EXPECT_EQ(stats_of(w, kTopic).message_count, 3u);  // what the stalled one holds
}

TEST(EphemeralTopic, TheBytesOfAllEphemeralTopicsAreBounded) {
  EngineWorld w(5, with_queue(10'000, 100'000));
  w.subscribe("a#ephemeral", "c", 0);
  w.subscribe("b#ephemeral", "c", 0);
  for (int i = 0; i < 40; ++i)
    ASSERT_EQ(w.publish_and_wait(i % 2 == 0 ? "a#ephemeral" : "b#ephemeral", {std::string(10'000, 'x')}), Code::ok);
  EXPECT_EQ(stats_of(w, "a#ephemeral").message_count + stats_of(w, "b#ephemeral").message_count, 9u);
  ASSERT_EQ(w.admin(Admin::empty_channel, "a#ephemeral", "c"), Code::ok);
  EXPECT_EQ(stats_of(w, "a#ephemeral").message_count, 0u);
  ASSERT_EQ(w.publish_and_wait("b#ephemeral", {std::string(10'000, 'x')}), Code::ok);
  EXPECT_EQ(stats_of(w, "b#ephemeral").message_count, 5u);
}

TEST(EphemeralTopic, C_70_GoesWithItsLastChannel) {
  EngineWorld w(6);
  const ConsumerId one = w.subscribe(kTopic, "a#ephemeral", 1);
  const ConsumerId two = w.subscribe(kTopic, "b#ephemeral", 1);
  w.engine().unsubscribe(one, w.now());
  w.world.run_for(kSecond);
  EXPECT_TRUE(w.engine().has_topic(kTopic));
  EXPECT_FALSE(w.engine().has_channel(kTopic, "a#ephemeral"));
  w.engine().unsubscribe(two, w.now());
  w.process->poke();
  ASSERT_TRUE(w.wait([&] { return !w.engine().has_topic(kTopic); }));
  // A Channel with an ordinary name stays without consumers, and so does the Topic, until it is deleted.
  const ConsumerId three = w.subscribe(kTopic, "plain", 1);
  w.engine().unsubscribe(three, w.now());
  w.process->poke();
  w.world.run_for(kSecond);
  EXPECT_TRUE(w.engine().has_channel(kTopic, "plain"));
  ASSERT_EQ(w.admin(Admin::delete_channel, kTopic, "plain"), Code::ok);
  ASSERT_TRUE(w.wait([&] { return !w.engine().has_topic(kTopic); }));
}

TEST(EphemeralTopic, ASubscriberThatComesWithTheLastLeaveGetsWhatIsPublishedAfterwards) {
  EngineWorld w(7);
  const ConsumerId leaving = w.subscribe(kTopic, "c#ephemeral", 1);
  w.engine().unsubscribe(leaving, w.now());
  const ConsumerId joining = w.subscribe(kTopic, "c#ephemeral", 1);  // before the Engine's next turn
  ASSERT_NE(joining, ConsumerId::none);
  ASSERT_EQ(w.publish_and_wait(kTopic, {"m"}), Code::ok);
  ASSERT_TRUE(w.wait_deliveries(1));
  EXPECT_EQ(w.shard().deliveries[0].consumer, joining);
}

TEST(EphemeralTopic, RequeueTimeoutAttemptsDelaySamplingAndPauseWork) {
  EngineWorld w(8);
  SubscribeOptions options;
  options.message_timeout_ms = 1'000;
  const ConsumerId consumer = w.subscribe(kTopic, "c", 1, options);
  ASSERT_EQ(w.publish_and_wait(kTopic, {"m"}, 500), Code::ok);
  w.world.run_for(400 * kMillisecond);
  EXPECT_TRUE(w.shard().deliveries.empty());
  EXPECT_EQ(stats_of(w, kTopic).channels[0].deferred_count, 1u);
  ASSERT_TRUE(w.wait_deliveries(1));
  ASSERT_TRUE(w.wait([&] { return !w.shard().timed_out.empty(); }));
  ASSERT_TRUE(w.wait_deliveries(2));
  ASSERT_EQ(w.engine().requeue(consumer, w.shard().deliveries[1].id, 0, w.now()), Code::ok);
  ASSERT_TRUE(w.wait_deliveries(3));
  EXPECT_EQ(w.shard().deliveries[2].attempts, 3);
  w.finish_all();
  ASSERT_EQ(w.admin(Admin::pause_topic, kTopic), Code::ok);
  ASSERT_EQ(w.publish_and_wait(kTopic, {"paused"}), Code::ok);
  w.world.run_for(kSecond);
  EXPECT_TRUE(w.shard().deliveries.empty());
  ASSERT_EQ(w.admin(Admin::unpause_topic, kTopic), Code::ok);
  ASSERT_TRUE(w.wait_deliveries(1));
  w.finish_all();
  SubscribeOptions half;
  half.sample_rate = 50;
  w.subscribe(kTopic, "sampled", 2'500, half);
  w.engine().unsubscribe(consumer, w.now());
  ASSERT_EQ(w.publish_and_wait(kTopic, numbered(0, 100)), Code::ok);
  ASSERT_TRUE(w.wait_deliveries(50));
  w.world.run_for(kSecond);
  EXPECT_EQ(w.shard().deliveries.size(), 50u);
  w.finish_all();
  EXPECT_EQ(stats_of(w, kTopic).channels[1].depth, 0u);
}

TEST(EphemeralTopic, D_47_OneThatIsOnDiskIsServedFromThereAndRemovedWithItsLastChannel) {
  EngineWorld w(9);
  ASSERT_EQ(w.publish_and_wait("u_ephemeral", {"stored"}), Code::ok);  // a name of the same length, to be renamed on disk
  ASSERT_TRUE(w.stop());
  w.process->kill();
  for (const std::string& path : w.disk.files()) {
    const std::size_t at = path.find("/755f");
    if (at == std::string::npos) continue;
    std::string content = w.disk.content(path);
    if (path.ends_with("/manifest")) content.replace(content.find("u_ephemeral"), 2, "u#");
    w.disk.put(std::string(path).replace(at, 5, "/7523"), content);
    w.disk.remove(path);
  }
  w.restart();
  ASSERT_TRUE(w.engine().has_topic("u#ephemeral"));
  const ConsumerId consumer = w.subscribe("u#ephemeral", "c#ephemeral", 1);
  ASSERT_EQ(w.publish_and_wait("u#ephemeral", {"new"}), Code::ok);
  ASSERT_TRUE(w.wait_deliveries(1));
  w.engine().unsubscribe(consumer, w.now());
  w.process->poke();
  ASSERT_TRUE(w.wait([&] { return !on_disk(w, "u#ephemeral"); }));
  EXPECT_FALSE(w.engine().has_topic("u#ephemeral"));
}

TEST(EphemeralTopic, MessagesExpireUnderTtlWithAndWithoutAChannel) {
  EngineWorld w(11);
  ASSERT_EQ(w.configure(kTopic, {true, 2}, true).code, Code::ok);
  ASSERT_EQ(w.publish_and_wait(kTopic, numbered(0, 3)), Code::ok);
  w.world.run_for(4 * kSecond);
  EXPECT_EQ(stats_of(w, kTopic).message_count, 0u);
  w.subscribe(kTopic, "c", 0);
  ASSERT_EQ(w.publish_and_wait(kTopic, numbered(3, 2)), Code::ok);
  EXPECT_EQ(stats_of(w, kTopic).channels[0].depth, 2u);
  w.world.run_for(4 * kSecond);
  EXPECT_EQ(stats_of(w, kTopic).channels[0].depth, 0u);
  EXPECT_EQ(stats_of(w, kTopic).message_count, 0u);
  EXPECT_EQ(stats_of(w, kTopic).ttl_discarded_messages, 5u);
}

// Page 10 section 5.1, for a Topic whose Channels others know: each that comes before open() starts with everything.
TEST(EphemeralTopic, EveryChannelOfAnOpeningTopicStartsWithWhatItKept) {
  EngineWorld w(11, with_queue(3));
  w.engine().keep_for_known_channels(true);
  const auto depths = [&] {
    std::map<std::string, std::uint64_t> out;
    for (const ChannelStats& row : stats_of(w, kTopic).channels) out[row.name] = row.depth;
    return out;
  };
  const auto create = [&](std::string_view channel) { ASSERT_EQ(w.admin(Admin::create_channel, kTopic, channel), Code::ok); };
  w.subscribe(kTopic, "reader", 100);
  ASSERT_EQ(w.publish_and_wait(kTopic, numbered(0, 2)), Code::ok);
  ASSERT_TRUE(w.wait_deliveries(2));
  w.finish_all();
  EXPECT_TRUE(w.engine().opening(kTopic));
  create("one");
  create("two");
  ASSERT_EQ(w.publish_and_wait(kTopic, numbered(2, 2)), Code::ok);  // the last one is beyond the bound
  create("three");
  EXPECT_EQ(depths(), (std::map<std::string, std::uint64_t>{{"one", 3}, {"reader", 2}, {"three", 3}, {"two", 3}}));
  w.engine().open(kTopic);
  w.process->poke();
  w.world.run_for(kMillisecond);
  EXPECT_FALSE(w.engine().opening(kTopic));
  create("late");
  EXPECT_EQ(depths()["late"], 0u);
  for (const char* channel : {"one", "two", "three", "reader"})
    ASSERT_EQ(w.admin(Admin::delete_channel, kTopic, channel), Code::ok);
  EXPECT_EQ(stats_of(w, kTopic).message_count, 0u) << "nobody holds one";
}

TEST(EphemeralTopic, AnOpeningTopicKeepsNothingBehindADeletionAndStaysBoundedWithoutAChannel) {
  EngineWorld w(12, with_queue(3));
  w.engine().keep_for_known_channels(true);
  ASSERT_EQ(w.publish_and_wait(kTopic, numbered(0, 5)), Code::ok);
  EXPECT_EQ(stats_of(w, kTopic).unrouted_depth, 3u);
  w.engine().keep_for_known_channels(false);
  w.process->poke();
  w.world.run_for(kMillisecond);
  EXPECT_EQ(stats_of(w, kTopic).unrouted_depth, 3u) << "as any Topic without a Channel";
  w.engine().keep_for_known_channels(true);
  constexpr std::string_view kOther = "u#ephemeral";
  ASSERT_EQ(w.admin(Admin::create_channel, kOther, "a"), Code::ok);
  ASSERT_EQ(w.admin(Admin::create_channel, kOther, "b"), Code::ok);
  ASSERT_EQ(w.publish_and_wait(kOther, numbered(0, 2)), Code::ok);
  ASSERT_EQ(w.admin(Admin::delete_channel, kOther, "a"), Code::ok);
  ASSERT_EQ(w.admin(Admin::create_channel, kOther, "a"), Code::ok);
  EXPECT_EQ(stats_of(w, kOther).channels[0].depth, 0u);
  EXPECT_EQ(stats_of(w, kOther).channels[1].depth, 2u);
  ASSERT_EQ(w.admin(Admin::delete_topic, kOther, {}), Code::ok);
  ASSERT_EQ(w.admin(Admin::empty_topic, kTopic, {}), Code::ok);
  EXPECT_EQ(stats_of(w, kTopic).message_count, 0u);
}

RC_GTEST_PROP(EphemeralTopicProperty, ChannelsOfAnOpeningTopicHoldWhatTheModelSays, ()) {
  const auto limit = *rc::gen::inRange<std::uint64_t>(1, 6);
  const auto steps = *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 8));
  EngineWorld w(13, with_queue(limit));
  w.engine().keep_for_known_channels(true);
  std::deque<std::string> kept;  // by the Topic: while it is opening, and while there is no Channel
  bool opening = true;
  std::map<std::string, std::pair<ConsumerId, std::deque<std::string>>> models;
  RC_ASSERT(w.admin(Admin::create_topic, kTopic, {}) == Code::ok);
  int next = 0;
  for (const int step : steps) {
    if (step < 3) {
      const std::vector<std::string> bodies = numbered(next, 1 + step);
      next += 1 + step;
      RC_ASSERT(w.publish_and_wait(kTopic, bodies) == Code::ok);
      for (const std::string& body : bodies) {
        if ((opening || models.empty()) && kept.size() < limit) kept.push_back(body);
        for (auto& [name, model] : models)
          if (model.second.size() < limit) model.second.push_back(body);
      }
    } else if (step < 5) {
      const std::string name = "c" + std::to_string(models.size());
      const bool all = opening || models.empty();
      models[name] = {w.subscribe(kTopic, name, 0), all ? kept : std::deque<std::string>()};
      if (!opening) kept.clear();
    } else if (step < 7) {
      if (models.empty()) continue;
      auto& [consumer, queue] = models.begin()->second;
      const std::size_t before = w.shard().deliveries.size();
      w.engine().set_ready(consumer, 1);
      w.process->poke();
      w.world.run_for(50 * kMillisecond);
      w.engine().set_ready(consumer, 0);
      RC_ASSERT(w.shard().deliveries.size() == before + (queue.empty() ? 0 : 1));
      if (queue.empty()) continue;
      const Delivery delivery = w.shard().deliveries.back();
      RC_ASSERT(std::string(text_of(delivery.body.bytes())) == queue.front());
      queue.pop_front();
      w.engine().finish(consumer, delivery.id, w.now());
      w.process->poke();
      w.world.run_for(50 * kMillisecond);
    } else {
      w.engine().open(kTopic);
      w.process->poke();
      w.world.run_for(kMillisecond);
      opening = false;
      if (!models.empty()) kept.clear();
    }
    RC_ASSERT(w.engine().opening(kTopic) == opening);
    std::set<std::string> held(kept.begin(), kept.end());
    const TopicStats stats = stats_of(w, kTopic);
    for (const ChannelStats& row : stats.channels) {
      RC_ASSERT(row.depth == models[row.name].second.size());
      held.insert(models[row.name].second.begin(), models[row.name].second.end());
    }
    RC_ASSERT(stats.message_count == held.size());
  }
}

// What a Channel of the model holds: every published message while there was room, each delivered once, in order, until finished.
RC_GTEST_PROP(EphemeralTopicProperty, EveryChannelGetsWhatFitItsQueueInOrderAndOnce, ()) {
  const auto limit = *rc::gen::inRange<std::uint64_t>(1, 6);
  const auto steps = *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 8));
  EngineWorld w(10, with_queue(limit));
  struct Model {
    ConsumerId consumer;
    std::deque<std::string> queue, in_flight;
  };
  std::map<std::string, Model> models;
  for (const std::string name : {"a", "b"}) models[name].consumer = w.subscribe(kTopic, name, 0);
  int next = 0;
  const auto take = [&](Model& model) {
    w.engine().set_ready(model.consumer, static_cast<std::uint32_t>(w.engine().in_flight_of(model.consumer)) + 1);
    w.process->poke();
    w.world.run_for(50 * kMillisecond);
    w.engine().set_ready(model.consumer, 0);
    if (model.queue.empty()) return;
    model.in_flight.push_back(model.queue.front());
    model.queue.pop_front();
  };
  for (const int step : steps) {
    Model& model = models[step % 2 == 0 ? "a" : "b"];
    const std::size_t before = w.shard().deliveries.size();
    if (step < 4) {
      const std::vector<std::string> bodies = numbered(next, 1 + step);
      next += 1 + step;
      RC_ASSERT(w.publish_and_wait(kTopic, bodies) == Code::ok);
      for (auto& [name, each] : models)
        for (const std::string& body : bodies)
          if (each.queue.size() < limit) each.queue.push_back(body);
    } else if (step < 6) {
      const bool expected = !model.queue.empty();
      take(model);
      RC_ASSERT(w.shard().deliveries.size() == before + (expected ? 1 : 0));
      if (expected) RC_ASSERT(std::string(text_of(w.shard().deliveries.back().body.bytes())) == model.in_flight.back());
    } else {
      for (const Delivery& delivery : w.shard().deliveries)
        if (delivery.consumer == model.consumer) w.engine().finish(delivery.consumer, delivery.id, w.now());
      w.process->poke();
      w.world.run_for(50 * kMillisecond);
      model.in_flight.clear();
    }
    std::set<std::string> held;
    const TopicStats stats = stats_of(w, kTopic);
    for (const ChannelStats& row : stats.channels) {
      const Model& each = models[row.name];
      RC_ASSERT(row.depth == each.queue.size() + each.in_flight.size());
      RC_ASSERT(row.in_flight_count == each.in_flight.size());
      held.insert(each.queue.begin(), each.queue.end());
      held.insert(each.in_flight.begin(), each.in_flight.end());
    }
    RC_ASSERT(stats.message_count == held.size());  // nothing else is in memory
  }
}

}  // namespace
}  // namespace rq::queue
