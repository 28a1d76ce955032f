// Replay of Channel WAL commands (page 20 sections 6.2 and 6.5).
#include "core/storage/replay.h"

#include <gtest/gtest.h>

namespace rq::storage {
namespace {

using Kind = WalCommand::Kind;

WalCommand finish(Position position) { return {.kind = Kind::finish, .position = position, .id = position}; }
WalCommand requeue(Position position, std::int64_t until, std::uint16_t attempts) {
  return {.kind = Kind::requeue, .position = position, .id = position, .available_at_ms = until, .attempts = attempts};
}
WalCommand requeue_counted(Position position, std::int64_t until, std::uint16_t attempts, std::uint64_t count) {
  WalCommand command = requeue(position, until, attempts);
  command.kind = Kind::requeue_counted;
  command.count = count;
  return command;
}

TEST(Replay, FinishesInOrderRaiseTheFloorOnly) {
  ChannelImage image;
  for (Position p = 1; p <= 5; ++p) apply(image, finish(p));
  EXPECT_EQ(image.ack_floor, 5u);
  EXPECT_TRUE(image.acknowledged.empty());
}

TEST(Replay, AFinishThatClosesTheHoleRaisesTheFloorOverAllThatFollow) {
  ChannelImage image;
  for (Position p : {5u, 3u, 2u, 7u, 3u}) apply(image, finish(p));
  EXPECT_EQ(image.acknowledged, (std::vector<Position>{2, 3, 5, 7}));
  apply(image, finish(1));
  EXPECT_EQ(image.ack_floor, 3u);
  EXPECT_EQ(image.acknowledged, (std::vector<Position>{5, 7}));
}

TEST(Replay, FinishForgetsTargetAndAttempts) {
  ChannelImage image;
  apply(image, requeue(2, 5000, 3));
  apply(image, finish(2));
  EXPECT_TRUE(image.requeued_until_ms.empty());
  EXPECT_TRUE(image.attempts.empty());
}

TEST(Replay, EmptyAndEvictDropEverythingUpToTheirPosition) {
  for (Kind kind : {Kind::empty, Kind::evict}) {
    ChannelImage image;
    apply(image, requeue(2, 5000, 1));
    apply(image, requeue(6, 5000, 1));
    apply(image, finish(4));
    apply(image, finish(8));
    apply(image, {.kind = kind, .position = 5});
    EXPECT_EQ(image.ack_floor, 5u);
    EXPECT_EQ(image.acknowledged, std::vector<Position>{8});
    EXPECT_EQ(image.requeued_until_ms, (std::map<Position, std::int64_t>{{6, 5000}}));
    EXPECT_EQ(image.attempts, (std::map<Position, std::uint16_t>{{6, 1}}));
    apply(image, {.kind = kind, .position = 3});
    EXPECT_EQ(image.ack_floor, 5u);
  }
}

TEST(Replay, ARequeueOfLevelOneCountsUnlessTargetAndAttemptsAreAlreadyThere) {
  ChannelImage image;
  apply(image, requeue(2, 5000, 1));
  apply(image, requeue(2, 5000, 1));
  EXPECT_EQ(image.requeue_count, 1u);
  apply(image, requeue(2, 6000, 2));
  EXPECT_EQ(image.requeue_count, 2u);
}

TEST(Replay, CumulativeCountsNeverGoBack) {
  ChannelImage image;
  apply(image, requeue_counted(2, 5000, 1, 9));
  apply(image, requeue_counted(3, 5000, 1, 4));
  apply(image, {.kind = Kind::timeout, .count = 7});
  apply(image, {.kind = Kind::timeout, .count = 3});
  EXPECT_EQ(image.requeue_count, 9u);
  EXPECT_EQ(image.timeout_count, 7u);
}

TEST(Replay, ARequeueOfAFinishedPositionIsIgnored) {
  ChannelImage image;
  apply(image, finish(1));
  apply(image, finish(3));
  apply(image, requeue(1, 5000, 1));
  apply(image, requeue(3, 5000, 1));
  EXPECT_TRUE(image.requeued_until_ms.empty());
  EXPECT_TRUE(image.attempts.empty());
  EXPECT_EQ(image.requeue_count, 0u);
}

TEST(Replay, TheHighestPositionDoesNotWrapTheFloor) {
  ChannelImage image;
  apply(image, {.kind = Kind::empty, .position = ~Position{0}});
  apply(image, finish(~Position{0}));
  apply(image, finish(1));
  EXPECT_EQ(image.ack_floor, ~Position{0});
  EXPECT_TRUE(image.acknowledged.empty());
}

TEST(Replay, PauseEndsAtItsLastValue) {
  ChannelImage image;
  apply(image, {.kind = Kind::pause, .paused = true});
  EXPECT_TRUE(image.paused);
  apply(image, {.kind = Kind::pause, .paused = false});
  EXPECT_FALSE(image.paused);
}

}  // namespace
}  // namespace rq::storage
