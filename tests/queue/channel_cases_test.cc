// Numbered cases of page 30 that a Channel decides alone, and the timing half of C-60.
#include <gtest/gtest.h>

#include "tests/queue/channel_bench.h"

namespace rq::queue::test {
namespace {

using Bench = ChannelBench<>;

std::vector<Position> range(Position first, Position last) {
  std::vector<Position> positions;
  for (Position position = first; position <= last; ++position) positions.push_back(position);
  return positions;
}

// I-10, I-29: only the current token of an id changes anything.
TEST(ChannelCases, Q_25_AFinishAfterTheTimeoutFailsAndTheNewHoldersSucceeds) {
  Bench bench;
  bench.publish(1);
  ASSERT_EQ(bench.reserve(kA), 1u);
  const Token stale = bench.last.token;
  bench.pass(kTimeout);
  ASSERT_EQ(bench.reserve(kB), 1u);
  EXPECT_NE(bench.last.token, stale);
  EXPECT_EQ(bench.finish(1, kA), Held::not_owner);
  EXPECT_FALSE(bench.channel->cancel(VectorView::id(1), stale));
  EXPECT_EQ(bench.finish(1, kB), Held::ok);
}

TEST(ChannelCases, Q_26_ALateFinishFollowsTheDeliveryThatTheConnectionHoldsNow) {
  Bench bench;
  bench.publish(1);
  ASSERT_EQ(bench.reserve(kA), 1u);
  bench.pass(kTimeout);
  ASSERT_EQ(bench.reserve(kA), 1u);
  EXPECT_EQ(bench.last.attempts, 2u);
  EXPECT_EQ(bench.finish(1), Held::ok);
  EXPECT_EQ(bench.finish(1), Held::not_in_flight);
  EXPECT_EQ(bench.channel->ack_floor(), 1u);
  EXPECT_EQ(bench.reserve(), 0u);
}

// I-30: whichever of the timeout and the finish is applied first wins.
TEST(ChannelCases, Q_27_TimeoutBeforeFinishRedelivers) {
  Bench bench;
  bench.publish(1);
  ASSERT_EQ(bench.reserve(), 1u);
  bench.pass(kTimeout);
  EXPECT_EQ(bench.finish(1), Held::not_in_flight);
  EXPECT_EQ(bench.reserve(), 1u);
  EXPECT_EQ(bench.last.attempts, 2u);
}

TEST(ChannelCases, Q_27_FinishBeforeTimeoutLeavesTheTimeoutCountAlone) {
  Bench bench;
  bench.publish(1);
  ASSERT_EQ(bench.reserve(), 1u);
  EXPECT_EQ(bench.finish(1), Held::ok);
  EXPECT_TRUE(bench.pass(kTimeout).empty());
  EXPECT_EQ(bench.channel->timeout_count(), 0u);
  EXPECT_EQ(bench.channel->ack_floor(), 1u);
}

// I-35.
TEST(ChannelCases, Q_28_OfTwoCommandsForOneIdTheFirstAppliesAndTheSecondFails) {
  Bench bench;
  bench.publish(2);
  ASSERT_EQ(bench.reserve_all(), range(1, 2));
  EXPECT_EQ(bench.finish(1), Held::ok);
  EXPECT_EQ(bench.requeue(1, 0), Held::not_in_flight);
  EXPECT_EQ(bench.requeue(2, 1'000), Held::ok);
  EXPECT_EQ(bench.finish(2), Held::not_in_flight);
  EXPECT_EQ(bench.channel->ack_floor(), 1u);
  EXPECT_EQ(bench.channel->requeue_count(), 1u);
  ASSERT_EQ(bench.wal.size(), 2u);  // the second of each pair leaves no command
}

TEST(ChannelCases, Q_29_ARequeueWithoutDelayIsOfferedAtOnceBeforeFreshPositions) {
  Bench bench;
  bench.publish(3);
  ASSERT_EQ(bench.reserve(), 1u);
  EXPECT_EQ(bench.requeue(1, 0), Held::ok);
  ASSERT_EQ(bench.reserve(), 1u);
  EXPECT_EQ(bench.last.attempts, 2u);
  EXPECT_EQ(bench.channel->requeue_count(), 1u);
  EXPECT_EQ(bench.reserve(), 2u);
}

TEST(ChannelCases, Q_30_ARequeueTargetSurvivesACrashAndIsNotEarly) {
  Bench bench;
  bench.publish(1);
  ASSERT_EQ(bench.reserve(), 1u);
  EXPECT_EQ(bench.requeue(1, 5'000), Held::ok);
  bench.pass(kSecond);
  bench.crash();
  EXPECT_EQ(bench.reserve(), 0u);
  EXPECT_EQ(bench.channel->next_deadline(bench.now), bench.now.mono + 4 * kSecond);
  bench.pass(4 * kSecond - 1);
  EXPECT_EQ(bench.reserve(), 0u);
  bench.pass(1);
  ASSERT_EQ(bench.reserve(), 1u);
  EXPECT_EQ(bench.last.attempts, 2u);
}

TEST(ChannelCases, Q_33_TouchesExtendUpToFifteenMinutesAfterTheDelivery) {
  Bench bench;
  bench.publish(1);
  ASSERT_EQ(bench.reserve(), 1u);
  for (int i = 0; i < 29; ++i) {
    EXPECT_TRUE(bench.pass(30 * kSecond).empty());
    EXPECT_EQ(bench.touch(1), Held::ok);
  }
  EXPECT_TRUE(bench.pass(30 * kSecond - 1).empty());
  EXPECT_EQ(bench.touch(1), Held::ok);  // at the limit it succeeds and changes nothing
  EXPECT_EQ(bench.pass(1).size(), 1u);  // 15 min after the delivery
  EXPECT_EQ(bench.touch(1), Held::not_in_flight);
}

TEST(ChannelCases, Q_33_OneMissedTouchTimesOutAfterTheMessageTimeout) {
  Bench bench;
  bench.publish(1);
  ASSERT_EQ(bench.reserve(), 1u);
  bench.pass(30 * kSecond);
  EXPECT_EQ(bench.touch(1), Held::ok);
  EXPECT_TRUE(bench.pass(60 * kSecond - 1).empty());
  EXPECT_EQ(bench.pass(1).size(), 1u);
  EXPECT_EQ(bench.channel->timeout_count(), 1u);
}

TEST(ChannelCases, Q_34_OneUnfinishedPositionLimitsTheChannelToTheAckWindow) {
  Bench bench;
  bench.publish(65'540);
  EXPECT_EQ(bench.reserve_all(), range(1, 65'536));
  EXPECT_TRUE(bench.channel->blocked_by_ack_window(bench.view));
  for (Position position = 2; position <= 65'536; ++position) ASSERT_EQ(bench.finish(position), Held::ok);
  EXPECT_EQ(bench.channel->ack_floor(), 0u);
  EXPECT_EQ(bench.channel->ack_gap(), 65'535u);
  EXPECT_EQ(bench.reserve(), 0u);
  ASSERT_EQ(bench.finish(1), Held::ok);
  EXPECT_EQ(bench.channel->ack_floor(), 65'536u);
  EXPECT_EQ(bench.channel->ack_gap(), 0u);
  EXPECT_FALSE(bench.channel->blocked_by_ack_window(bench.view));
  EXPECT_EQ(bench.reserve_all(), range(65'537, 65'540));
}

TEST(ChannelCases, Q_35_ADeferredMessageAtTheFloorLetsExactlyTheWindowBehindItPass) {
  ChannelSettings settings;
  settings.max_ack_gap = 100;
  Bench bench(settings);
  bench.publish(1, 60'000);
  bench.publish(110);
  EXPECT_EQ(bench.reserve_all(), range(2, 100));
  for (Position position = 2; position <= 100; ++position) ASSERT_EQ(bench.finish(position), Held::ok);
  EXPECT_EQ(bench.reserve(), 0u);
  bench.pass(60 * kSecond);
  ASSERT_EQ(bench.reserve(), 1u);
  EXPECT_EQ(bench.reserve(), 0u);  // due, but not finished
  ASSERT_EQ(bench.finish(1), Held::ok);
  EXPECT_EQ(bench.reserve_all(), range(101, 111));
}

TEST(ChannelCases, Q_37_DelayedMessagesComeAtTheirTimesEachOnce) {
  Bench bench;
  bench.publish(1, 30'000);
  bench.publish(1, 10'000);
  bench.publish(1, 20'000);
  EXPECT_EQ(bench.reserve(), 0u);
  for (Position expected : {2u, 3u, 1u}) {
    EXPECT_EQ(bench.channel->next_deadline(bench.now), bench.now.mono + 10 * kSecond);
    bench.pass(10 * kSecond - 1);
    EXPECT_EQ(bench.reserve(), 0u);
    bench.pass(1);
    EXPECT_EQ(bench.reserve(), expected);
    EXPECT_EQ(bench.reserve(), 0u);
    EXPECT_EQ(bench.finish(expected), Held::ok);
  }
  EXPECT_EQ(bench.channel->ack_floor(), 3u);
}

// With everything folded into one pair, and with single messages remembered.
TEST(ChannelCases, Q_38_ANearerDelayedMessageComesAtItsOwnTimeNotAtTheOlderPairs) {
  for (std::uint32_t near : {0u, 512u}) {
    ChannelSettings settings;
    settings.deferred_near = near;
    Bench bench(settings);
    bench.publish(1, 60'000);
    EXPECT_EQ(bench.reserve(), 0u);
    bench.publish(1, 5'000);
    EXPECT_EQ(bench.reserve(), 0u);
    EXPECT_EQ(bench.channel->next_deadline(bench.now), bench.now.mono + 5 * kSecond);
    bench.pass(5 * kSecond);
    EXPECT_EQ(bench.reserve(), 2u);
    bench.pass(55 * kSecond - 1);
    EXPECT_EQ(bench.reserve(), 0u);
    bench.pass(1);
    EXPECT_EQ(bench.reserve(), 1u);
  }
}

// In the form of D-28: what this process delayed comes at its steady time; what an earlier one delayed shifts with the wall
// clock.
TEST(ChannelCases, Q_39_AWallClockSetBackHoldsUpNothingThatThisProcessDelayed) {
  Bench bench;
  bench.publish(2, 30'000);
  bench.publish(1);
  EXPECT_EQ(bench.reserve(), 3u);
  bench.now.wall.ns -= 3'600 * kSecond;
  bench.pass(30 * kSecond);
  EXPECT_EQ(bench.reserve_all(), range(1, 2));
  EXPECT_TRUE(bench.pass(30 * kSecond - 1).empty());
  ASSERT_EQ(bench.pass(1).size(), 1u);  // the steady timeout of message 3 is where it was
  EXPECT_EQ(bench.reserve(), 3u);
}

TEST(ChannelCases, Q_39_AWallClockSetBackShiftsOlderDelaysWithoutLossOrDuplicate) {
  for (std::uint32_t near : {0u, 512u}) {
    ChannelSettings settings;
    settings.deferred_near = near;
    Bench bench(settings);
    bench.publish(3, 30'000);
    bench.stop_and_start();
    ASSERT_EQ(bench.reserve(), 0u);
    bench.pass(30 * kSecond);
    ASSERT_EQ(bench.reserve(), 1u);  // all three were found due; the clock goes back before the others are taken
    bench.now.wall.ns -= 3'600 * kSecond;
    EXPECT_EQ(bench.reserve(), 0u);
    bench.channel->check_invariants(bench.view);
    ASSERT_EQ(bench.finish(1), Held::ok);
    bench.pass(3'600 * kSecond - 1);
    EXPECT_EQ(bench.reserve(), 0u);
    bench.pass(1);
    EXPECT_EQ(bench.reserve_all(), range(2, 3));
  }
}

TEST(ChannelCases, C_60_AnUnansweredMessageIsRedeliveredExactlyAtItsTimeout) {
  Bench bench;
  bench.publish(1);
  ASSERT_EQ(bench.reserve(kA, kSecond), 1u);
  EXPECT_EQ(bench.channel->next_deadline(bench.now), bench.now.mono + kSecond);
  EXPECT_TRUE(bench.pass(kSecond - 1).empty());
  EXPECT_EQ(bench.reserve(), 0u);
  EXPECT_EQ(bench.pass(1).size(), 1u);
  ASSERT_EQ(bench.reserve(), 1u);
  EXPECT_EQ(bench.last.attempts, 2u);
  EXPECT_EQ(bench.channel->timeout_count(), 1u);
  EXPECT_EQ(bench.channel->requeue_count(), 0u);
}

}  // namespace
}  // namespace rq::queue::test
