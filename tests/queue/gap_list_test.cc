// Ranges of absent positions: examples, and a property against std::set.
#include "core/queue/gap_list.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <set>

namespace rq::queue {
namespace {

TEST(GapList, JoinsWhatTouches) {
  GapList gaps;
  gaps.add(10, 12);
  gaps.add(20, 22);
  gaps.add(13, 19);
  EXPECT_EQ(gaps.ranges(), (std::vector<storage::Range>{{10, 22}}));
  EXPECT_EQ(gaps.positions_below(~Position{0}), 13u);
}

TEST(GapList, ErasingInTheMiddleKeepsTheRest) {
  GapList gaps;
  gaps.add(10, 20);
  gaps.erase_through(14);
  EXPECT_FALSE(gaps.contains(14));
  EXPECT_TRUE(gaps.contains(15));
  EXPECT_EQ(gaps.positions_below(~Position{0}), 6u);
}

TEST(GapList, HoldsHugeRanges) {
  GapList gaps;
  gaps.add(2, Position{1} << 62);
  EXPECT_EQ(gaps.positions_below(10), 8u);
  EXPECT_TRUE(gaps.contains(1'000'000'000'000));
}

TEST(GapList, AgreesWithAnOrderedSet) {
  const bool held = rc::check([](const std::vector<std::uint16_t>& words) {
    GapList gaps;
    std::set<Position> model;
    for (std::uint16_t word : words) {
      const Position first = word % 64 + 1;
      const Position last = first + word / 64 % 8;
      if (word / 512 % 5 == 0) {
        gaps.erase_through(first);
        model.erase(model.begin(), model.upper_bound(first));
      } else {
        gaps.add(first, last);
        for (Position position = first; position <= last; ++position) model.insert(position);
      }
      RC_ASSERT(gaps.positions_below(~Position{0}) == model.size());
      Position before = 0;
      for (const storage::Range& range : gaps.ranges()) {
        RC_ASSERT((before == 0 || range.first > before + 1) && range.first <= range.last);
        before = range.last;
      }
      for (Position position = 1; position < 80; ++position) {
        RC_ASSERT(gaps.contains(position) == (model.count(position) != 0));
        const auto below = std::distance(model.begin(), model.lower_bound(position));
        RC_ASSERT(gaps.positions_below(position) == static_cast<std::uint64_t>(below));
      }
    }
  });
  EXPECT_TRUE(held);
}

}  // namespace
}  // namespace rq::queue
