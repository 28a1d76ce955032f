// When the barrier over FINs and REQs starts (D-16): at once, but right after another one only when it holds nobody up.
#include <gtest/gtest.h>

#include "core/queue/channel_lane.h"
#include "tests/queue/engine_world.h"

namespace rq::queue {
namespace {

constexpr std::int64_t kHold = ChannelLane::kHoldNs;

struct FinishHold : testing::Test {
  FinishHold() { w.disk.faults.latency_ns_min = w.disk.faults.latency_ns_max = 100 * kMicrosecond; }

  // `messages` wait, of which a consumer with that RDY has its share, and nothing has been finished for a while.
  void begin(std::size_t messages, std::uint32_t rdy) {
    ASSERT_EQ(w.publish_and_wait("t", std::vector<std::string>(messages, "m")), Code::ok);
    consumer = w.subscribe("t", "c", rdy);
    ASSERT_TRUE(w.wait_deliveries(std::min<std::size_t>(messages, rdy)));
    w.world.run_for(10 * kHold);
  }
  void finish(std::size_t count) {
    for (; count > 0; --count) ASSERT_EQ(w.engine().finish(consumer, w.shard().deliveries.at(finished++).id, w.now()), Code::ok);
    w.process->poke();
  }
  // How long until everything finished so far is durable.
  std::int64_t settle() {
    const Instant from = w.now().mono;
    EXPECT_TRUE(w.wait([&] { return w.shard().commands.size() >= finished; }));
    return w.now().mono - from;
  }
  EngineWorld w{1};
  ConsumerId consumer = ConsumerId::none;
  std::size_t finished = 0;
};

TEST_F(FinishHold, ALoneFinIsNotHeld) {
  begin(10, 100);
  finish(1);
  EXPECT_LT(settle(), kHold);
  w.world.run_for(2 * kHold);
  finish(1);
  EXPECT_LT(settle(), kHold);
}

TEST_F(FinishHold, WhatComesRightAfterABarrierSharesTheNextOne) {
  begin(20, 100);
  finish(1);
  settle();
  const std::uint64_t commits = w.engine().metrics().channel_commits;
  for (int i = 0; i < 8; ++i) {
    finish(1);
    w.world.run_for(kHold / 10);
  }
  EXPECT_EQ(w.engine().metrics().channel_commits, commits);
  EXPECT_LT(settle(), kHold);
  EXPECT_EQ(w.engine().metrics().channel_commits, commits + 1);
}

TEST_F(FinishHold, AConsumerThatHasNothingElseIsNotHeldUp) {
  begin(10, 1);
  for (int i = 0; i < 5; ++i) {
    finish(1);
    EXPECT_LT(settle(), kHold);
    ASSERT_TRUE(w.wait_deliveries(finished + 1));
  }
}

TEST_F(FinishHold, HalfOfWhatAConsumerHasEndsTheHold) {
  begin(100, 8);
  finish(1);
  settle();
  ASSERT_TRUE(w.wait_deliveries(9));
  const std::uint64_t commits = w.engine().metrics().channel_commits;
  finish(3);
  w.world.run_for(kHold / 2);
  EXPECT_EQ(w.engine().metrics().channel_commits, commits);
  finish(1);
  EXPECT_LT(settle(), kHold / 2);
  EXPECT_EQ(w.engine().metrics().channel_commits, commits + 1);
}

}  // namespace
}  // namespace rq::queue
