// Managed operations, fences and what they close, at the Engine (page 30 sections 13 and 14, page 20 sections 7.3 and 7.4).
#include <gtest/gtest.h>

#include "core/queue/operation_log.h"
#include "tests/queue/managed_requests.h"

namespace rq::queue {
namespace {

constexpr std::int64_t kHourMs = 3'600'000;
constexpr const char* kOperations = "data/management-operations.json";
constexpr const char* kFences = "data/management-fences.json";

std::uint64_t revision(EngineWorld& w) {
  EXPECT_TRUE(w.wait([&] { return w.engine().quiet(); }));  // the bump of a change is stored after its answer
  return w.engine().registry_revision();
}

TEST(Management, CreateMakesTheTopicOnceAndItsRepetitionAnswersTheSame) {
  EngineWorld w(1);
  const ManagedRequest create = on_topic(1, ManagedAction::create, "t", revision(w));
  const ManagedDone first = w.manage_and_wait(create);
  EXPECT_EQ(first.outcome.code, Code::ok);
  EXPECT_TRUE(first.changed);
  EXPECT_EQ(first.revision, create.expected_revision + 2);  // the Topic and the operation (section 14)
  EXPECT_EQ(revision(w), first.revision);
  const ManagedDone again = w.manage_and_wait(create);  // with the old revision
  EXPECT_EQ(again.outcome.code, Code::ok);
  EXPECT_EQ(again.revision, first.revision);
  EXPECT_EQ(revision(w), first.revision);
  EXPECT_EQ(w.disk.content(kOperations),
            R"({"format":1,"records":{"operation-00000001":{"fingerprint":"[\"topic\",\"t\",\"create\",{\"delivery_mode\":)"
            R"(\"RELIABLE\",\"message_ttl_seconds\":null}]","topic":"t","state":"completed","result":{"revision":)" +
                std::to_string(first.revision) + R"(,"changed":true}}},"completed_order":["operation-00000001"]})");
  const ManagedDone same = w.manage_and_wait(on_topic(2, ManagedAction::create, "t", revision(w)));
  EXPECT_EQ(same.outcome.code, Code::ok);
  EXPECT_FALSE(same.changed);
  EXPECT_EQ(same.revision, first.revision);
}

TEST(Management, PreconditionsAreCheckedInOrderAndLeaveNoTrace) {
  EngineWorld w(2);
  ASSERT_EQ(w.admin(Admin::create_topic, "t"), Code::ok);
  const std::uint64_t now = revision(w);
  const auto code = [&](const ManagedRequest& request) { return w.manage_and_wait(request).outcome.code; };
  ManagedRequest short_id = on_topic(1, ManagedAction::pause, "t", now);
  short_id.operation_id = "fifteen-letters";
  EXPECT_EQ(code(short_id), Code::operation_conflict);
  EXPECT_EQ(code(on_topic(1, ManagedAction::pause, "no topic", now)), Code::bad_topic_name);
  EXPECT_EQ(code(on_channel(1, ManagedAction::pause, "t", "no channel", now)), Code::bad_channel_name);
  EXPECT_EQ(code(on_topic(1, ManagedAction::pause, "missing", now + 9)), Code::topic_not_found);
  EXPECT_EQ(code(on_channel(1, ManagedAction::pause, "t", "missing", now)), Code::channel_not_found);
  EXPECT_EQ(code(on_topic(1, ManagedAction::remove, "t", now + 9)), Code::invalid_tombstone);
  EXPECT_EQ(code(until(on_topic(1, ManagedAction::tombstone, "t", now), in_ms(w, 0))), Code::invalid_tombstone);
  EXPECT_EQ(code(on_topic(1, ManagedAction::pause, "t", now + 1)), Code::revision_conflict);
  EXPECT_EQ(code(on_topic(1, ManagedAction::configure, "t", now)), Code::invalid_policy);
  ManagedRequest with_policy = on_topic(1, ManagedAction::pause, "t", now);
  with_policy.policy = DeliveryPolicy{true, 5};
  EXPECT_EQ(code(with_policy), Code::invalid_policy);
  EXPECT_FALSE(w.disk.exists(kOperations));
  EXPECT_EQ(code(on_topic(1, ManagedAction::pause, "t", now)), Code::ok);  // the id was never used
  EXPECT_TRUE(w.stats().at(0).paused);
}

TEST(Management, Q_87_AnIdWithAnotherActionConflictsUntilItIsForgotten) {
  EngineWorld w(87);
  ASSERT_EQ(w.manage_and_wait(on_topic(1, ManagedAction::create, "t", revision(w))).outcome.code, Code::ok);
  EXPECT_EQ(w.manage_and_wait(on_topic(1, ManagedAction::pause, "t", revision(w))).outcome.code, Code::operation_conflict);

  OperationLog log;
  const auto complete = [&](std::uint64_t number) {
    const ManagedRequest request = on_topic(number, ManagedAction::pause, "t", 0);
    const Fingerprint fingerprint(request);
    log.begin(request.operation_id, fingerprint, "t");
    log.complete(request.operation_id, fingerprint, {number, true});
  };
  for (std::uint64_t number = 0; number < 8'192; ++number) complete(number);
  const Fingerprint pause(on_topic(0, ManagedAction::pause, "t", 0));
  EXPECT_EQ(log.find(operation_id(0), pause, "t").known, OperationLog::Known::completed);
  complete(8'192);
  EXPECT_EQ(log.find(operation_id(0), pause, "t").known, OperationLog::Known::unknown);
  EXPECT_EQ(log.find(operation_id(1), pause, "t").result.revision, 1u);
  EXPECT_EQ(log.content().records.size(), 8'192u);
}

TEST(Management, Q_86_ADeleteWhoseCompletionIsMissingBlocksItsTopicUntilItIsRepeated) {
  EngineWorld w(86);
  ASSERT_EQ(w.admin(Admin::create_channel, "t", "c"), Code::ok);
  const ManagedRequest remove = until(on_topic(1, ManagedAction::remove, "t", revision(w)), in_ms(w, kHourMs));
  w.manage(remove);
  // The directory goes first, the completed record comes after it.
  ASSERT_TRUE(w.wait([&] { return !w.disk.exists("data/topics/74/manifest"); }));
  w.restart();
  ASSERT_EQ(w.engine().state(), EngineState::open);
  EXPECT_EQ(w.publish_and_wait("t", {"x"}), Code::management_unavailable);
  EXPECT_EQ(w.admin(Admin::create_topic, "t"), Code::management_unavailable);
  const std::uint64_t before = revision(w);
  EXPECT_EQ(w.manage_and_wait(on_topic(2, ManagedAction::create, "t", before)).outcome.code, Code::operation_conflict);
  ManagedRequest other_name = until(on_topic(3, ManagedAction::remove, "t", 1), in_ms(w, kHourMs));
  const ManagedDone adopted = w.manage_and_wait(other_name);  // a new id, the same content
  EXPECT_EQ(adopted.outcome.code, Code::ok);
  EXPECT_TRUE(adopted.changed);
  EXPECT_GT(adopted.revision, before);
  const ManagedDone own = w.manage_and_wait(remove);  // the old id and revision: the answer that is on record
  EXPECT_EQ(own.outcome.code, Code::ok);
  EXPECT_TRUE(own.changed);
  EXPECT_EQ(own.revision, adopted.revision);
  EXPECT_EQ(w.publish_and_wait("t", {"x"}), Code::topic_tombstoned);
}

TEST(Management, I_55_I_56_AManagedDeleteCrashedAtEveryEventHasOneEffectAndOneAnswer) {
  std::size_t crashes = 0;
  for (std::size_t events = 0;; ++events) {
    EngineWorld w(55);
    ASSERT_EQ(w.admin(Admin::create_channel, "t", "c"), Code::ok);
    ASSERT_EQ(w.publish_and_wait("t", {"old"}), Code::ok);
    const ManagedRequest remove = until(on_topic(1, ManagedAction::remove, "t", revision(w)), in_ms(w, kHourMs));
    const std::uint64_t waiter = w.manage(remove);
    for (std::size_t i = 0; i < events && !w.shard().managed.contains(waiter); ++i) w.world.step();
    const bool answered = w.shard().managed.contains(waiter);
    const ManagedDone first = answered ? w.shard().managed[waiter] : ManagedDone{};
    w.restart(events % 2 == 0);
    ASSERT_EQ(w.engine().state(), EngineState::open) << events;
    ManagedRequest again = remove;
    const bool recorded = w.disk.exists(kOperations);
    if (!recorded) again.expected_revision = revision(w);  // nothing was begun
    const ManagedDone second = w.manage_and_wait(again);
    ASSERT_EQ(second.outcome.code, Code::ok) << events;
    EXPECT_TRUE(second.changed) << events;
    if (answered) {
      EXPECT_EQ(second.revision, first.revision);
    }
    const ManagedDone third = w.manage_and_wait(remove);
    EXPECT_EQ(third.revision, second.revision) << events;
    EXPECT_EQ(w.publish_and_wait("t", {"new"}), Code::topic_tombstoned) << events;
    EXPECT_EQ(w.admin(Admin::create_channel, "t", "c"), Code::topic_tombstoned) << events;
    EXPECT_TRUE(w.stats().empty()) << events;
    ASSERT_EQ(w.manage_and_wait(on_topic(2, ManagedAction::create, "t", revision(w))).outcome.code, Code::ok);
    EXPECT_EQ(w.stats().at(0).published_count, 0u);
    EXPECT_EQ(w.publish_and_wait("t", {"new"}), Code::ok) << events;
    ++crashes;
    if (answered) break;
  }
  EXPECT_GT(crashes, 20u);
}

TEST(Management, S_70_APendingRecordOfEitherFormBlocksItsTopicUntilItsActionIsRepeated) {
  for (const char* fingerprint : {R"([\"topic\",\"t\",\"pause\"])", R"([\"topic\",\"t\",\"pause\",null])"}) {
    EngineWorld w(70);
    ASSERT_EQ(w.admin(Admin::create_channel, "t", "c"), Code::ok);
    ASSERT_TRUE(w.stop());
    w.process->kill();
    const std::string record = std::string(R"({"format":1,"records":{"stored-operation-1":{"fingerprint":")") + fingerprint +
                               R"(","topic":"t","state":"pending","result":null}},"completed_order":[]})";
    w.disk.put(kOperations, record);
    w.process->start();
    ASSERT_TRUE(w.wait([&] { return w.engine().state() == EngineState::open; }));
    EXPECT_EQ(w.publish_and_wait("t", {"x"}), Code::management_unavailable);
    w.subscribe("t", "c", 1);
    EXPECT_EQ(w.shard().subscribed.rbegin()->second.outcome.code, Code::management_unavailable);
    EXPECT_EQ(w.admin(Admin::delete_topic, "t"), Code::management_unavailable);
    EXPECT_EQ(w.publish_and_wait("other", {"x"}), Code::ok);
    w.restart();
    EXPECT_EQ(w.publish_and_wait("t", {"x"}), Code::management_unavailable);
    const ManagedDone done = w.manage_and_wait(on_topic(5, ManagedAction::pause, "t", 0));
    EXPECT_EQ(done.outcome.code, Code::ok);
    EXPECT_EQ(w.publish_and_wait("t", {"x"}), Code::ok);
    EXPECT_NE(w.disk.content(kOperations).find(fingerprint), std::string::npos);  // its text is kept
    EXPECT_NE(w.disk.content(kOperations).find(R"("stored-operation-1":{)"), std::string::npos);
    EXPECT_EQ(w.disk.content(kOperations).find("operation-00000005"), std::string::npos);  // only the pending id has the result
  }
}

TEST(Management, Q_88_APublishUnderAFenceIsRefusedUntilTheDeadlineAlsoAfterARestart) {
  EngineWorld w(88);
  ASSERT_EQ(w.publish_and_wait("t", {"a"}), Code::ok);
  ASSERT_EQ(w.manage_and_wait(until(on_topic(1, ManagedAction::tombstone, "t", revision(w)), in_ms(w, kHourMs))).outcome.code,
            Code::ok);
  EXPECT_EQ(w.publish_and_wait("t", {"b"}), Code::topic_tombstoned);
  w.restart(true);
  EXPECT_EQ(w.publish_and_wait("t", {"b"}), Code::topic_tombstoned);
  w.process->wall_offset_ns += kHourMs * kMillisecond;
  EXPECT_EQ(w.publish_and_wait("t", {"c"}), Code::ok);
  w.process->wall_offset_ns -= kHourMs * kMillisecond;  // I-56: a stored fence is active again
  EXPECT_EQ(w.publish_and_wait("t", {"d"}), Code::topic_tombstoned);
  EXPECT_EQ(w.stats().at(0).published_count, 2u);
}

TEST(Management, Q_09_AFenceThatArrivesWhileAPublishWaitsRefusesItAndNothingIsAppended) {
  EngineOptions options;
  options.max_segment_bytes = 4096;
  EngineWorld w(9, options);
  ASSERT_EQ(w.publish_and_wait("t", {std::string(3000, 'a')}), Code::ok);
  ASSERT_TRUE(w.wait([&] { return w.engine().quiet(); }));
  const std::uint64_t before = revision(w);
  // The publish waits for a rotation, behind a slow disk; the operation's record blocks the Topic meanwhile.
  w.disk.faults.latency_ns_min = w.disk.faults.latency_ns_max = 5 * kMillisecond;
  const std::uint64_t waiting = w.publish("t", {std::string(3000, 'b')});
  w.world.run_for(kMillisecond);
  const std::uint64_t fence = w.manage(until(on_topic(1, ManagedAction::tombstone, "t", before), in_ms(w, kHourMs)));
  ASSERT_TRUE(w.wait([&] { return w.shard().published.contains(waiting) && w.shard().managed.contains(fence); }));
  EXPECT_EQ(w.shard().managed[fence].outcome.code, Code::ok);
  const Code code = w.shard().published[waiting].code;
  EXPECT_TRUE(code == Code::management_unavailable || code == Code::topic_tombstoned);
  EXPECT_EQ(w.stats().at(0).published_count, 1u);
}

TEST(Management, AFencedChannelRefusesItsConsumersAndTheirCommandsAndComesBackAfterwards) {
  EngineWorld w(3);
  const ConsumerId consumer = w.subscribe("t", "c", 1);
  w.subscribe("t", "other", 1);
  ASSERT_EQ(w.publish_and_wait("t", {"a", "b"}), Code::ok);
  ASSERT_TRUE(w.wait_deliveries(2));
  const Delivery held = w.shard().deliveries[0].consumer == consumer ? w.shard().deliveries[0] : w.shard().deliveries[1];
  ASSERT_EQ(w.manage_and_wait(until(on_channel(1, ManagedAction::tombstone, "t", "c", revision(w)), in_ms(w, 1000))).outcome.code,
            Code::ok);
  EXPECT_EQ(w.engine().finish(consumer, held.id, w.now()), Code::channel_tombstoned);
  EXPECT_EQ(w.engine().requeue(consumer, held.id, 0, w.now()), Code::channel_tombstoned);
  EXPECT_EQ(w.engine().touch(consumer, held.id, w.now()), Code::channel_tombstoned);
  EXPECT_EQ(w.publish_and_wait("t", {"c"}), Code::ok);  // the Topic itself is open
  EXPECT_TRUE(w.shard().closed.empty());                // its RDY is used up
  w.engine().set_ready(consumer, 2);
  ASSERT_TRUE(w.wait([&] { return !w.shard().closed.empty(); }));
  EXPECT_EQ(w.shard().closed[0].consumer, consumer);
  EXPECT_EQ(w.shard().closed[0].frame, "E_DELIVERY_FAILED channel is tombstoned");
  w.engine().unsubscribe(consumer, w.now());
  w.subscribe("t", "c", 1);
  EXPECT_EQ(w.shard().subscribed.rbegin()->second.outcome.code, Code::channel_tombstoned);
  w.world.run_for(kSecond);
  w.shard().deliveries.clear();
  w.subscribe("t", "c", 1);
  EXPECT_TRUE(w.wait_deliveries(1));
  EXPECT_EQ(w.shard().deliveries[0].attempts, 2);
}

TEST(Management, ASynchronisationReplacesEveryFenceButTheUnexpiredLocalOnes) {
  EngineOptions options;
  options.console_management = true;
  EngineWorld w(4, options);
  EXPECT_FALSE(w.engine().fences_ready());
  EXPECT_EQ(w.publish_and_wait("t", {"a"}), Code::management_unavailable);
  EXPECT_EQ(w.admin(Admin::create_topic, "t"), Code::management_unavailable);
  ASSERT_EQ(w.sync({"one", {{"fenced", in_ms(w, kHourMs)}}, {{"t", "c", in_ms(w, kHourMs)}}}), Code::ok);
  EXPECT_TRUE(w.engine().fences_ready());
  EXPECT_EQ(w.publish_and_wait("fenced", {"a"}), Code::topic_tombstoned);
  EXPECT_EQ(w.publish_and_wait("t", {"a"}), Code::ok);
  EXPECT_EQ(w.admin(Admin::create_channel, "t", "c"), Code::channel_tombstoned);
  ManagedRequest idle = until(on_channel(1, ManagedAction::remove, "t", "idle", revision(w)), in_ms(w, kHourMs));
  idle.require_idle = true;
  ASSERT_EQ(w.manage_and_wait(idle).outcome.code, Code::ok);
  ASSERT_EQ(w.sync({"two", {}, {}}), Code::ok);
  EXPECT_EQ(w.publish_and_wait("fenced", {"a"}), Code::ok);
  EXPECT_EQ(w.admin(Admin::create_channel, "t", "c"), Code::ok);
  EXPECT_EQ(w.admin(Admin::create_channel, "t", "idle"), Code::channel_tombstoned);
  const std::string stored = w.disk.content(kFences);
  EXPECT_EQ(stored.find(R"({"format":1,"revision":"two","topics":{},"channels":{},"local_channels":{"1:t:idle":)"), 0u) << stored;
  w.process->wall_offset_ns += 2 * kHourMs * kMillisecond;
  ASSERT_EQ(w.sync({"three", {}, {}}), Code::ok);
  EXPECT_EQ(w.disk.content(kFences), R"({"format":1,"revision":"three","topics":{},"channels":{},"local_channels":{}})");
  w.restart();
  EXPECT_EQ(w.publish_and_wait("t", {"a"}), Code::management_unavailable);  // until the next synchronisation
}

TEST(Management, AnIdleOnlyDeleteNeedsNoConsumerAndNoBacklog) {
  EngineWorld w(5);
  const ConsumerId consumer = w.subscribe("t", "c", 0);
  ManagedRequest idle = until(on_channel(1, ManagedAction::remove, "t", "c", revision(w)), in_ms(w, kHourMs));
  idle.require_idle = true;
  EXPECT_EQ(w.manage_and_wait(idle).outcome.code, Code::channel_not_idle);
  EXPECT_EQ(w.disk.content(kOperations), R"({"format":1,"records":{},"completed_order":[]})");  // O-11
  w.engine().unsubscribe(consumer, w.now());
  ASSERT_EQ(w.publish_and_wait("t", {"a", "b"}), Code::ok);
  ASSERT_EQ(w.publish_and_wait("t", {"c"}, 1000), Code::ok);
  const ManagedDone busy = w.manage_and_wait(idle);
  EXPECT_EQ(busy.outcome.code, Code::channel_not_idle);
  EXPECT_EQ(busy.outcome.detail, "depth=3 in_flight=0 deferred=1");
  ASSERT_EQ(w.admin(Admin::empty_channel, "t", "c"), Code::ok);
  EXPECT_EQ(w.manage_and_wait(idle).outcome.code, Code::ok);
  EXPECT_TRUE(w.stats().at(0).channels.empty());
  EXPECT_EQ(w.admin(Admin::create_channel, "t", "c"), Code::channel_tombstoned);
  EXPECT_NE(w.disk.content(kFences).find(R"("local_channels":{"1:t:c":)"), std::string::npos);
}

TEST(Management, AFailedActionTakesItsRecordBack) {
  EngineOptions options;
  options.max_topics = 1;
  EngineWorld w(6, options);
  ASSERT_EQ(w.admin(Admin::create_topic, "t"), Code::ok);
  EXPECT_EQ(w.manage_and_wait(on_topic(1, ManagedAction::create, "u", revision(w))).outcome.code, Code::topic_limit);
  EXPECT_EQ(w.disk.content(kOperations), R"({"format":1,"records":{},"completed_order":[]})");
  ASSERT_EQ(w.admin(Admin::delete_topic, "t"), Code::ok);
  EXPECT_EQ(w.manage_and_wait(on_topic(1, ManagedAction::create, "u", revision(w))).outcome.code, Code::ok);
}

TEST(Management, EmptyTakesEveryChannelAndWhatNoChannelHolds) {
  EngineWorld w(7);
  ASSERT_EQ(w.publish_and_wait("unrouted", {"a"}), Code::ok);
  ASSERT_EQ(w.admin(Admin::create_channel, "t", "c"), Code::ok);
  ASSERT_EQ(w.admin(Admin::create_channel, "t", "d"), Code::ok);
  ASSERT_EQ(w.publish_and_wait("t", {"a", "b"}), Code::ok);
  const ManagedDone done = w.manage_and_wait(on_topic(1, ManagedAction::empty, "t", revision(w)));
  EXPECT_EQ(done.outcome.code, Code::ok);
  EXPECT_TRUE(done.changed);
  ASSERT_EQ(w.manage_and_wait(on_topic(2, ManagedAction::empty, "unrouted", revision(w))).outcome.code, Code::ok);
  w.restart(true);
  for (const TopicStats& topic : w.stats()) {
    EXPECT_EQ(topic.unrouted_depth, 0u);
    for (const ChannelStats& channel : topic.channels) EXPECT_EQ(channel.depth, 0u);
  }
}

TEST(Management, Q_93_AFinishOfADeletedTopicsMessageFailsAndTheNewTopicIsUntouched) {
  EngineWorld w(93);
  const ConsumerId consumer = w.subscribe("t", "c", 1);
  ASSERT_EQ(w.publish_and_wait("t", {"old"}), Code::ok);
  ASSERT_TRUE(w.wait_deliveries(1));
  const Delivery held = w.shard().deliveries[0];
  ASSERT_EQ(w.manage_and_wait(until(on_topic(1, ManagedAction::remove, "t", revision(w)), in_ms(w, kHourMs))).outcome.code,
            Code::ok);
  ASSERT_EQ(w.manage_and_wait(on_topic(2, ManagedAction::create, "t", revision(w))).outcome.code, Code::ok);
  ASSERT_EQ(w.admin(Admin::create_channel, "t", "c"), Code::ok);
  ASSERT_EQ(w.publish_and_wait("t", {"new"}), Code::ok);
  EXPECT_EQ(w.engine().finish(consumer, held.id, w.now()), Code::not_in_flight);
  const TopicStats stats = w.stats().at(0);
  EXPECT_EQ(stats.published_count, 1u);
  EXPECT_EQ(stats.channels.at(0).depth, 1u);
}

TEST(Management, Q_81_CreateWithoutAPolicyMakesAnExistingTopicReliableAndAnEqualPolicyChangesNothing) {
  EngineWorld w(81);
  ManagedRequest create = on_topic(1, ManagedAction::create, "t", revision(w));
  create.policy = DeliveryPolicy{true, 60};
  ASSERT_EQ(w.manage_and_wait(create).outcome.code, Code::ok);
  EXPECT_TRUE(w.stats().at(0).ttl_discard);
  ManagedRequest same = on_topic(2, ManagedAction::configure, "t", revision(w));
  same.policy = DeliveryPolicy{true, 60};
  const std::uint64_t before = revision(w);
  const ManagedDone equal = w.manage_and_wait(same);
  EXPECT_EQ(equal.outcome.code, Code::ok);
  EXPECT_FALSE(equal.changed);
  EXPECT_EQ(equal.revision, before);
  EXPECT_EQ(revision(w), before);
  const ManagedDone reset = w.manage_and_wait(on_topic(3, ManagedAction::create, "t", revision(w)));
  EXPECT_TRUE(reset.changed);
  EXPECT_FALSE(w.stats().at(0).ttl_discard);
}

}  // namespace
}  // namespace rq::queue
