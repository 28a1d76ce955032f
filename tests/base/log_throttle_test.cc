#include "core/base/log_throttle.h"

#include <gtest/gtest.h>

namespace rq::test {
namespace {

constexpr Instant at(std::int64_t ms) { return {ms * kMillisecond}; }

std::uint64_t admitted(LogThrottle& throttle, std::string_view event, std::uint64_t lines, Instant now) {
  std::uint64_t count = 0;
  for (std::uint64_t i = 0; i < lines; ++i) count += throttle.admit(event, now);
  return count;
}

TEST(LogThrottle, AdmitsABurstAndReportsTheRestWhenItsWindowEnds) {
  LogThrottle throttle;
  EXPECT_EQ(admitted(throttle, "reset", 1'000, at(0)), LogThrottle::kLinesMax);
  EXPECT_TRUE(throttle.holding());
  EXPECT_FALSE(throttle.take_report(at(9'999)));
  const auto report = throttle.take_report(at(10'000));
  ASSERT_TRUE(report);
  EXPECT_EQ(report->event, "reset");
  EXPECT_EQ(report->lines, 1'000 - LogThrottle::kLinesMax);
  EXPECT_FALSE(throttle.take_report(at(10'000)));
  EXPECT_FALSE(throttle.holding());
  EXPECT_EQ(admitted(throttle, "reset", 60, at(10'000)), LogThrottle::kLinesMax);
}

TEST(LogThrottle, OneEventDoesNotSilenceAnother) {
  LogThrottle throttle;
  admitted(throttle, "loud", 100, at(0));
  EXPECT_TRUE(throttle.admit("quiet", at(0)));
}

TEST(LogThrottle, AReportThatNobodyTookIsNotForgottenByLaterLines) {
  LogThrottle throttle;
  admitted(throttle, "reset", LogThrottle::kLinesMax + 3, at(0));
  EXPECT_FALSE(throttle.admit("reset", at(60'000)));
  const auto report = throttle.take_report(at(60'000));
  ASSERT_TRUE(report);
  EXPECT_EQ(report->lines, 4u);
}

TEST(LogThrottle, ManyKindsOfEventsAreAdmittedWithoutBeingRemembered) {
  LogThrottle throttle;
  for (std::size_t i = 0; i < LogThrottle::kEventsMax; ++i) throttle.admit("event" + std::to_string(i), at(0));
  EXPECT_EQ(admitted(throttle, "one more", 500, at(0)), 500u);
  EXPECT_FALSE(throttle.holding());
}

}  // namespace
}  // namespace rq::test
