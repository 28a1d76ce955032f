// Sparse set of positions: examples, and a property against std::set.
#include "core/queue/ack_set.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <set>
#include <vector>

namespace rq::queue {
namespace {

std::vector<Position> listed(const AckSet& set) {
  std::vector<Position> all;
  set.for_each([&](Position position) { all.push_back(position); });
  return all;
}

TEST(AckSet, KnowsWhatWasInsertedOnce) {
  AckSet set;
  EXPECT_TRUE(set.insert(5));
  EXPECT_FALSE(set.insert(5));
  EXPECT_TRUE(set.contains(5));
  EXPECT_FALSE(set.contains(4));
  EXPECT_EQ(set.size(), 1u);
}

TEST(AckSet, FarApartPositionsCostOnePageEach) {
  AckSet set;
  const std::vector<Position> far = {1, 5'000'000'000, Position{1} << 60, ~Position{0} - 1};
  for (Position position : far) set.insert(position);
  EXPECT_EQ(set.pages(), 4u);
  EXPECT_EQ(listed(set), far);
}

TEST(AckSet, NextClearRunsOverFullPages) {
  AckSet set;
  for (Position position = 4'000; position < 13'000; ++position) set.insert(position);
  EXPECT_EQ(set.next_clear(1), 1u);
  EXPECT_EQ(set.next_clear(4'000), 13'000u);
  EXPECT_EQ(set.next_clear(4'096), 13'000u);
  EXPECT_EQ(set.next_clear(12'999), 13'000u);
}

TEST(AckSet, NextClearStopsAtThePageBorderWhenTheNextPageIsMissing) {
  AckSet set;
  for (Position position = 4'000; position < 8'192; ++position) set.insert(position);
  set.insert(20'000);
  EXPECT_EQ(set.next_clear(4'000), 8'192u);
}

TEST(AckSet, EmptyPagesAreGivenBack) {
  AckSet set;
  for (Position position = 1; position < 100'000; ++position) set.insert(position);
  set.erase_through(99'999);
  EXPECT_TRUE(set.empty());
  EXPECT_EQ(set.pages(), 0u);
}

TEST(AckSet, AgreesWithAnOrderedSet) {
  const bool held = rc::check([] {
    const auto words = *rc::gen::container<std::vector<std::uint32_t>>(rc::gen::inRange<std::uint32_t>(0, 1u << 20));
    AckSet set;
    std::set<Position> model;
    for (std::uint32_t word : words) {
      // Neighbours of page borders and of word borders, in three far regions.
      const Position position = (word >> 2) % 3 * 1'000'000 + (word >> 4) % 3 * 4'096 + (word >> 6) % 200 + 1;
      if (word % 4 == 0) {
        set.erase_through(position);
        model.erase(model.begin(), model.upper_bound(position));
      } else {
        RC_ASSERT(set.insert(position) == model.insert(position).second);
      }
      set.check_invariants();
      RC_ASSERT(set.size() == model.size());
      const auto next = model.lower_bound(position + 1);
      RC_ASSERT(set.next_set(position + 1) == (next == model.end() ? std::nullopt : std::optional<Position>(*next)));
      Position clear = position;
      while (model.count(clear) != 0) ++clear;
      RC_ASSERT(set.next_clear(position) == clear);
      RC_ASSERT(set.contains(position) == (model.count(position) != 0));
    }
    RC_ASSERT(listed(set) == std::vector<Position>(model.begin(), model.end()));
  });
  EXPECT_TRUE(held);
}

}  // namespace
}  // namespace rq::queue
