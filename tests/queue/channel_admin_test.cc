// A Channel under administration: pause, empty, evict, finish by position.
#include <gtest/gtest.h>

#include "tests/queue/channel_bench.h"

namespace rq::queue::test {
namespace {

using Bench = ChannelBench<>;
using Kind = storage::WalCommand::Kind;

TEST(Channel, APausedChannelHandsOutNothingButSettlesCommandsAndTimeouts) {
  Bench bench;
  bench.publish(4);
  for (int i = 0; i < 3; ++i) bench.reserve();
  EXPECT_EQ(bench.channel->set_paused(true), (storage::WalCommand{.kind = Kind::pause, .paused = true}));
  EXPECT_FALSE(bench.channel->set_paused(true).has_value());
  EXPECT_EQ(bench.finish(1), Held::ok);
  EXPECT_EQ(bench.requeue(2, 1'000), Held::ok);
  EXPECT_EQ(bench.channel->next_deadline(bench.now), bench.now.mono + kTimeout);
  EXPECT_EQ(bench.pass(kTimeout).size(), 1u);
  EXPECT_EQ(bench.reserve(), 0u);
  EXPECT_EQ(bench.channel->next_deadline(bench.now), Instant::never());
  EXPECT_TRUE(bench.channel->image().paused);
  EXPECT_EQ(bench.channel->set_paused(false), (storage::WalCommand{.kind = Kind::pause, .paused = false}));
  EXPECT_EQ(bench.reserve_all(), (std::vector<Position>{2, 3, 4}));
}

TEST(Channel, EmptyVoidsEveryTokenAndLeavesLaterMessagesAlone) {
  Bench bench;
  bench.publish(3);
  bench.publish(1, 5'000);
  bench.publish(1);
  bench.reserve_all();
  bench.requeue(2, 5'000);
  bench.finish(3);
  std::vector<Channel::Released> released;
  EXPECT_EQ(bench.channel->empty_through(5, released), (storage::WalCommand{.kind = Kind::empty, .position = 5}));
  ASSERT_EQ(released.size(), 2u);
  EXPECT_EQ(released[0].id, VectorView::id(1));
  EXPECT_EQ(released[1].id, VectorView::id(5));
  EXPECT_FALSE(bench.channel->empty_through(5, released).has_value());
  EXPECT_EQ(bench.finish(1), Held::not_in_flight);
  EXPECT_EQ(bench.channel->depth(bench.view), 0u);
  EXPECT_EQ(bench.channel->message_count(bench.view), 5u);
  bench.channel->check_invariants(bench.view);
  bench.pass(kTimeout);
  EXPECT_EQ(bench.reserve(), 0u);
  EXPECT_EQ(bench.channel->timeout_count(), 0u);
  bench.publish(1);
  EXPECT_EQ(bench.reserve(), 6u);
}

TEST(Channel, EmptyMayReachBeyondWhatIsVisible) {
  Bench bench;
  bench.publish(2);
  std::vector<Channel::Released> released;
  bench.channel->empty_through(4, released);
  EXPECT_EQ(bench.channel->depth(bench.view), 0u);
  bench.publish(3);  // 3 and 4 were written but not visible when the Channel was emptied
  EXPECT_EQ(bench.channel->depth(bench.view), 1u);
  EXPECT_EQ(bench.reserve_all(), std::vector<Position>{5});
}

TEST(Channel, EvictTakesOnlyItsPrefix) {
  Bench bench;
  bench.publish(6);
  bench.reserve_all();
  bench.finish(4);
  std::vector<Channel::Released> released;
  EXPECT_EQ(bench.channel->evict_through(3, released), (storage::WalCommand{.kind = Kind::evict, .position = 3}));
  EXPECT_EQ(released.size(), 3u);
  EXPECT_EQ(bench.channel->ack_floor(), 4u);  // 4 was finished before
  EXPECT_EQ(bench.channel->in_flight_count(), 2u);
  EXPECT_EQ(bench.finish(5), Held::ok);
}

TEST(Channel, FinishByPositionEndsAnyUnfinishedState) {
  Bench bench;
  bench.publish(4);
  bench.publish(1, 5'000);
  ASSERT_EQ(bench.reserve(), 1u);
  ASSERT_EQ(bench.reserve(), 2u);
  bench.requeue(2, 0);
  ASSERT_EQ(bench.reserve(), 2u);
  bench.requeue(2, 5'000);
  ASSERT_EQ(bench.reserve(), 3u);
  ASSERT_EQ(bench.reserve(), 4u);
  ASSERT_EQ(bench.reserve(), 0u);
  bench.requeue(3, 0);
  std::optional<storage::WalCommand> command;
  for (Position position : {5u, 4u, 2u, 3u, 1u}) {
    EXPECT_TRUE(bench.channel->finish_position(position, VectorView::id(position), command));
    EXPECT_EQ(command, (storage::WalCommand{.kind = Kind::finish, .position = position, .id = VectorView::id(position)}));
    EXPECT_FALSE(bench.channel->finish_position(position, VectorView::id(position), command));
    bench.channel->check_invariants(bench.view);
  }
  EXPECT_EQ(bench.channel->ack_floor(), 5u);
  EXPECT_EQ(bench.channel->held_by(kA), 0u);
  bench.pass(kTimeout);
  EXPECT_EQ(bench.reserve(), 0u);
}

}  // namespace
}  // namespace rq::queue::test
