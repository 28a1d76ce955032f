// Dead-letter moves: triggers, crashes between the steps, refused targets (page 30 section 10).
#include <gtest/gtest.h>

#include "core/storage/outbox.h"
#include "tests/queue/engine_world.h"

namespace rq::queue {
namespace {

EngineOptions few_attempts(std::uint64_t attempts = 2) {
  EngineOptions options;
  options.feature_level = 2;
  options.dead_letters.max_delivery_attempts = attempts;
  options.maintenance_startup_delay_seconds = 0;
  options.bootstrap_retention_seconds = 1;
  return options;
}

std::vector<std::string> intents(EngineWorld& w) {
  std::vector<std::string> out;
  for (const std::string& path : w.disk.files())
    if (path.find("/dlq-outbox/") != std::string::npos) out.push_back(path);
  return out;
}

std::uint64_t messages_of(EngineWorld& w, std::string_view topic) {
  for (const TopicStats& stats : w.stats())
    if (stats.name == topic) return stats.message_count;
  return 0;
}

std::uint64_t depth_of(EngineWorld& w, std::string_view topic) {
  for (const TopicStats& stats : w.stats())
    if (stats.name == topic) return stats.channels.empty() ? stats.unrouted_depth : stats.channels[0].depth;
  return 0;
}

void requeue_all(EngineWorld& w) {
  const std::vector<Delivery> deliveries = std::move(w.shard().deliveries);
  w.shard().deliveries.clear();
  for (const Delivery& delivery : deliveries) ASSERT_EQ(w.engine().requeue(delivery.consumer, delivery.id, 0, w.now()), Code::ok);
  w.process->poke();
}

// One message that was handed out as often as allowed: its next delivery is a move.
void exhaust(EngineWorld& w) {
  ASSERT_EQ(w.publish_and_wait("t", {"poison"}), Code::ok);
  w.subscribe("t", "c", 1);
  ASSERT_TRUE(w.wait_deliveries(1));
  EXPECT_EQ(w.shard().deliveries[0].attempts, 1);
}

TEST(DeadLetters, Q_82_TheSixteenthReservationIsAMoveAndAClientSeesFifteenAttemptsAtMost) {
  EngineWorld w(82, few_attempts(16));
  ASSERT_EQ(w.publish_and_wait("t", {"poison"}), Code::ok);
  SubscribeOptions options;
  options.message_timeout_ms = 1'000;
  w.subscribe("t", "c", 1, options);
  ASSERT_TRUE(w.wait([&] { return w.engine().has_topic("t.c.DLQ"); }, 120 * kSecond));
  ASSERT_TRUE(w.wait([&] { return w.engine().quiet(); }));
  ASSERT_EQ(w.shard().deliveries.size(), 15u);
  for (std::uint16_t i = 0; i < 15; ++i) EXPECT_EQ(w.shard().deliveries[i].attempts, i + 1);
  EXPECT_EQ(depth_of(w, "t"), 0u);
  EXPECT_TRUE(intents(w).empty());
  EXPECT_EQ(w.engine().metrics().dead_letter_messages, 1u);
  EXPECT_EQ(w.engine().metrics().in_flight_messages, 0u);
  w.shard().deliveries.clear();
  w.subscribe("t.c.DLQ", "d", 1);
  ASSERT_TRUE(w.wait_deliveries(1));
  EXPECT_EQ(w.bodies(), std::vector<std::string>{"poison"});
  EXPECT_EQ(w.shard().deliveries[0].attempts, 1);
}

TEST(DeadLetters, AgeMovesAMessageAtItsHandOver) {
  EngineOptions options = few_attempts(16);
  options.dead_letters.message_retention_seconds = 60;
  EngineWorld w(1, options);
  ASSERT_EQ(w.publish_and_wait("t", {"old"}), Code::ok);
  w.world.run_for(60 * kSecond);
  ASSERT_EQ(w.publish_and_wait("t", {"young"}), Code::ok);
  w.subscribe("t", "c", 10);
  ASSERT_TRUE(w.wait([&] { return w.engine().metrics().retention_expired_messages == 1; }));
  EXPECT_EQ(w.bodies(), std::vector<std::string>{"young"});
  EXPECT_EQ(messages_of(w, "t.c.DLQ"), 1u);
}

TEST(DeadLetters, Q_85_ADeadLetterTopicAndATtlTopicHaveNoDeadLetters) {
  EngineWorld w(85, few_attempts(2));
  ASSERT_EQ(w.publish_and_wait("x.DLQ", {"a"}), Code::ok);
  ASSERT_EQ(w.configure("ttl", {true, 3'600}, true).code, Code::ok);
  ASSERT_EQ(w.publish_and_wait("ttl", {"b"}), Code::ok);
  w.subscribe("x.DLQ", "c", 1);
  w.subscribe("ttl", "c", 1);
  for (std::uint16_t round = 1; round <= 20; ++round) {
    ASSERT_TRUE(w.wait_deliveries(2));
    for (const Delivery& delivery : w.shard().deliveries) EXPECT_EQ(delivery.attempts, round);
    requeue_all(w);
  }
  EXPECT_TRUE(intents(w).empty());
  EXPECT_EQ(w.stats().size(), 2u);
}

TEST(DeadLetters, ABodyThatIsNotInMemoryIsReadForItsMove) {
  EngineOptions options = few_attempts(2);
  options.entry_cache_bytes = 0;
  options.max_segment_bytes = 4'096;
  EngineWorld w(2, options);
  const std::string body(3'000, 'b');
  for (int i = 0; i < 3; ++i) ASSERT_EQ(w.publish_and_wait("t", {body + std::to_string(i)}), Code::ok);
  w.subscribe("t", "c", 3);
  ASSERT_TRUE(w.wait_deliveries(3));
  requeue_all(w);
  ASSERT_TRUE(w.wait([&] { return w.engine().metrics().dead_letter_messages == 3; }));
  w.subscribe("t.c.DLQ", "d", 10);
  ASSERT_TRUE(w.wait_deliveries(3));
  EXPECT_EQ(w.bodies(), (std::vector<std::string>{body + "0", body + "1", body + "2"}));
}

TEST(DeadLetters, AMoveGoesOnWithoutTheConnectionThatTriggeredIt) {
  EngineWorld w(3, few_attempts(2));
  exhaust(w);
  const ConsumerId consumer = w.shard().deliveries[0].consumer;
  requeue_all(w);
  ASSERT_TRUE(w.wait([&] { return !intents(w).empty(); }));
  w.engine().unsubscribe(consumer, w.now());
  ASSERT_TRUE(w.wait([&] { return w.engine().metrics().dead_letter_messages == 1; }));
  EXPECT_EQ(depth_of(w, "t"), 0u);
  EXPECT_EQ(messages_of(w, "t.c.DLQ"), 1u);
}

// I-51, Q-83: the process and its machine die at every disk event of a move.
void crash_in_a_move(AckMode mode, bool power_loss) {
  bool moved_before_the_crash = false;
  for (std::uint32_t at = 1; !moved_before_the_crash && at < 400; ++at) {
    SCOPED_TRACE(at);
    EngineOptions options = few_attempts(2);
    options.ack_mode = mode;
    EngineWorld w(83, options);
    exhaust(w);
    // In the relaxed modes the message itself may go with the power until then.
    ASSERT_TRUE(w.wait([&] { return w.stats().front().unsynced_messages == 0; }));
    requeue_all(w);
    for (std::uint32_t i = 0; i < at; ++i) w.world.step();
    moved_before_the_crash = w.engine().metrics().dead_letter_messages == 1;
    w.restart(power_loss);
    ASSERT_EQ(w.engine().state(), EngineState::open);
    const std::uint64_t before = messages_of(w, "t.c.DLQ"), left = depth_of(w, "t");
    EXPECT_LE(before + left, 2u);
    EXPECT_GE(before + left, 1u);
    EXPECT_TRUE(intents(w).empty());
    // What is left goes where its recovered attempts say; what has left never comes again.
    w.subscribe("t", "c", 1);
    w.world.run_for(5 * kSecond);
    const std::uint64_t copies = messages_of(w, "t.c.DLQ");
    EXPECT_EQ(w.shard().deliveries.size() + copies - before, left);
    w.shard().deliveries.clear();
    w.subscribe("t.c.DLQ", "d", 10);
    if (copies > 0) {
      ASSERT_TRUE(w.wait_deliveries(copies));
    }
    for (const std::string& body : w.bodies()) EXPECT_EQ(body, "poison");
  }
  EXPECT_TRUE(moved_before_the_crash);
}

TEST(DeadLetters, Q_83_ACrashAfterEachStepLeavesOneOrTwoCopiesAndNeverNone) {
  crash_in_a_move(AckMode::durable, false);
  crash_in_a_move(AckMode::durable, true);
}

// I-15.
TEST(DeadLetters, Q_83_TheCopyIsFsyncedInEveryAckMode) {
  crash_in_a_move(AckMode::write_ack, true);
  crash_in_a_move(AckMode::nsq_relaxed, true);
}

TEST(DeadLetters, ARefusedTargetClosesTheConnectionAndKeepsIntentAndMessage) {
  EngineOptions options = few_attempts(2);
  options.max_topics = 1;
  EngineWorld w(84, options);
  exhaust(w);
  const ConsumerId consumer = w.shard().deliveries[0].consumer;
  requeue_all(w);
  ASSERT_TRUE(w.wait([&] { return !w.shard().closed.empty(); }));
  EXPECT_EQ(w.shard().closed[0].consumer, consumer);
  EXPECT_EQ(w.shard().closed[0].frame, "E_DELIVERY_FAILED the dead-letter Topic is over the limit of Topics");
  EXPECT_EQ(intents(w).size(), 1u);
  EXPECT_EQ(depth_of(w, "t"), 1u);
  EXPECT_EQ(w.engine().metrics().in_flight_messages, 0u);
  // Once more: the same file, the same answer.
  w.shard().closed.clear();
  w.subscribe("t", "c", 1);
  ASSERT_TRUE(w.wait([&] { return !w.shard().closed.empty(); }));
  EXPECT_EQ(intents(w).size(), 1u);
  // The start goes on with the intent still there (S-66), and moves it once the target may exist.
  w.restart();
  ASSERT_EQ(w.engine().state(), EngineState::open);
  EXPECT_EQ(intents(w).size(), 1u);
  EXPECT_EQ(depth_of(w, "t"), 1u);
  w.set_options([](EngineOptions& change) { change.max_topics = 10; });
  w.restart();
  EXPECT_TRUE(intents(w).empty());
  EXPECT_EQ(depth_of(w, "t"), 0u);
  EXPECT_EQ(messages_of(w, "t.c.DLQ"), 1u);
}

TEST(DeadLetters, Q_84_ATombstonedTargetKeepsIntentAndMessageUntilItsFenceIsGone) {
  EngineWorld w(84, few_attempts(2));
  exhaust(w);
  FenceSnapshot fences;
  fences.topics.emplace_back("t.c.DLQ", w.now().wall.ms() + 3'600'000);
  ASSERT_EQ(w.sync(fences), Code::ok);
  requeue_all(w);
  ASSERT_TRUE(w.wait([&] { return !w.shard().closed.empty(); }));
  EXPECT_TRUE(w.shard().closed[0].frame.starts_with("E_DELIVERY_FAILED "));
  EXPECT_EQ(intents(w).size(), 1u);
  // S-66: the start keeps the file and its source while the fence holds.
  w.restart();
  ASSERT_EQ(w.engine().state(), EngineState::open);
  EXPECT_EQ(intents(w).size(), 1u);
  EXPECT_EQ(depth_of(w, "t"), 1u);
  w.world.run_for(3'700 * kSecond);
  w.subscribe("t", "c", 1);
  ASSERT_TRUE(w.wait([&] { return w.engine().metrics().dead_letter_messages == 1; }));
  EXPECT_TRUE(intents(w).empty());
  EXPECT_EQ(depth_of(w, "t"), 0u);
  EXPECT_EQ(messages_of(w, "t.c.DLQ"), 1u);
}

TEST(DeadLetters, EnablingTtlDropsTheIntentsOfTheTopic) {
  EngineOptions options = few_attempts(2);
  options.max_topics = 1;
  EngineWorld w(4, options);
  exhaust(w);
  requeue_all(w);
  ASSERT_TRUE(w.wait([&] { return !w.shard().closed.empty(); }));
  ASSERT_EQ(intents(w).size(), 1u);
  ASSERT_EQ(w.configure("t", {true, 3'600}).code, Code::ok);
  EXPECT_TRUE(intents(w).empty());
}

// I-04
TEST(DeadLetters, APolicyChangeWaitsForTheMoveThatRuns) {
  EngineWorld w(5, few_attempts(2));
  exhaust(w);
  requeue_all(w);
  ASSERT_TRUE(w.wait([&] { return !intents(w).empty(); }));
  const EngineWorld::Configured done = w.configure("t", {true, 3'600});
  EXPECT_EQ(done.code, Code::ok);
  EXPECT_EQ(w.engine().metrics().dead_letter_messages, 1u);
  EXPECT_TRUE(intents(w).empty());
}

TEST(DeadLetters, CollectionKeepsTheSegmentOfAnIntent) {
  EngineOptions options = few_attempts(2);
  options.max_topics = 1;
  options.max_segment_bytes = 4'096;
  EngineWorld w(6, options);
  exhaust(w);
  requeue_all(w);
  ASSERT_TRUE(w.wait([&] { return !w.shard().closed.empty(); }));
  for (int i = 0; i < 30; ++i) ASSERT_EQ(w.publish_and_wait("t", {std::string(500, 'x')}), Code::ok);
  ASSERT_EQ(w.admin(Admin::empty_channel, "t", "c"), Code::ok);
  w.world.run_for(60 * kSecond);
  EXPECT_EQ(messages_of(w, "t"), 31u);
  // The next start finds the source finished and drops the intent without a copy.
  w.restart();
  EXPECT_TRUE(intents(w).empty());
  EXPECT_EQ(w.stats().size(), 1u);
  w.world.run_for(60 * kSecond);
  EXPECT_LT(messages_of(w, "t"), 31u);
}

TEST(DeadLetters, ADeletedSourceEndsItsWaitingMoves) {
  EngineWorld w(7, few_attempts(2));
  for (int i = 0; i < 5; ++i) ASSERT_EQ(w.publish_and_wait("t", {"m" + std::to_string(i)}), Code::ok);
  w.subscribe("t", "c", 5);
  ASSERT_TRUE(w.wait_deliveries(5));
  requeue_all(w);
  ASSERT_TRUE(w.wait([&] { return !intents(w).empty(); }));
  ASSERT_EQ(w.admin(Admin::delete_topic, "t"), Code::ok);
  ASSERT_TRUE(w.wait([&] { return w.engine().quiet(); }));
  EXPECT_TRUE(intents(w).empty());
  EXPECT_LE(messages_of(w, "t.c.DLQ"), 5u);
  EXPECT_EQ(w.engine().metrics().in_flight_messages, 0u);
}

TEST(DeadLetters, AStopWaitsForTheMoveThatRuns) {
  EngineWorld w(8, few_attempts(2));
  exhaust(w);
  const ConsumerId consumer = w.shard().deliveries[0].consumer;
  requeue_all(w);
  ASSERT_TRUE(w.wait([&] { return !intents(w).empty(); }));
  w.engine().unsubscribe(consumer, w.now());
  ASSERT_TRUE(w.stop());
  EXPECT_TRUE(intents(w).empty());
  w.restart();
  EXPECT_EQ(depth_of(w, "t"), 0u);
  EXPECT_EQ(messages_of(w, "t.c.DLQ"), 1u);
}

}  // namespace
}  // namespace rq::queue
