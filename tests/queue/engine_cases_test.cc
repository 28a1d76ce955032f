// Numbered cases of page 30 that are decided by the Engine alone, under the simulated disk.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/queue/engine_world.h"

namespace rq::queue {
namespace {

std::string only_log(EngineWorld& w) { return w.disk.content("data/topics/74/segments/segment-00000000000000000001.rqlog"); }

std::uint64_t answered(EngineWorld& w, Code code) {
  std::uint64_t count = 0;
  for (const auto& [waiter, outcome] : w.shard().published) count += outcome.code == code ? 1 : 0;
  return count;
}

TEST(EngineCases, Q_01_ACrashAfterAppendBeforeFsyncLeavesAWholeMessageOrNone) {
  std::set<std::size_t> outcomes;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    EngineWorld w(seed);
    ASSERT_EQ(w.admin(Admin::create_topic, "t"), Code::ok);
    ASSERT_EQ(w.admin(Admin::create_channel, "t", "c"), Code::ok);
    w.disk.faults.latency_ns_min = w.disk.faults.latency_ns_max = 10 * kMillisecond;
    const std::uint64_t waiter = w.publish("t", {std::string(1000, 'm')});
    w.world.run_for(static_cast<std::int64_t>(seed) * kMillisecond / 2);
    if (w.shard().published.contains(waiter)) continue;  // answered: Q-02
    w.disk.faults = {};
    w.restart(true);
    ASSERT_EQ(w.engine().state(), EngineState::open);
    w.subscribe("t", "c", 5);
    w.world.run_for(kSecond);
    ASSERT_LE(w.shard().deliveries.size(), 1u);
    for (const std::string& body : w.bodies()) EXPECT_EQ(body, std::string(1000, 'm'));
    outcomes.insert(w.shard().deliveries.size());
  }
  EXPECT_TRUE(outcomes.contains(0));
}

TEST(EngineCases, Q_02_AnAnsweredPublishIsDeliveredAfterACrashWithTheSameIdAndTimestamp) {
  EngineWorld w(2);
  const ConsumerId first = w.subscribe("t", "c", 1);
  ASSERT_EQ(w.publish_and_wait("t", {"body"}), Code::ok);
  ASSERT_TRUE(w.wait_deliveries(1));
  const Delivery before = w.shard().deliveries[0];
  EXPECT_EQ(before.consumer, first);
  w.restart(true);
  w.subscribe("t", "c", 1);
  ASSERT_TRUE(w.wait_deliveries(1));
  EXPECT_EQ(w.shard().deliveries[0].id, before.id);
  EXPECT_EQ(w.shard().deliveries[0].timestamp_ns, before.timestamp_ns);
  EXPECT_EQ(w.bodies(), std::vector<std::string>{"body"});
}

TEST(EngineCases, Q_03_SixtyFourQueuedPublishesShareOneFsyncAndTheNextIsInTheNextGroup) {
  EngineWorld w(3);
  ASSERT_EQ(w.publish_and_wait("t", {"first"}), Code::ok);
  ASSERT_TRUE(w.wait([&] { return w.engine().quiet(); }));
  const std::uint64_t barriers = w.engine().metrics().barriers;
  w.disk.faults.latency_ns_min = w.disk.faults.latency_ns_max = kMillisecond;
  for (int i = 0; i < 65; ++i) w.publish("t", {"m"});
  ASSERT_TRUE(w.wait([&] { return answered(w, Code::ok) > 1; }));
  EXPECT_EQ(answered(w, Code::ok), 65u);  // the first one and 64 of this group, in one step
  ASSERT_TRUE(w.wait([&] { return answered(w, Code::ok) == 66; }));
  EXPECT_EQ(w.engine().metrics().barriers - barriers, 2u);
  EXPECT_EQ(w.engine().metrics().publish_group_max, 64u);
  // One record each: 66 headers in the file.
  const std::string log = only_log(w);
  std::size_t records = 0;
  for (std::size_t at = log.find("RQV7"); at != std::string::npos; at = log.find("RQV7", at + 1)) ++records;
  EXPECT_EQ(records, 66u);
}

TEST(EngineCases, Q_04_AGroupHoldsEightMebibytesAndALargerRequestIsAlone) {
  EngineWorld w(4);
  ASSERT_EQ(w.publish_and_wait("t", {"first"}), Code::ok);
  ASSERT_TRUE(w.wait([&] { return w.engine().quiet(); }));
  w.disk.faults.latency_ns_min = w.disk.faults.latency_ns_max = kMillisecond;
  const std::uint64_t a = w.publish("t", {std::string(5u << 20, 'a')});
  const std::uint64_t b = w.publish("t", {std::string(2u << 20, 'b')});
  const std::uint64_t c = w.publish("t", {std::string(2u << 20, 'c')});
  ASSERT_TRUE(w.wait([&] { return w.shard().published.contains(a); }));
  EXPECT_TRUE(w.shard().published.contains(b));
  EXPECT_FALSE(w.shard().published.contains(c));
  ASSERT_TRUE(w.wait([&] { return w.shard().published.contains(c); }));
  const std::uint64_t large = w.publish("t", {std::string(20u << 20, 'd')});
  const std::uint64_t small = w.publish("t", {"e"});
  ASSERT_TRUE(w.wait([&] { return w.shard().published.contains(large); }));
  EXPECT_FALSE(w.shard().published.contains(small));
  ASSERT_TRUE(w.wait([&] { return w.shard().published.contains(small); }));
  EXPECT_EQ(w.shard().published[large].code, Code::ok);
}

TEST(EngineCases, Q_05_ALonePublishIsAppendedInItsTurnAndTwoDoNotWait) {
  EngineWorld w(5);
  ASSERT_EQ(w.publish_and_wait("t", {"first"}), Code::ok);
  w.world.run_for(kSecond);
  const std::uint64_t before = w.engine().metrics().appends;
  const Instant start = w.world.now();
  w.publish("t", {"second"});
  ASSERT_TRUE(w.wait([&] { return w.engine().metrics().appends > before; }));
  EXPECT_LE(w.world.now() - start, kMillisecond);
  w.world.run_for(kSecond);
  const std::uint64_t again = w.engine().metrics().appends;
  const Instant two = w.world.now();
  w.publish("t", {"x"});
  w.publish("t", {"y"});
  ASSERT_TRUE(w.wait([&] { return w.engine().metrics().appends > again; }));
  EXPECT_LE(w.world.now() - two, kMillisecond);
  EXPECT_EQ(w.engine().metrics().appends, again + 1);  // one append for both
}

TEST(EngineCases, Q_06_AFailedGroupFsyncFailsAllTenAndEverythingAfterwards) {
  EngineWorld w(6);
  ASSERT_EQ(w.admin(Admin::create_channel, "t", "c"), Code::ok);
  ASSERT_EQ(w.publish_and_wait("t", {"before"}), Code::ok);
  ASSERT_TRUE(w.wait([&] { return w.engine().quiet(); }));
  w.disk.faults.sync_fail = 1024;
  for (int i = 0; i < 10; ++i) w.publish("t", {"m" + std::to_string(i)});
  ASSERT_TRUE(w.wait([&] { return w.shard().published.size() == 11; }));
  EXPECT_EQ(answered(w, Code::storage), 10u);
  EXPECT_EQ(w.engine().state(), EngineState::faulted);
  EXPECT_EQ(w.publish_and_wait("other", {"x"}), Code::storage);
  w.disk.faults = {};
  w.restart(true);
  ASSERT_EQ(w.engine().state(), EngineState::open);
  w.subscribe("t", "c", 100);
  w.world.run_for(kSecond);
  const std::vector<std::string> bodies = w.bodies();
  ASSERT_GE(bodies.size(), 1u);
  EXPECT_EQ(bodies[0], "before");
  for (std::size_t i = 1; i < bodies.size(); ++i) EXPECT_EQ(bodies[i], "m" + std::to_string(i - 1));  // any prefix
}

TEST(EngineCases, Q_07_AFailedWriteFailsTheWholeGroupAndUsedUpIdsFailOnlyTheRequest) {
  EngineWorld w(7);
  ASSERT_EQ(w.publish_and_wait("t", {"before"}), Code::ok);
  ASSERT_TRUE(w.wait([&] { return w.engine().quiet(); }));
  w.disk.faults.write_io_error = 1024;
  for (int i = 0; i < 5; ++i) w.publish("t", {"m"});
  ASSERT_TRUE(w.wait([&] { return w.shard().published.size() == 6; }));
  EXPECT_EQ(answered(w, Code::storage), 5u);

  EngineWorld ids(8);
  ASSERT_EQ(ids.publish_and_wait("t", {"x"}), Code::ok);
  ASSERT_TRUE(ids.stop());
  ids.process->kill();
  // Three ids are left.
  ids.disk.put("data/broker.meta", R"({"format":7,"node_id":1,"next_sequence":281474976710653,"registry_revision":9})");
  ids.process->start();
  ASSERT_TRUE(ids.wait([&] { return ids.engine().state() == EngineState::open; }));
  const std::uint64_t one = ids.publish("t", {"a"});
  const std::uint64_t two = ids.publish("t", {"b"});
  const std::uint64_t three = ids.publish("t", {"c", "d", "e"});
  const std::uint64_t four = ids.publish("t", {"f"});
  const std::uint64_t five = ids.publish("t", {"g"});
  ASSERT_TRUE(ids.wait([&] { return ids.shard().published.size() == 5; }));
  EXPECT_EQ(ids.shard().published[one].code, Code::ok);
  EXPECT_EQ(ids.shard().published[two].code, Code::ok);
  EXPECT_EQ(ids.shard().published[three].code, Code::sequence_exhausted);
  EXPECT_EQ(ids.shard().published[four].code, Code::ok);
  EXPECT_EQ(ids.shard().published[five].code, Code::sequence_exhausted);
}

TEST(EngineCases, Q_11_IdsRiseOverAThousandCrashesAndABlockIsSkippedAtEachStart) {
  EngineWorld w(11);
  w.subscribe("t", "c", 1);
  ASSERT_EQ(w.publish_and_wait("t", {"a"}), Code::ok);
  ASSERT_TRUE(w.wait_deliveries(1));
  EXPECT_EQ(w.shard().deliveries[0].id & ((1ull << 48) - 1), 1u);
  MessageId last = w.shard().deliveries[0].id;
  w.finish_all();
  for (int round = 0; round < 1000; ++round) {
    w.restart(round % 2 == 0);
    ASSERT_EQ(w.publish_and_wait("t", {"b"}), Code::ok);
    w.subscribe("t", "c", 3);
    ASSERT_TRUE(w.wait_deliveries(1));
    const MessageId id = w.shard().deliveries.back().id;
    if (round == 0) {
      EXPECT_EQ(id & ((1ull << 48) - 1), (1ull << 20) + 1);
    }
    ASSERT_GT(id, last);
    last = id;
    w.finish_all();
  }
}

TEST(EngineCases, Q_12_ABatchOf65536HasConsecutiveIdsAndOneMoreIsRefused) {
  EngineWorld w(12);
  w.shard().check_invariants = false;
  EXPECT_EQ(w.publish_and_wait("t", std::vector<std::string>(65'536, "m")), Code::ok);
  EXPECT_EQ(w.publish_and_wait("t", std::vector<std::string>(65'537, "m")), Code::batch_too_large);
  EXPECT_EQ(w.publish_and_wait("t", {"last"}), Code::ok);
  w.subscribe("t", "c", 2500);
  MessageId expected = 1ull << 48 | 1;
  std::size_t seen = 0;
  while (seen < 65'537) {
    ASSERT_TRUE(w.wait([&] { return !w.shard().deliveries.empty(); }));
    for (const Delivery& delivery : w.shard().deliveries) {
      ASSERT_EQ(delivery.id, expected++);  // no id was used by the refused batch
      ++seen;
    }
    w.finish_all();
  }
  EXPECT_EQ(w.stats().at(0).published_count, 65'537u);
}

TEST(EngineCases, Q_16_ACrashAfterARotationInsideAGroupRecoversBothSegments) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    EngineOptions options;
    options.max_segment_bytes = 4096;
    EngineWorld w(seed, options);
    ASSERT_EQ(w.admin(Admin::create_channel, "t", "c"), Code::ok);
    for (int i = 0; i < 8; ++i) {
      std::string body(901, 'x');
      body[0] = static_cast<char>('0' + i);
      w.publish("t", {body});
    }
    w.wait([&] { return w.disk.exists("data/topics/74/segments/segment-00000000000000000005.rqlog"); });
    const std::uint64_t ok = answered(w, Code::ok);
    w.restart(true);
    ASSERT_EQ(w.engine().state(), EngineState::open) << seed;
    w.subscribe("t", "c", 100);
    w.world.run_for(kSecond);
    ASSERT_GE(w.bodies().size(), std::max<std::uint64_t>(ok, 4)) << seed;  // the rotated part is there even unanswered
    for (std::size_t i = 0; i < w.bodies().size(); ++i) EXPECT_EQ(w.bodies()[i][0], static_cast<char>('0' + i));
  }
}

TEST(EngineCases, Q_17_TheThousandAndTwentyFifthPublishWorkerIsRefusedUntilOneRetires) {
  EngineOptions options;
  options.max_publish_workers = 4;
  EngineWorld w(17, options);
  for (int i = 0; i < 4; ++i) ASSERT_EQ(w.publish_and_wait("t" + std::to_string(i), {"m"}), Code::ok);
  EXPECT_EQ(w.publish_and_wait("t4", {"m"}), Code::worker_limit);
  EXPECT_EQ(w.publish_and_wait("t0", {"m"}), Code::ok);
  w.world.run_for(61 * kSecond);
  EXPECT_EQ(w.publish_and_wait("t4", {"m"}), Code::ok);
  EXPECT_EQ(EngineOptions{}.max_publish_workers, 1'024u);
  EXPECT_EQ(EngineOptions{}.publish_worker_idle_seconds, 60u);
}

TEST(EngineCases, Q_18_OneTopicTooManyIsRetryableAndALowerLimitRefusesTheStart) {
  EngineOptions options;
  options.max_topics = 3;
  EngineWorld w(18, options);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(w.publish_and_wait("t" + std::to_string(i), {"m"}), Code::ok);
  EXPECT_EQ(w.publish_and_wait("t3", {"m"}), Code::topic_limit);
  ASSERT_EQ(w.admin(Admin::delete_topic, "t1"), Code::ok);
  EXPECT_EQ(w.publish_and_wait("t3", {"m"}), Code::ok);
  w.set_options([](EngineOptions& changed) { changed.max_topics = 2; });
  w.restart();
  EXPECT_EQ(w.engine().state(), EngineState::faulted);
}

TEST(EngineCases, Q_19_AWallClockSetBackLeavesTheTimestampAndRisingPositions) {
  EngineWorld w(19);
  w.subscribe("t", "c", 5);
  ASSERT_EQ(w.publish_and_wait("t", {"a"}), Code::ok);
  w.process->wall_offset_ns -= 3600 * kSecond;
  ASSERT_EQ(w.publish_and_wait("t", {"b"}), Code::ok);
  ASSERT_TRUE(w.wait_deliveries(2));
  EXPECT_EQ(w.shard().deliveries[1].timestamp_ns, w.shard().deliveries[0].timestamp_ns);
  EXPECT_GT(w.shard().deliveries[1].id, w.shard().deliveries[0].id);
}

TEST(EngineCases, Q_20_APublishThatMeetsADeletionIsOkBeforeItOrInANewTopicOrFails) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    EngineWorld w(seed);
    ASSERT_EQ(w.publish_and_wait("t", {"first"}), Code::ok);
    std::vector<std::uint64_t> waiters;
    for (int i = 0; i < 20; ++i) waiters.push_back(w.publish("t", {"m" + std::to_string(i)}));
    w.world.run_for(static_cast<std::int64_t>(seed) * 10 * kMicrosecond);
    ASSERT_EQ(w.admin(Admin::delete_topic, "t"), Code::ok);
    ASSERT_TRUE(w.wait([&] {
      return std::all_of(waiters.begin(), waiters.end(), [&](std::uint64_t id) { return w.shard().published.contains(id); });
    }));
    for (std::uint64_t id : waiters) {
      const Code code = w.shard().published[id].code;
      EXPECT_TRUE(code == Code::ok || code == Code::exiting || code == Code::topic_retiring);
    }
    EXPECT_TRUE(w.stats().empty());
    ASSERT_EQ(w.publish_and_wait("t", {"new"}), Code::ok);
    EXPECT_EQ(w.stats().at(0).published_count, 1u);
  }
}

TEST(EngineCases, Q_21_OlderMessagesAreDeliveredAndFinishedWhileAPublishFsyncIsOutstanding) {
  EngineWorld w(21);
  w.subscribe("t", "c", 1);
  ASSERT_EQ(w.publish_and_wait("t", {"a", "b", "c"}), Code::ok);
  ASSERT_TRUE(w.wait_deliveries(1));
  w.disk.faults.latency_ns_min = w.disk.faults.latency_ns_max = 10 * kSecond;
  const std::uint64_t slow = w.publish("t", {"d"});
  w.world.run_for(100 * kMillisecond);
  w.disk.faults = {};  // later calls are fast again; the publish's own barrier is still running
  w.finish_all();
  ASSERT_TRUE(w.wait_deliveries(1));  // the next one, behind a durable FIN
  EXPECT_FALSE(w.shard().published.contains(slow));
  EXPECT_EQ(w.bodies(), std::vector<std::string>{"b"});
}

TEST(EngineCases, Q_22_ReservationAndPublishGoOnWhileAChannelFsyncIsOutstanding) {
  EngineWorld w(22);
  w.subscribe("t", "c", 10);
  const ConsumerId other = w.subscribe("t", "d", 1);
  ASSERT_EQ(w.publish_and_wait("t", {"a", "b", "c"}), Code::ok);
  ASSERT_TRUE(w.wait_deliveries(4));
  ASSERT_TRUE(w.wait([&] { return w.engine().quiet(); }));
  w.disk.faults.latency_ns_min = w.disk.faults.latency_ns_max = 5 * kSecond;
  const Delivery first = w.shard().deliveries[0];
  ASSERT_EQ(w.engine().finish(first.consumer, first.id, w.now()), Code::ok);
  w.process->poke();
  w.world.run_for(10 * kMillisecond);
  w.disk.faults = {};
  w.engine().set_ready(other, 3);
  w.process->poke();
  const std::uint64_t publish = w.publish("t", {"d"});
  ASSERT_TRUE(w.wait_deliveries(6));  // two more on the other Channel
  ASSERT_TRUE(w.wait([&] { return w.shard().published.contains(publish); }, 2 * kSecond));
  EXPECT_TRUE(w.shard().commands.empty());
}

TEST(EngineCases, Q_23_AnAnsweredFinishIsFinalForItsChannelAndForNoOther) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    EngineWorld w(seed);
    ASSERT_EQ(w.admin(Admin::create_channel, "t", "other"), Code::ok);
    w.subscribe("t", "c", 1);
    ASSERT_EQ(w.publish_and_wait("t", {"a"}), Code::ok);
    ASSERT_TRUE(w.wait_deliveries(1));
    w.finish_all();
    w.restart(true);
    w.subscribe("t", "c", 1);
    w.world.run_for(kSecond);
    EXPECT_TRUE(w.shard().deliveries.empty()) << seed;
    w.subscribe("t", "other", 1);
    EXPECT_TRUE(w.wait_deliveries(1)) << seed;
  }
}

TEST(EngineCases, Q_24_AnUnansweredFinishIsAppliedOrNotAndTheFloorIsConsistent) {
  std::set<std::size_t> outcomes;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    EngineWorld w(seed);
    w.subscribe("t", "c", 3);
    ASSERT_EQ(w.publish_and_wait("t", {"a", "b", "c"}), Code::ok);
    ASSERT_TRUE(w.wait_deliveries(3));
    const Delivery first = w.shard().deliveries[0];
    ASSERT_EQ(w.engine().finish(first.consumer, first.id, w.now()), Code::ok);
    w.process->poke();
    w.world.run_for(static_cast<std::int64_t>(seed) * 10 * kMicrosecond);
    if (!w.shard().commands.empty()) continue;
    w.restart(true);
    const ChannelStats stats = w.stats().at(0).channels.at(0);
    ASSERT_EQ(stats.depth, 3 - stats.ack_cursor);
    w.subscribe("t", "c", 3);
    ASSERT_TRUE(w.wait_deliveries(stats.depth));
    outcomes.insert(stats.depth);
  }
  EXPECT_FALSE(outcomes.empty());
}

TEST(EngineCases, Q_32_AttemptsFallBackAfterACrashAndAreKeptByACleanRestart) {
  EngineWorld w(32);
  const ConsumerId consumer = w.subscribe("t", "c", 1);
  ASSERT_EQ(w.publish_and_wait("t", {"a"}), Code::ok);
  ASSERT_TRUE(w.wait_deliveries(1));
  w.restart();
  const ConsumerId again = w.subscribe("t", "c", 1);
  ASSERT_TRUE(w.wait_deliveries(1));
  EXPECT_EQ(w.shard().deliveries[0].attempts, 1);
  w.engine().unsubscribe(again, w.now());
  ASSERT_TRUE(w.stop());
  w.restart();
  w.subscribe("t", "c", 1);
  ASSERT_TRUE(w.wait_deliveries(1));
  EXPECT_EQ(w.shard().deliveries[0].attempts, 2);
  (void)consumer;
}

}  // namespace
}  // namespace rq::queue
