// Which messages become dead letters, and the names of their Topics (page 30 section 10).
#include "core/queue/dead_letter_rules.h"

#include <gtest/gtest.h>

#include "core/storage/names.h"

namespace rq::queue {
namespace {

constexpr WallTime kWall{1'800'000'000 * kSecond};

TEST(DeadLetterRules, AttemptsCountFromTheLimitOn) {
  const DeadLetterSettings settings{16, 0, ".DLQ"};
  EXPECT_EQ(dead_letter_cause(settings, "t", 15, kWall.ns, kWall), DeadLetterCause::none);
  EXPECT_EQ(dead_letter_cause(settings, "t", 16, kWall.ns, kWall), DeadLetterCause::attempts);
  EXPECT_EQ(dead_letter_cause(settings, "t.DLQ", 16, kWall.ns, kWall), DeadLetterCause::none);
}

TEST(DeadLetterRules, AgeCountsWhenRetentionIsSet) {
  const std::int64_t hour_old = kWall.ns - 3'600 * kSecond;
  EXPECT_EQ(dead_letter_cause({16, 0, ".DLQ"}, "t", 1, hour_old, kWall), DeadLetterCause::none);
  EXPECT_EQ(dead_letter_cause({16, 3'600, ".DLQ"}, "t", 1, hour_old, kWall), DeadLetterCause::age);
  EXPECT_EQ(dead_letter_cause({16, 3'600, ".DLQ"}, "t", 1, hour_old + 1, kWall), DeadLetterCause::none);
  EXPECT_EQ(dead_letter_cause({16, 3'600, ".DLQ"}, "t.DLQ", 1, hour_old, kWall), DeadLetterCause::none);
  EXPECT_EQ(dead_letter_cause({16, 3'600, ".DLQ"}, "t", 1, kWall.ns + kSecond, kWall), DeadLetterCause::none);
}

TEST(DeadLetterRules, TheTargetIsTopicChannelSuffixWhereThatIsAName) {
  EXPECT_EQ(dead_letter_target("events", "workers", ".DLQ"), "events.workers.DLQ");
  const std::string topic(40, 't'), channel(19, 'c');
  EXPECT_EQ(dead_letter_target(topic, channel, ".DLQ"), topic + "." + channel + ".DLQ");
}

TEST(DeadLetterRules, OtherwiseTheTargetCarriesAChecksumOfBothNames) {
  const std::string topic(60, 't');
  const std::string target = dead_letter_target(topic, "c", ".DLQ");
  EXPECT_EQ(target.size(), 64u);
  EXPECT_EQ(target.find('.'), 51u);
  EXPECT_TRUE(target.ends_with(".DLQ"));
  EXPECT_NE(target, dead_letter_target(topic, "d", ".DLQ"));
  EXPECT_EQ(dead_letter_target("events", "w#ephemeral", ".DLQ").size(), 6 + 9 + 4u);
}

TEST(DeadLetterRules, EphemeralNamesAlwaysFormAValidTarget) {
  EXPECT_EQ(dead_letter_target("events#ephemeral", "workers", ".DLQ"), "events.workers.DLQ");
  for (std::size_t bytes = 1; bytes <= 54; ++bytes)
    for (const std::string& channel : {std::string("c"), std::string("c#ephemeral"), std::string(64, 'c')})
      for (const std::string& suffix : {std::string("x"), std::string(".DLQ"), std::string(16, 's')}) {
        const std::string target = dead_letter_target(std::string(bytes, 't') + "#ephemeral", channel, suffix);
        EXPECT_TRUE(storage::valid_name(target)) << target;
        EXPECT_FALSE(storage::ephemeral_name(target)) << target;
        EXPECT_TRUE(target.ends_with(suffix)) << target;
      }
}

TEST(DeadLetterRules, TheBodyLimitFollowsTheFeatureLevel) {
  EXPECT_EQ(dead_letter_body_max(1), 75'497'448u);
  EXPECT_EQ(dead_letter_body_max(2), 104'857'600u);
}

}  // namespace
}  // namespace rq::queue
