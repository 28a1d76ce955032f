// The memory of delayed messages that a scan stepped over.
#include "core/queue/deferred_scan.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <map>

namespace rq::queue {
namespace {

Now at(std::int64_t ns) { return {Instant{ns}, WallTime{ns}}; }
MessageView::Due wall(std::int64_t ns) { return {WallTime{ns}, Instant::never()}; }

TEST(DeferredScan, NearOnesComeBackOneByOneLowestFirst) {
  DeferredScan scan(4);
  scan.add(1, wall(20));
  scan.add(2, wall(10));
  scan.add(3, wall(10));
  EXPECT_EQ(scan.ripe(at(9)), std::nullopt);
  EXPECT_EQ(scan.next_deadline(at(9)), Instant{10});
  EXPECT_EQ(scan.ripe(at(10)), 2u);
  EXPECT_EQ(scan.ripe(at(10)), 2u);
  scan.take_ripe();
  EXPECT_EQ(scan.ripe(at(10)), 3u);
  scan.take_ripe();
  EXPECT_EQ(scan.ripe(at(10)), std::nullopt);
  EXPECT_EQ(scan.next_deadline(at(10)), Instant{20});
}

TEST(DeferredScan, TheRestIsOnePairOfLowestPositionAndEarliestTime) {
  DeferredScan scan(1);
  scan.add(5, wall(10));
  scan.add(6, wall(90));
  scan.add(7, wall(50));
  EXPECT_EQ(scan.rewind(at(49)), std::nullopt);
  EXPECT_EQ(scan.rewind(at(50)), 6u);
  EXPECT_EQ(scan.rewind(at(99)), std::nullopt);
  EXPECT_EQ(scan.ripe(at(50)), 5u);
}

TEST(DeferredScan, ANearerOnePushesTheLatestIntoThePair) {
  DeferredScan scan(1);
  scan.add(5, wall(50));
  scan.add(6, wall(10));
  EXPECT_EQ(scan.ripe(at(10)), 6u);
  scan.take_ripe();
  EXPECT_EQ(scan.rewind(at(50)), 5u);
  EXPECT_TRUE(scan.empty());
}

TEST(DeferredScan, ARewindForgetsWhatTheScanWillMeetAgain) {
  DeferredScan scan(2);
  scan.add(3, wall(30));
  scan.add(4, wall(60));
  scan.add(9, wall(40));  // 4 goes into the pair
  EXPECT_EQ(scan.rewind(at(60)), 4u);
  EXPECT_EQ(scan.ripe(at(60)), 3u);
  scan.take_ripe();
  EXPECT_EQ(scan.ripe(at(60)), std::nullopt);
}

TEST(DeferredScan, ASteadyTimeIsEnough) {
  DeferredScan scan(1);
  scan.add(1, {WallTime{1'000}, Instant{10}});
  scan.add(2, {WallTime{1'001}, Instant{11}});
  const Now now{Instant{11}, WallTime{5}};
  EXPECT_EQ(scan.next_deadline({Instant{9}, WallTime{5}}), Instant{10});
  EXPECT_EQ(scan.rewind(now), 2u);
  EXPECT_EQ(scan.ripe(now), 1u);
}

TEST(DeferredScan, NothingIsForgottenAndNoDeadlineIsLate) {
  const bool held = rc::check([](const std::vector<std::uint16_t>& words) {
    DeferredScan scan(*rc::gen::inRange<std::size_t>(0, 5));
    std::map<Position, MessageView::Due> model;
    Position cursor = 1;
    std::int64_t clock = 100;
    for (std::uint16_t word : words) {
      if (word % 3 != 0) {
        MessageView::Due due{WallTime{clock + 1 + word / 4 % 50}, Instant::never()};
        if (word % 7 == 0) due.mono = Instant{clock + 1 + word / 8 % 50};
        scan.add(cursor, due);
        model[cursor++] = due;
      } else if (word % 2 == 0) {
        const Position through = cursor - std::min<Position>(cursor - 1, word / 4 % 10);
        scan.erase_through(through);
        model.erase(model.begin(), model.upper_bound(through));
      } else {
        clock += word / 4 % 20;
        // What a Channel does with what comes back: it takes what is due and adds the rest again.
        std::map<Position, MessageView::Due> again;
        if (const auto from = scan.rewind(at(clock))) {
          again = {model.lower_bound(*from), model.end()};
          model.erase(model.lower_bound(*from), model.end());
        }
        while (const auto position = scan.ripe(at(clock))) {
          scan.take_ripe();
          if (model.count(*position) == 0) continue;
          RC_ASSERT(model.at(*position).reached(at(clock)));
          model.erase(*position);
        }
        for (const auto& [position, due] : again) {
          if (due.reached(at(clock))) continue;
          scan.add(position, due);
          model[position] = due;
        }
        for (const auto& [position, due] : model) RC_ASSERT(!due.reached(at(clock)));
      }
      for (const auto& [position, due] : model) {
        RC_ASSERT(scan.remembers(position));
        RC_ASSERT(scan.next_deadline(at(clock)) <= instant_of(due, at(clock)));
        RC_ASSERT(scan.next_deadline(at(clock)) > Instant{clock});
      }
    }
  });
  EXPECT_TRUE(held);
}

}  // namespace
}  // namespace rq::queue
