// Output: what a connection stages messages in.
#include "core/broker/output.h"

#include <gtest/gtest.h>

namespace rq::broker {
namespace {

queue::Delivery delivery(queue::MessageId id, std::size_t bytes) {
  const std::string body(bytes, 'b');
  return {queue::ConsumerId::none, id, 1, 1, 1, Slice::copy_of(bytes_of(body))};
}

// Stages and writes a batch; where its first bytes stood.
const std::byte* batch(Output& output, std::size_t messages, std::size_t bytes) {
  for (std::size_t i = 0; i < messages; ++i) output.message(delivery(i + 1, bytes), {});
  EXPECT_TRUE(output.begin());
  ConstBuf bufs[Output::kBuffersMax];
  const std::byte* first = nullptr;
  while (output.writing()) {
    const std::size_t count = output.fill(bufs);
    if (first == nullptr) first = bufs[0].data();
    std::size_t sum = 0;
    for (std::size_t i = 0; i < count; ++i) sum += bufs[i].size();
    output.advance(sum);
  }
  return first;
}

TEST(Output, TheBuffersOfAWrittenBatchServeTheNextOneOfAnyConnection) {
  Output::Spare spare;
  Output a(spare), b(spare);
  const std::byte* first = batch(a, 64, 1'000);
  EXPECT_EQ(spare.count(), 1u);
  EXPECT_EQ(batch(b, 64, 1'000), first);
  EXPECT_EQ(spare.count(), 1u);
  EXPECT_EQ(batch(a, 1, 10), first);
  EXPECT_EQ(spare.count(), 1u);
}

TEST(Output, SmallBuffersStayWithTheirConnection) {
  Output::Spare spare;
  Output output(spare);
  batch(output, 2, 100);
  EXPECT_EQ(spare.count(), 0u);
}

TEST(Output, FewBuffersAreKeptAndNoHugeOnes) {
  Output::Spare spare;
  std::vector<std::unique_ptr<Output>> outputs;
  for (std::size_t i = 0; i < 2 * Output::Spare::kBuffersMax; ++i) {
    outputs.push_back(std::make_unique<Output>(spare));
    for (std::size_t k = 0; k < 64; ++k) outputs.back()->message(delivery(k + 1, 1'000), {});
  }
  for (const auto& output : outputs) batch(*output, 1, 1);
  EXPECT_EQ(spare.count(), Output::Spare::kBuffersMax);
  Output::Spare other;
  Output huge(other);
  batch(huge, 1'000, 1'000);
  EXPECT_EQ(other.count(), 0u);
}

TEST(Output, WhatWasNeverSubmittedComesBackAndLeavesItsBuffers) {
  Output::Spare spare;
  Output output(spare);
  for (std::size_t k = 0; k < 64; ++k) output.message(delivery(k + 1, 1'000), {});
  EXPECT_EQ(output.abandon().size(), 64u);
  EXPECT_TRUE(output.empty());
}

}  // namespace
}  // namespace rq::broker
