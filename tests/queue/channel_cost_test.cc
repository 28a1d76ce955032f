// What a Channel costs: no allocation in steady state, memory that does not grow with what is delayed, and Q-36.
#include <gtest/gtest.h>

#include "tests/queue/allocation_count.h"
#include "tests/queue/channel_bench.h"

namespace rq::queue::test {
namespace {

// A log of any length that takes no memory: messages 1..delayed come due together at a given time, all later ones are due.
class FormulaView final : public MessageView {
 public:
  static MessageId id(Position position) { return VectorView::id(position); }
  void restart() {}
  std::uint64_t finds = 0;
  Position delayed = 0;
  Position last = 0;
  WallTime due_at{};
  std::int64_t spread_ns = 0;  // between the due times of neighbours

  Lookup find(Position position, MessageMeta& out) override {
    ++finds;
    if (position == 0 || position > last) return Lookup::absent;
    out = MessageMeta{};
    out.position = position;
    out.id = id(position);
    return Lookup::found;
  }
  Position deliverable() const override { return last; }
  Position next_present(Position from) const override { return from; }
  std::uint64_t absent_count(Position, Position) const override { return 0; }
  Due due(const MessageMeta& message) const override {
    if (message.position > delayed) return {WallTime{0}, Instant::never()};
    return {WallTime{due_at.ns + static_cast<std::int64_t>(message.position) * spread_ns}, Instant::never()};
  }
};

using Bench = ChannelBench<FormulaView>;

TEST(ChannelCost, ReserveAndFinishInOrderAllocateNothing) {
  for (int window : {1, 64, 1'000}) {
    Bench bench;
    bench.view.last = 1'000'000;
    std::optional<storage::WalCommand> command;
    Position next = 1;
    const auto round = [&] {
      for (int i = 0; i < window; ++i) ASSERT_NE(bench.reserve(), 0u);
      for (int i = 0; i < window; ++i) ASSERT_EQ(bench.channel->finish(kA, FormulaView::id(next++), command), Held::ok);
    };
    round();
    const std::uint64_t before = rq::test::allocations();
    for (int i = 0; i < 20'000 / window; ++i) round();
    EXPECT_EQ(rq::test::allocations(), before) << window;
  }
}

TEST(ChannelCost, FinishesOutOfOrderAllocateNothingEither) {
  Bench bench;
  bench.view.last = 1'000'000;
  std::optional<storage::WalCommand> command;
  Position base = 0;
  const auto round = [&] {
    for (int i = 0; i < 256; ++i) ASSERT_NE(bench.reserve(), 0u);
    for (Position i = 0; i < 256; ++i)  // an odd factor visits all of them
      ASSERT_EQ(bench.channel->finish(kA, FormulaView::id(base + 1 + i * 37 % 256), command), Held::ok);
    base += 256;
    ASSERT_EQ(bench.channel->ack_floor(), base);
  };
  round();
  const std::uint64_t before = rq::test::allocations();
  for (int i = 0; i < 200; ++i) round();
  EXPECT_LE(rq::test::allocations() - before, 2u);  // the second page, the first time a round crosses a border
}

TEST(ChannelCost, RequeueTouchCancelAndTimeoutAllocateNothing) {
  Bench bench;
  bench.view.last = 1'000'000;
  std::optional<storage::WalCommand> command;
  std::vector<Channel::Released> released;
  released.reserve(16);
  const auto round = [&] {
    for (int i = 0; i < 4; ++i) ASSERT_NE(bench.reserve(), 0u);
    const Position first = *bench.channel->lowest_in_flight();
    ASSERT_EQ(bench.channel->requeue(kA, FormulaView::id(first), 0, bench.now, command), Held::ok);
    ASSERT_EQ(bench.reserve(), first);
    ASSERT_EQ(bench.channel->requeue(kA, FormulaView::id(first), 1'000, bench.now, command), Held::ok);
    ASSERT_EQ(bench.touch(first + 1), Held::ok);
    ASSERT_TRUE(bench.channel->cancel(FormulaView::id(bench.last.message.position + 3), bench.last.token - 1));
    bench.now.mono.ns += kTimeout;
    bench.now.wall.ns += kTimeout;
    released.clear();
    bench.channel->expire(bench.now, released, command);
    ASSERT_EQ(released.size(), 2u);
    for (int i = 0; i < 4; ++i) {
      ASSERT_EQ(bench.reserve(), first + static_cast<Position>(i));
      ASSERT_EQ(bench.channel->finish(kA, FormulaView::id(first + static_cast<Position>(i)), command), Held::ok);
    }
  };
  round();
  const std::uint64_t before = rq::test::allocations();
  for (int i = 0; i < 1'000; ++i) round();
  EXPECT_EQ(rq::test::allocations(), before);
}

TEST(ChannelCost, WhatABurstHeldIsGivenBackWhenItIsFinished) {
  Bench bench;
  bench.view.last = 60'000;
  std::optional<storage::WalCommand> command;
  const std::size_t before = rq::test::bytes_in_use();
  while (bench.reserve() != 0) {
  }
  EXPECT_GT(rq::test::bytes_in_use() - before, 60'000u * 64);
  for (Position position = 1; position <= 60'000; ++position)
    ASSERT_EQ(bench.channel->finish(kA, FormulaView::id(position), command), Held::ok);
  EXPECT_LT(rq::test::bytes_in_use() - before, 64u * 1'024);
}

TEST(ChannelCost, Q_36_AMillionFarDelayedMessagesCostConstantMemoryAndHoldBackWhatIsBehindThem) {
  Bench bench;
  bench.view.delayed = 1'000'000;
  bench.view.last = 1'000'001;
  bench.view.due_at = {bench.now.wall.ns + 3'600 * kSecond};
  const std::size_t before = rq::test::bytes_in_use();
  EXPECT_EQ(bench.reserve(), 0u);
  EXPECT_TRUE(bench.channel->blocked_by_ack_window(bench.view));
  EXPECT_LT(rq::test::bytes_in_use() - before, 32u * 1'024);
  const std::uint64_t finds = bench.view.finds;
  for (int i = 0; i < 1'000; ++i) EXPECT_EQ(bench.reserve(), 0u);
  EXPECT_EQ(bench.view.finds, finds);  // waiting does not look again
  const storage::ChannelImage image = bench.channel->image();
  EXPECT_TRUE(image.requeued_until_ms.empty() && image.attempts.empty() && image.acknowledged.empty());

  bench.pass(3'600 * kSecond);
  std::optional<storage::WalCommand> command;
  for (Position position = 1; position <= 1'000'000 - 65'536 + 1; ++position) {
    ASSERT_EQ(bench.reserve(), position);
    ASSERT_EQ(bench.channel->finish(kA, FormulaView::id(position), command), Held::ok);
  }
  // Only now is the plain message within the window of the oldest unfinished one.
  for (Position position = 1'000'000 - 65'536 + 2; position <= 1'000'001; ++position) ASSERT_EQ(bench.reserve(), position);
  EXPECT_EQ(bench.reserve(), 0u);
}

TEST(ChannelCost, DelayedMessagesThatComeDueOneByOneAreNotLookedAtManyTimes) {
  Bench bench;
  bench.view.delayed = bench.view.last = 20'000;
  bench.view.due_at = bench.now.wall;
  bench.view.spread_ns = kMillisecond;
  std::optional<storage::WalCommand> command;
  EXPECT_EQ(bench.reserve(), 0u);
  for (Position position = 1; position <= 20'000; ++position) {
    bench.pass(kMillisecond);
    ASSERT_EQ(bench.reserve(), position);
    ASSERT_EQ(bench.reserve(), 0u);
    ASSERT_EQ(bench.channel->finish(kA, FormulaView::id(position), command), Held::ok);
  }
  EXPECT_LT(bench.view.finds, 20'000u * 40);
}

}  // namespace
}  // namespace rq::queue::test
