// Deadline lanes: examples, and a property against std::multiset.
#include "core/base/deadline_lanes.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <vector>

namespace rq {
namespace {

struct Lease : DeadlineNode {
  int number = 0;
};

std::vector<int> drained(DeadlineLanes<Lease>& lanes) {
  std::vector<int> order;
  while (Lease* lease = lanes.first()) {
    order.push_back(lease->number);
    lanes.disarm(*lease);
  }
  return order;
}

TEST(DeadlineLanes, AnEmptyOneHasNoDeadline) {
  DeadlineLanes<Lease> lanes;
  EXPECT_EQ(lanes.first(), nullptr);
  EXPECT_EQ(lanes.earliest(), Instant::never());
}

TEST(DeadlineLanes, TheEarliestOfAllLanesComesFirst) {
  DeadlineLanes<Lease> lanes;
  Lease leases[4];
  for (int i = 0; i < 4; ++i) leases[i].number = i;
  lanes.arm(leases[0], Instant{100 + 60}, 60);
  lanes.arm(leases[1], Instant{110 + 10}, 10);
  lanes.arm(leases[2], Instant{120 + 60}, 60);
  lanes.arm(leases[3], Instant{130 + 10}, 10);
  EXPECT_EQ(lanes.earliest(), Instant{120});
  EXPECT_EQ(drained(lanes), (std::vector<int>{1, 3, 0, 2}));
}

TEST(DeadlineLanes, ADeadlineBeforeItsLanesTailIsStillInOrder) {
  DeadlineLanes<Lease> lanes;
  Lease leases[3];
  for (int i = 0; i < 3; ++i) leases[i].number = i;
  lanes.arm(leases[0], Instant{100}, 60);
  lanes.arm(leases[1], Instant{200}, 60);
  lanes.arm(leases[2], Instant{150}, 60);
  lanes.check_invariants();
  EXPECT_EQ(drained(lanes), (std::vector<int>{0, 2, 1}));
}

TEST(DeadlineLanes, MoreTimeoutsThanLanesAreStillInOrder) {
  DeadlineLanes<Lease> lanes;
  std::vector<Lease> leases(100);
  for (int i = 0; i < 100; ++i) {
    leases[i].number = 99 - i;
    lanes.arm(leases[i], Instant{1'000 - i}, i);
  }
  lanes.check_invariants();
  std::vector<int> expected(100);
  for (int i = 0; i < 100; ++i) expected[i] = i;
  EXPECT_EQ(drained(lanes), expected);
}

TEST(DeadlineLanes, AgreeWithAnOrderedMultiset) {
  const bool held = rc::check([](const std::vector<std::uint16_t>& words) {
    DeadlineLanes<Lease> lanes;
    std::vector<Lease> leases(32);
    std::vector<Instant> model(32, Instant::never());
    std::int64_t now = 0;
    for (std::uint16_t word : words) {
      Lease& lease = leases[word % 32];
      if (lease.armed()) {
        lanes.disarm(lease);
        model[word % 32] = Instant::never();
      } else {
        now += word / 32 % 4;
        const std::int64_t timeout = word / 128 % 12 * 7;
        const Instant deadline{now + timeout - (word % 5 == 0 ? 9 : 0)};
        lanes.arm(lease, deadline, timeout);
        model[word % 32] = deadline;
      }
      lanes.check_invariants();
      const Instant least = *std::min_element(model.begin(), model.end());
      RC_ASSERT(lanes.earliest() == least);
      const Lease* first = lanes.first();
      RC_ASSERT((first == nullptr ? least == Instant::never() : first->deadline() == least));
    }
  });
  EXPECT_TRUE(held);
}

}  // namespace
}  // namespace rq
