// What a Channel makes of the image it is opened with, hostile ones included.
#include <gtest/gtest.h>

#include <limits>

#include "tests/queue/channel_bench.h"

namespace rq::queue::test {
namespace {

using Bench = ChannelBench<>;

TEST(Channel, ANewChannelCountsMessagesFromItsStart) {
  Bench bench;
  bench.publish(10);
  storage::ChannelImage image;
  image.name = "later";
  image.barrier = 7;
  bench.open(image);
  EXPECT_EQ(bench.channel->ack_floor(), 7u);
  EXPECT_EQ(bench.channel->message_count(bench.view), 3u);
  EXPECT_EQ(bench.channel->image().message_count_origin, 7u);
  EXPECT_EQ(bench.reserve(), 8u);
}

TEST(Channel, AfterOpeningRecordedPositionsComeFirstAndDelayedOnesAtTheirOwnTime) {
  Bench bench;
  bench.publish(10'000, 60'000);
  bench.publish(3);
  storage::ChannelImage image = bench.channel->image();
  image.requeued_until_ms = {{3, bench.now.wall.ms() + 90'000}, {10'001, bench.now.wall.ms() - 1}};
  image.attempts = {{3, 1}, {10'003, 7}};
  bench.open(image);
  bench.view.restart();
  EXPECT_EQ(bench.reserve_all(), (std::vector<Position>{10'001, 10'003, 10'002}));
  for (Position position : {10'001u, 10'002u, 10'003u}) ASSERT_EQ(bench.finish(position), Held::ok);
  EXPECT_EQ(bench.channel->requeued_future_count(bench.now), 1u);
  bench.pass(60 * kSecond - 1);
  EXPECT_EQ(bench.reserve(), 0u);
  EXPECT_EQ(bench.channel->image().requeued_until_ms.size(), 1u);
  bench.pass(1);
  for (int i = 0; i < 9'999; ++i) ASSERT_NE(bench.reserve(), 0u);  // all but 3
  EXPECT_EQ(bench.reserve(), 0u);
  for (Position position : {1u, 2u, 4u}) ASSERT_EQ(bench.finish(position), Held::ok);
  bench.pass(30 * kSecond);
  EXPECT_EQ(bench.reserve(), 3u);
  EXPECT_EQ(bench.last.attempts, 2u);
}

TEST(Channel, ARecordedAttemptOfADelayedMessageDoesNotMakeItEarly) {
  Bench bench;
  bench.publish(1, 60'000);
  storage::ChannelImage image = bench.channel->image();
  image.attempts[1] = 2;
  bench.open(image);
  EXPECT_EQ(bench.reserve(), 0u);
  EXPECT_TRUE(bench.channel->image().requeued_until_ms.empty());
  EXPECT_EQ(bench.channel->next_deadline(bench.now), bench.now.mono + 60 * kSecond);
  bench.pass(60 * kSecond);
  ASSERT_EQ(bench.reserve(), 1u);
  EXPECT_EQ(bench.last.attempts, 3u);
}

TEST(Channel, TargetsAtTheEndsOfTimeNeitherWrapNorBlock) {
  Bench bench;
  bench.publish(3);
  storage::ChannelImage image = bench.channel->image();
  image.requeued_until_ms = {{1, std::numeric_limits<std::int64_t>::max()}, {2, std::numeric_limits<std::int64_t>::min()}};
  bench.open(image);
  EXPECT_EQ(bench.reserve_all(), (std::vector<Position>{2, 3}));
  EXPECT_EQ(bench.channel->next_deadline(bench.now), bench.now.mono + kTimeout);
  bench.finish(2);
  bench.finish(3);
  EXPECT_GT(bench.channel->next_deadline(bench.now), bench.now.mono + 100LL * 365 * 86'400 * kSecond);
  EXPECT_EQ(bench.channel->image().requeued_until_ms.at(1), std::numeric_limits<std::int64_t>::max());
}

TEST(Channel, WhatAnImageSaysAboutFinishedPositionsIsDropped) {
  Bench bench;
  bench.publish(6);
  storage::ChannelImage image = bench.channel->image();
  image.ack_floor = 2;
  image.acknowledged = {1, 3, 5};
  image.attempts = {{1, 4}, {3, 4}, {4, 4}};
  image.requeued_until_ms = {{2, 0}, {5, 0}};
  bench.open(image);
  EXPECT_EQ(bench.channel->ack_floor(), 3u);
  bench.channel->check_invariants(bench.view);
  EXPECT_EQ(bench.reserve_all(), (std::vector<Position>{4, 6}));
}

TEST(Channel, EqualHistoriesGiveEqualDigests) {
  Bench a, b;
  for (Bench* bench : {&a, &b}) {
    bench->publish(5);
    bench->publish(1, 3'000);
    bench->reserve_all();
    bench->finish(2);
    bench->requeue(3, 1'000);
  }
  const auto digest = [](const Bench& bench) {
    Hasher hasher;
    bench.channel->digest(hasher);
    return hasher.value;
  };
  EXPECT_EQ(digest(a), digest(b));
  b.finish(4);
  EXPECT_NE(digest(a), digest(b));
}

}  // namespace
}  // namespace rq::queue::test
