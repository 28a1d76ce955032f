// A Channel's behaviour outside the numbered cases: reservations that end without a command, commands and their records.
#include <gtest/gtest.h>

#include "tests/queue/channel_bench.h"

namespace rq::queue::test {
namespace {

using Bench = ChannelBench<>;
using Kind = storage::WalCommand::Kind;

TEST(Channel, ACancelledReservationCountsNoAttemptAndComesBeforeFreshPositions) {
  Bench bench;
  bench.publish(2);
  ASSERT_EQ(bench.reserve(), 1u);
  EXPECT_TRUE(bench.channel->cancel(VectorView::id(1), bench.last.token));
  EXPECT_TRUE(bench.channel->image().attempts.empty());
  ASSERT_EQ(bench.reserve(kB), 1u);
  EXPECT_EQ(bench.last.attempts, 1u);
}

TEST(Channel, ATokenEndsWithItsReservation) {
  Bench bench;
  bench.publish(1);
  ASSERT_EQ(bench.reserve(), 1u);
  const Token first = bench.last.token;
  EXPECT_TRUE(bench.channel->cancel(VectorView::id(1), first));
  EXPECT_FALSE(bench.channel->cancel(VectorView::id(1), first));
  ASSERT_EQ(bench.reserve(), 1u);
  EXPECT_FALSE(bench.channel->cancel(VectorView::id(1), first));
  EXPECT_EQ(bench.channel->in_flight_count(), 1u);
}

TEST(Channel, AttemptsStopAt65535AndACancelTakesNothingBackThere) {
  Bench bench;
  bench.publish(1);
  storage::ChannelImage image = bench.channel->image();
  image.attempts[1] = 65'534;
  bench.open(image);
  ASSERT_EQ(bench.reserve(), 1u);
  EXPECT_EQ(bench.last.attempts, 65'535u);
  EXPECT_EQ(bench.requeue(1, 0), Held::ok);
  ASSERT_EQ(bench.reserve(), 1u);
  EXPECT_EQ(bench.last.attempts, 65'535u);
  EXPECT_TRUE(bench.channel->cancel(VectorView::id(1), bench.last.token));
  EXPECT_EQ(bench.channel->image().attempts.at(1), 65'535u);
}

TEST(Channel, AConsumerThatLeavesReleasesWhatItHoldsAndNothingElse) {
  Bench bench;
  bench.publish(4);
  for (ConsumerId owner : {kA, kB, kA, kB}) ASSERT_NE(bench.reserve(owner), 0u);
  EXPECT_EQ(bench.channel->held_by(kA), 2u);
  EXPECT_EQ(bench.channel->release_all(kA), 2u);
  EXPECT_EQ(bench.channel->release_all(kA), 0u);
  EXPECT_EQ(bench.channel->held_by(kA), 0u);
  EXPECT_EQ(bench.channel->held_by(kB), 2u);
  EXPECT_EQ(bench.reserve(kB), 1u);
  EXPECT_EQ(bench.last.attempts, 2u);
  EXPECT_EQ(bench.reserve(kB), 3u);
  EXPECT_EQ(bench.channel->timeout_count(), 0u);
}

TEST(Channel, ConsumersThatComeAndGoLeaveNothingBehind) {
  Bench bench;
  bench.publish(1);
  for (std::uint64_t i = 1; i < 10'000; ++i) {
    ASSERT_EQ(bench.reserve(ConsumerId{i}), 1u);
    ASSERT_TRUE(bench.channel->cancel(VectorView::id(1), bench.last.token));
  }
  bench.channel->check_invariants(bench.view);
}

TEST(Channel, CommandsSayWhetherTheMessageIsHeldAndByWhom) {
  Bench bench;
  bench.publish(1);
  EXPECT_EQ(bench.finish(1), Held::not_in_flight);
  EXPECT_EQ(bench.touch(1), Held::not_in_flight);
  ASSERT_EQ(bench.reserve(kA), 1u);
  EXPECT_EQ(bench.finish(1, kB), Held::not_owner);
  EXPECT_EQ(bench.requeue(1, 0, kB), Held::not_owner);
  EXPECT_EQ(bench.touch(1, kB), Held::not_owner);
  EXPECT_TRUE(bench.wal.empty());
  std::optional<storage::WalCommand> command;
  MessageMeta meta;
  EXPECT_EQ(bench.channel->finish(kA, VectorView::id(1), command, &meta), Held::ok);
  EXPECT_EQ(meta, bench.view.at(1));
}

// --- durable commands

TEST(Channel, CommandsAreThoseOfTheFeatureLevel) {
  for (std::uint32_t level : {1u, 2u}) {
    Bench bench(Bench::with_level(level));
    bench.publish(2);
    bench.reserve_all();
    bench.requeue(1, 2'000);
    bench.pass(kTimeout);
    const std::int64_t target = bench.view.at(1).timestamp_ns / kMillisecond + 2'000;
    ASSERT_EQ(bench.wal.size(), level);
    EXPECT_EQ(bench.wal[0], (storage::WalCommand{.kind = level == 1 ? Kind::requeue : Kind::requeue_counted,
                                                 .position = 1,
                                                 .id = VectorView::id(1),
                                                 .available_at_ms = target,
                                                 .attempts = 1,
                                                 .count = level == 1 ? 0u : 1u}));
    if (level == 2) {
      EXPECT_EQ(bench.wal[1], (storage::WalCommand{.kind = Kind::timeout, .count = 1}));
    }
  }
}

TEST(Channel, AnEphemeralChannelWritesNothing) {
  Bench bench(Bench::with_level(2), true);
  bench.publish(4);
  bench.reserve_all();
  bench.finish(1);
  bench.requeue(2, 0);
  bench.pass(kTimeout);
  std::vector<Channel::Released> released;
  bench.keep(bench.channel->set_paused(true));
  bench.keep(bench.channel->empty_through(3, released));
  std::optional<storage::WalCommand> command;
  EXPECT_TRUE(bench.channel->finish_position(4, VectorView::id(4), command));
  EXPECT_FALSE(command.has_value());
  EXPECT_TRUE(bench.wal.empty());
  EXPECT_EQ(bench.channel->ack_floor(), 4u);
  EXPECT_FALSE(bench.channel->counters_dirty());
}

TEST(Channel, TimeoutsAtLevelOneMakeTheCountersDirtyUntilTheyAreStored) {
  Bench bench(Bench::with_level(1));
  bench.publish(2);
  bench.reserve_all();
  bench.pass(kTimeout);
  EXPECT_TRUE(bench.channel->counters_dirty());
  EXPECT_EQ(bench.channel->stored_timeout_count(), 0u);
  const storage::ChannelImage image = bench.channel->image();
  ASSERT_EQ(bench.reserve(), 1u);
  bench.pass(kTimeout);  // while the image is being written
  bench.channel->counters_stored(image.timeout_count);
  EXPECT_EQ(bench.channel->stored_timeout_count(), 2u);
  EXPECT_TRUE(bench.channel->counters_dirty());
  bench.channel->counters_stored();
  EXPECT_FALSE(bench.channel->counters_dirty());
  EXPECT_EQ(bench.channel->stored_timeout_count(), 3u);
}

TEST(Channel, TimeoutsAtLevelTwoAreInTheLog) {
  Bench bench(Bench::with_level(2));
  bench.publish(1);
  bench.reserve_all();
  bench.pass(kTimeout);
  EXPECT_FALSE(bench.channel->counters_dirty());
  EXPECT_EQ(bench.channel->stored_timeout_count(), 1u);
}

TEST(Channel, ANegativeDelayIsNone) {
  Bench bench;
  bench.publish(1);
  ASSERT_EQ(bench.reserve(), 1u);
  EXPECT_EQ(bench.requeue(1, -5'000), Held::ok);
  EXPECT_EQ(bench.wal.back().available_at_ms, bench.now.wall.ms());
  EXPECT_EQ(bench.reserve(), 1u);
}

TEST(Channel, ARequeueTargetEndsAtTheEarlierOfItsWallAndItsSteadyTime) {
  for (std::int64_t jump : {-3'600 * kSecond, 3'600 * kSecond}) {
    Bench bench;
    bench.publish(1);
    ASSERT_EQ(bench.reserve(), 1u);
    EXPECT_EQ(bench.requeue(1, 5'000), Held::ok);
    bench.now.wall.ns += jump;
    EXPECT_EQ(bench.reserve(), jump > 0 ? 1u : 0u);
    if (jump > 0) continue;
    bench.pass(5 * kSecond - 1);
    EXPECT_EQ(bench.reserve(), 0u);
    bench.pass(1);
    EXPECT_EQ(bench.reserve(), 1u);
  }
}

TEST(Channel, ADelayIsNeverCutShortByTheMillisecondsOfItsTarget) {
  Bench bench;
  bench.now.wall.ns += 999'999;
  bench.publish(1);
  ASSERT_EQ(bench.reserve(), 1u);
  EXPECT_EQ(bench.requeue(1, 5), Held::ok);
  bench.pass(5 * kMillisecond - 1);
  EXPECT_EQ(bench.reserve(), 0u);
  bench.pass(1);
  EXPECT_EQ(bench.reserve(), 1u);
}

TEST(Channel, AReachedTargetStaysInTheCheckpointUntilTheMessageIsReserved) {
  Bench bench;
  bench.publish(1);
  ASSERT_EQ(bench.reserve(), 1u);
  bench.requeue(1, 1'000);
  bench.pass(kSecond);
  EXPECT_EQ(bench.channel->requeued_future_count(bench.now), 0u);
  EXPECT_EQ(bench.channel->image().requeued_until_ms.size(), 1u);
  ASSERT_EQ(bench.reserve(), 1u);
  EXPECT_TRUE(bench.channel->image().requeued_until_ms.empty());
}

}  // namespace
}  // namespace rq::queue::test
