// An administrative answer stands (page 30 I-19, section 3.9): also where there was nothing to do any more, because an earlier
// command had done it already that is on its way to the disk.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <map>
#include <set>

#include "core/queue/channel_lane.h"
#include "tests/queue/managed_requests.h"

namespace rq::queue {
namespace {

struct AnsweredIsDurable : testing::Test {
  // One Topic and Channel, and as many messages at a consumer.
  void begin(std::size_t messages) {
    ASSERT_EQ(w.admin(Admin::create_channel, "t", "c"), Code::ok);
    ASSERT_EQ(w.publish_and_wait("t", std::vector<std::string>(messages, "m")), Code::ok);
    consumer = w.subscribe("t", "c", 100);
    ASSERT_TRUE(w.wait_deliveries(messages));
    ASSERT_TRUE(w.wait([&] { return w.engine().quiet(); }));
    w.disk.faults.latency_ns_min = w.disk.faults.latency_ns_max = kLatency;
  }
  void finish_everything() {
    for (const Delivery& delivery : w.shard().deliveries)
      ASSERT_EQ(w.engine().finish(delivery.consumer, delivery.id, w.now()), Code::ok);
  }
  bool answered(std::uint64_t waiter) { return w.shard().admin.contains(waiter); }
  // Power is lost in the moment of the answer.
  void answer_and_power_loss(std::uint64_t waiter) {
    w.world.run_for(kLatency / 2);
    EXPECT_FALSE(answered(waiter)) << "before anything can be on the disk";
    ASSERT_TRUE(w.wait([&] { return answered(waiter); }));
    EXPECT_EQ(w.shard().admin[waiter].code, Code::ok);
    lose_power();
  }
  void lose_power() {
    w.disk.faults = {};
    w.restart(true);
    ASSERT_EQ(w.engine().state(), EngineState::open);
  }
  static constexpr std::int64_t kLatency = 20 * kMillisecond;
  EngineWorld w{1};
  ConsumerId consumer = ConsumerId::none;
};

TEST_F(AnsweredIsDurable, AnEmptyBehindTheFinOfTheLastMessage) {
  begin(3);
  finish_everything();
  answer_and_power_loss(w.ask(Admin::empty_channel, "t", "c"));
  w.subscribe("t", "c", 10);
  w.world.run_for(kSecond);
  EXPECT_TRUE(w.shard().deliveries.empty());
  EXPECT_EQ(w.stats().at(0).channels.at(0).depth, 0u);
}

TEST_F(AnsweredIsDurable, ASecondEmpty) {
  begin(3);
  w.ask(Admin::empty_channel, "t", "c");
  answer_and_power_loss(w.ask(Admin::empty_channel, "t", "c"));
  EXPECT_EQ(w.stats().at(0).channels.at(0).depth, 0u);
}

TEST_F(AnsweredIsDurable, ASecondPause) {
  begin(1);
  w.ask(Admin::pause_channel, "t", "c");
  answer_and_power_loss(w.ask(Admin::pause_channel, "t", "c"));
  EXPECT_TRUE(w.stats().at(0).channels.at(0).paused);
}

TEST_F(AnsweredIsDurable, ASecondUnpause) {
  begin(1);
  ASSERT_EQ(w.admin(Admin::pause_channel, "t", "c"), Code::ok);
  w.ask(Admin::unpause_channel, "t", "c");
  answer_and_power_loss(w.ask(Admin::unpause_channel, "t", "c"));
  EXPECT_FALSE(w.stats().at(0).channels.at(0).paused);
}

struct EarlyAnswer final : io::Chaos {
  bool fire(const char*, std::uint32_t) override { return false; }
  bool planted(const char* bug) override { return std::string_view(bug) == "answer_empty_early"; }
};

// The planted bug: these tests would see it.
TEST_F(AnsweredIsDurable, AnEmptyThatIsAnsweredEarlyIsTakenBack) {
  EarlyAnswer chaos;
  w.world.set_chaos(&chaos);
  begin(3);
  const std::uint64_t waiter = w.ask(Admin::empty_channel, "t", "c");
  w.world.run_for(kMillisecond);
  EXPECT_TRUE(answered(waiter));
  lose_power();
  EXPECT_EQ(w.stats().at(0).channels.at(0).depth, 3u);
  w.world.set_chaos(nullptr);
}

// The commands of the Channel wait behind more than one barrier carries.
TEST_F(AnsweredIsDurable, AnEmptyBehindMoreCommandsThanAGroupHolds) {
  constexpr std::size_t kMessages = ChannelLane::kGroupMax + 100;
  ASSERT_EQ(w.admin(Admin::create_channel, "t", "c"), Code::ok);
  ASSERT_EQ(w.publish_and_wait("t", std::vector<std::string>(kMessages, "m")), Code::ok);
  w.subscribe("t", "c", kMessages);
  ASSERT_TRUE(w.wait_deliveries(kMessages));
  ASSERT_TRUE(w.wait([&] { return w.engine().quiet(); }));
  w.disk.faults.latency_ns_min = w.disk.faults.latency_ns_max = kLatency;
  finish_everything();
  answer_and_power_loss(w.ask(Admin::empty_channel, "t", "c"));
  EXPECT_EQ(w.stats().at(0).channels.at(0).depth, 0u);
}

// "Not there" makes a managed deletion a success, so it may not be said before it is true for good.
struct DeletedMeanwhile : AnsweredIsDurable {
  // A deletion of the Topic has begun whose first write takes long; everything after it is fast.
  std::uint64_t begin_slow_deletion() {
    w.disk.faults.latency_ns_min = w.disk.faults.latency_ns_max = kSecond;
    const std::uint64_t waiter = w.ask(Admin::delete_topic, "t");
    w.world.run_for(kMillisecond);
    w.disk.faults.latency_ns_min = w.disk.faults.latency_ns_max = 100 * kMicrosecond;
    return waiter;
  }
  void expect_gone_once_answered(const ManagedRequest& request) {
    const std::uint64_t plain = begin_slow_deletion();
    EXPECT_EQ(w.manage_and_wait(request).outcome.code, Code::ok);
    EXPECT_TRUE(answered(plain));
    lose_power();
    EXPECT_TRUE(w.stats().empty());
  }
};

TEST_F(DeletedMeanwhile, AManagedDeletionOfTheTopic) {
  begin(3);
  expect_gone_once_answered(until(on_topic(1, ManagedAction::remove, "t", w.engine().registry_revision()), in_ms(w, 3'600'000)));
}

TEST_F(DeletedMeanwhile, AManagedDeletionOfAChannel) {
  begin(3);
  expect_gone_once_answered(
      until(on_channel(1, ManagedAction::remove, "t", "c", w.engine().registry_revision()), in_ms(w, 3'600'000)));
}

// Commands of every kind to one Channel, disks of any speed, power loss at any event: what was answered holds, and what was not
// may hold.
enum class Do { publish, finish, pause, unpause, empty };

TEST(AnsweredIsDurableProperty, WhateverWasAnsweredSurvivesAPowerLoss) {
  const bool held = rc::check([] {
    const auto plan = *rc::gen::resize(
        60, rc::gen::container<std::vector<std::pair<Do, int>>>(
                rc::gen::pair(rc::gen::element(Do::publish, Do::finish, Do::finish, Do::pause, Do::unpause, Do::empty, Do::empty),
                              rc::gen::inRange(0, 12))));
    const int crash_after = *rc::gen::inRange(0, 200);
    EngineWorld w(*rc::gen::inRange<std::uint64_t>(1, 1'000));
    RC_ASSERT(w.admin(Admin::create_channel, "t", "c") == Code::ok);
    w.subscribe("t", "c", 100);
    w.disk.faults.latency_ns_max = 20 * kMillisecond;
    std::map<std::uint64_t, std::string> finished;                         // ids, once durable
    std::vector<std::pair<std::uint64_t, bool>> pauses;                    // in order: waiter, paused
    std::vector<std::pair<std::uint64_t, std::set<std::string>>> empties;  // waiter, what it takes away
    std::set<std::string> sent;
    std::size_t done = 0;
    for (const auto& [what, steps] : plan) {
      switch (what) {
        case Do::publish:
          sent.insert(std::to_string(sent.size()));
          w.publish("t", {std::to_string(sent.size() - 1)});
          break;
        case Do::finish:
          for (; done < w.shard().deliveries.size(); ++done) {
            const Delivery& delivery = w.shard().deliveries[done];
            if (w.engine().finish(delivery.consumer, delivery.id, w.now()) == Code::ok)
              finished[delivery.id] = text_of(delivery.body.bytes());
          }
          break;
        case Do::pause:
        case Do::unpause:
          pauses.emplace_back(w.ask(what == Do::pause ? Admin::pause_channel : Admin::unpause_channel, "t", "c"),
                              what == Do::pause);
          break;
        case Do::empty: {
          std::set<std::string> gone;
          for (const Delivery& delivery : w.shard().deliveries) gone.emplace(text_of(delivery.body.bytes()));
          empties.emplace_back(w.ask(Admin::empty_channel, "t", "c"), std::move(gone));
          break;
        }
      }
      w.process->poke();
      for (int i = 0; i < steps; ++i) w.world.step();
    }
    for (int i = 0; i < crash_after; ++i) w.world.step();
    std::set<std::string> gone;
    for (const CommandDone& command : w.shard().commands) gone.insert(finished.at(command.id));
    for (const auto& [waiter, bodies] : empties)
      if (w.shard().admin.contains(waiter)) gone.insert(bodies.begin(), bodies.end());
    std::set<bool> may_be{false};
    for (const auto& [waiter, paused] : pauses) {
      if (w.shard().admin.contains(waiter)) may_be.clear();
      may_be.insert(paused);
    }
    w.disk.faults = {};
    w.restart(true);
    RC_ASSERT(w.engine().state() == EngineState::open);
    RC_ASSERT(may_be.contains(w.stats().at(0).channels.at(0).paused));
    RC_ASSERT(w.admin(Admin::unpause_channel, "t", "c") == Code::ok);
    w.subscribe("t", "c", 100);
    w.world.run_for(kSecond);
    for (const std::string& body : w.bodies()) RC_ASSERT(!gone.contains(body));
  });
  EXPECT_TRUE(held);
}

}  // namespace
}  // namespace rq::queue
