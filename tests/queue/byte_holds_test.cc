// The node's budget for bodies on their way (page 30 section 7.3).
#include "core/queue/byte_holds.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace rq::queue {
namespace {

struct Asker {
  explicit Asker(std::vector<int>& log_ref, int which, std::uint64_t bytes) : log(log_ref), number(which) {
    waiter.bytes = bytes;
    waiter.self = this;
    waiter.grant = [](ByteHolds::Waiter& granted) {
      auto& asker = *static_cast<Asker*>(granted.self);
      asker.log.push_back(asker.number);
    };
  }
  std::vector<int>& log;
  int number;
  ByteHolds::Waiter waiter;
};

TEST(ByteHolds, WaitersAreServedInTheOrderOfAskingEvenWhenALaterOneWouldFit) {
  std::vector<int> log;
  ByteHolds holds(100);
  Asker a(log, 1, 80), b(log, 2, 60), c(log, 3, 10), d(log, 4, 50);
  for (Asker* asker : {&a, &b, &c, &d}) holds.ask(asker->waiter);
  EXPECT_EQ(log, (std::vector<int>{1}));
  EXPECT_EQ(holds.waiting(), 3u);
  EXPECT_EQ(holds.waited(), 3u);
  EXPECT_FALSE(holds.take(1));
  EXPECT_TRUE(holds.take(0));
  holds.withdraw(a.waiter);
  EXPECT_EQ(log, (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(holds.in_use(), 70u);
  holds.give_back(60);
  EXPECT_EQ(log, (std::vector<int>{1, 2, 3, 4}));
  holds.give_back(10);
  holds.give_back(50);
  EXPECT_EQ(holds.in_use(), 0u);
  EXPECT_EQ(holds.waited(), 3u);
}

TEST(ByteHolds, AWaiterThatLeavesHoldsNothingAndLetsTheNextOneIn) {
  std::vector<int> log;
  ByteHolds holds(100);
  Asker a(log, 1, 60), b(log, 2, 50), c(log, 3, 40);
  for (Asker* asker : {&a, &b, &c}) holds.ask(asker->waiter);
  holds.withdraw(b.waiter);
  EXPECT_EQ(log, (std::vector<int>{1, 3}));
  holds.withdraw(b.waiter);
  EXPECT_EQ(holds.in_use(), 100u);
  holds.withdraw(c.waiter);
  holds.withdraw(a.waiter);
  EXPECT_EQ(holds.in_use(), 0u);
}

}  // namespace
}  // namespace rq::queue
