// The delivery policy of a Topic (page 30 section 9.1).
#include <gtest/gtest.h>

#include "tests/queue/engine_world.h"

namespace rq::queue {
namespace {

TEST(TtlPolicy, Q_81_ManagedCreateWithoutPolicyMakesReliableAndAnEqualPolicyChangesNothing) {
  EngineWorld w(81);
  const DeliveryPolicy hour{true, 3'600};
  EngineWorld::Configured done = w.configure("t", hour, true);
  EXPECT_EQ(done.code, Code::ok);
  EXPECT_TRUE(done.changed);
  EXPECT_EQ(w.engine().policy_of("t"), hour);
  w.world.run_for(kSecond);
  const std::uint64_t revision = w.engine().registry_revision();
  done = w.configure("t", hour);
  EXPECT_EQ(done.code, Code::ok);
  EXPECT_FALSE(done.changed);
  w.world.run_for(kSecond);
  EXPECT_EQ(w.engine().registry_revision(), revision);
  done = w.configure("t", {}, true);
  EXPECT_TRUE(done.changed);
  EXPECT_EQ(w.engine().policy_of("t"), DeliveryPolicy{});
  w.world.run_for(kSecond);
  EXPECT_GT(w.engine().registry_revision(), revision);
}

TEST(TtlPolicy, ThePolicyIsDurableBeforeTheAnswer) {
  EngineWorld w(1);
  ASSERT_EQ(w.configure("t", {true, 60}, true).code, Code::ok);
  w.restart(true);
  EXPECT_EQ(w.engine().policy_of("t"), (DeliveryPolicy{true, 60}));
  EXPECT_TRUE(w.stats().at(0).ttl_discard);
  EXPECT_EQ(w.stats().at(0).message_ttl_seconds, 60u);
}

TEST(TtlPolicy, TheReliableEpochCountsEveryReturnToReliable) {
  EngineWorld w(2);
  ASSERT_EQ(w.configure("t", {true, 60}, true).code, Code::ok);
  EXPECT_EQ(w.engine().reliable_epoch_of("t"), 0u);
  ASSERT_EQ(w.configure("t", {}).code, Code::ok);
  ASSERT_EQ(w.configure("t", {true, 60}).code, Code::ok);
  EXPECT_EQ(w.engine().reliable_epoch_of("t"), 1u);
}

TEST(TtlPolicy, BadPoliciesAndMissingTopicsAreRefused) {
  EngineWorld w(3);
  EXPECT_EQ(w.configure("t", {true, 60}).code, Code::topic_not_found);
  EXPECT_EQ(w.configure("t", {true, 0}, true).code, Code::invalid_policy);
  EXPECT_EQ(w.configure("t", {false, 5}, true).code, Code::invalid_policy);
  EXPECT_EQ(w.configure("t", {true, DeliveryPolicy::kTtlSecondsMax + 1}, true).code, Code::invalid_policy);
  EXPECT_FALSE(w.engine().has_topic("t"));
  EXPECT_EQ(w.configure("t", {true, DeliveryPolicy::kTtlSecondsMax}, true).code, Code::ok);
}

}  // namespace
}  // namespace rq::queue
