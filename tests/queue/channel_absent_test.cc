// A Channel over a log with holes: lost tails, collected prefixes, metadata that is not there yet.
#include <gtest/gtest.h>

#include "tests/queue/channel_bench.h"

namespace rq::queue::test {
namespace {

using Bench = ChannelBench<>;

TEST(Channel, AbsentPositionsAreFinishedWithoutACommandAndDoNotUseTheWindow) {
  ChannelSettings settings;
  settings.max_ack_gap = 2;
  Bench bench(settings);
  bench.publish(1);
  bench.view.lose(1'000'000);
  bench.publish(2);
  EXPECT_EQ(bench.reserve_all(), (std::vector<Position>{1, 1'000'002}));
  EXPECT_EQ(bench.channel->depth(bench.view), 3u);
  EXPECT_EQ(bench.channel->message_count(bench.view), 1'000'003u);
  bench.finish(1'000'002);
  EXPECT_EQ(bench.channel->ack_floor(), 0u);
  bench.finish(1);
  EXPECT_EQ(bench.channel->ack_floor(), 1'000'002u);
  EXPECT_EQ(bench.wal.size(), 2u);
  EXPECT_EQ(bench.reserve(), 1'000'003u);
}

TEST(Channel, ALostTailLeavesTheChannelCaughtUp) {
  Bench bench;
  bench.publish(1);
  bench.view.lose(10);
  ASSERT_EQ(bench.reserve(), 1u);
  bench.finish(1);
  EXPECT_EQ(bench.reserve(), 0u);
  EXPECT_EQ(bench.channel->ack_floor(), 11u);
  EXPECT_EQ(bench.channel->depth(bench.view), 0u);
}

TEST(Channel, AnEphemeralChannelThatLagsSkipsWhatWasCollected) {
  Bench bench(Bench::with_level(1), true);
  bench.publish(100);
  for (Position position = 1; position <= 10; ++position) ASSERT_EQ(bench.reserve(), position);
  for (Position position : {2u, 5u, 9u}) bench.finish(position);
  bench.requeue(3, 1'000);
  bench.requeue(4, 0);
  for (Position position : {1u, 6u, 7u, 8u, 10u}) bench.finish(position);
  bench.view.remove(1, 50);
  bench.channel->drop_absent(bench.view);
  EXPECT_EQ(bench.channel->ack_floor(), 50u);
  EXPECT_EQ(bench.channel->depth(bench.view), 50u);
  EXPECT_EQ(bench.channel->ack_gap(), 0u);
  bench.channel->check_invariants(bench.view);
  EXPECT_EQ(bench.reserve(), 51u);
}

TEST(Channel, DropAbsentStopsBelowWhatIsInFlight) {
  Bench bench(Bench::with_level(1), true);
  bench.publish(100);
  for (int i = 0; i < 3; ++i) bench.reserve();
  bench.finish(1);
  bench.finish(2);
  bench.view.remove(1, 50);
  bench.channel->drop_absent(bench.view);
  EXPECT_EQ(bench.channel->ack_floor(), 2u);
  EXPECT_EQ(bench.finish(3), Held::ok);
  EXPECT_EQ(bench.reserve(), 51u);
  EXPECT_EQ(bench.channel->ack_floor(), 50u);
}

// The Topic has not said yet what was collected; the Channel finds out where it looks.
TEST(Channel, AbsentPositionsAmongFinishedAndRequeuedOnesAreFoundOneByOne) {
  Bench bench(Bench::with_level(1), true);
  bench.publish(20);
  for (int i = 0; i < 10; ++i) bench.reserve();
  for (Position position : {2u, 5u, 9u}) bench.finish(position);
  bench.requeue(4, 1'000);
  EXPECT_EQ(bench.channel->release_all(kA), 6u);
  std::optional<storage::WalCommand> command;
  EXPECT_TRUE(bench.channel->finish_position(14, VectorView::id(14), command));
  bench.view.remove(1, 18);
  EXPECT_EQ(bench.reserve(), 19u);
  bench.channel->check_invariants(bench.view);
  EXPECT_EQ(bench.channel->ack_floor(), 3u);  // 4 waits for its target
  bench.pass(kSecond);
  EXPECT_EQ(bench.reserve(), 20u);
  EXPECT_EQ(bench.channel->ack_floor(), 18u);
  bench.channel->check_invariants(bench.view);
}

TEST(Channel, AJumpOverAbsentPositionsStopsAtOneThatWaitsForItsTarget) {
  ChannelSettings settings;
  settings.deferred_near = 0;
  Bench bench(settings, true);
  bench.publish(1, 5'000);
  bench.publish(1);
  ASSERT_EQ(bench.reserve(), 2u);
  bench.requeue(2, 60'000);
  bench.publish(1);
  bench.view.remove(1, 2);
  bench.pass(5 * kSecond);
  EXPECT_EQ(bench.reserve(), 3u);
  bench.channel->check_invariants(bench.view);
  EXPECT_EQ(bench.channel->ack_floor(), 1u);
  bench.finish(3);
  bench.pass(60 * kSecond);
  EXPECT_EQ(bench.reserve(), 0u);
  EXPECT_EQ(bench.channel->ack_floor(), 3u);
}

TEST(Channel, AMissingMetadataPageSuspendsTheSelectionWithoutLosingItsPlace) {
  Bench bench;
  bench.publish(3);
  bench.view.set_loading(2, true);
  ASSERT_EQ(bench.reserve(), 1u);
  Reservation out;
  EXPECT_EQ(bench.channel->reserve(bench.view, bench.now, kA, kTimeout, out), Reserve::loading);
  bench.requeue(1, 0);
  bench.view.set_loading(1, true);
  EXPECT_EQ(bench.channel->reserve(bench.view, bench.now, kA, kTimeout, out), Reserve::loading);
  bench.view.set_loading(1, false);
  bench.view.set_loading(2, false);
  EXPECT_EQ(bench.reserve_all(), (std::vector<Position>{1, 2, 3}));
}

}  // namespace
}  // namespace rq::queue::test
