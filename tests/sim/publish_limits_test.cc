// Page 30 section 16: ids, batches, rotation, limits, the clock and deletion.
#include <set>

#include "sim/harness.h"
#include "tests/sim/engine_fixture.h"

namespace rq::sim {
namespace {

using queue::Code;
using queue::Engine;

constexpr std::uint64_t kSequenceMask = (1ull << 48) - 1;

TEST(PublishCases, Q_11_TheFirstIdAfterARestartBeginsTheNextBlock) {
  EngineWorld w(11);
  ASSERT_TRUE(w.open());
  ASSERT_TRUE(w.publish("t", "a").ok());
  ASSERT_TRUE(w.crash_and_open());
  ASSERT_TRUE(w.publish("t", "b").ok());
  w.subscribe("t", "c", 10);
  ASSERT_TRUE(w.wait_deliveries(2));
  EXPECT_EQ(w.deliveries[0].event.id & kSequenceMask, 1u);
  EXPECT_EQ(w.deliveries[1].event.id & kSequenceMask, (1u << 20) + 1u);
}

TEST(PublishCases, Q_11_IdsAscendOverAThousandCrashes) {
  EngineWorld w(12);
  std::uint64_t last = 0;
  for (int round = 0; round < 1'000; ++round) {
    ASSERT_TRUE(w.open()) << "round " << round;
    const queue::ConsumerId c = w.subscribe("t", "c", 100);
    w.deliveries.clear();
    w.act([&](Engine& e, Now now) { ASSERT_TRUE(e.publish("t", w.bodies("body"), 0, w.waiter(1), now).ok()); });
    ASSERT_TRUE(w.wait_deliveries(1)) << "round " << round;
    const queue::MessageId id = w.deliveries.back().event.id;
    ASSERT_GT(id, last) << "round " << round;
    last = id;
    ASSERT_TRUE(w.finish(c, id)) << "round " << round;
    w.process.kill();
    if (round % 2 == 0) w.disk.power_loss();
  }
}

TEST(PublishCases, Q_12_ABatchOf65536IsOneRequestAndOneMoreIsRefusedWithoutATrace) {
  EngineWorld w(13);
  ASSERT_TRUE(w.open());
  const auto batch = [](std::size_t count) { return std::vector<Slice>(count, Slice::copy_of(bytes_of("b"))); };
  w.act([&](Engine& e, Now now) {
    EXPECT_EQ(e.publish("t", batch(65'537), 0, w.waiter(1), now).code, Code::batch_too_large);
    EXPECT_TRUE(e.publish("t", batch(65'536), 0, w.waiter(2), now).ok());
  });
  ASSERT_TRUE(w.world.run_until([&] { return w.published.size() == 1; }, 10 * kSecond));
  EXPECT_TRUE(w.published[0].event.outcome.ok());
  EXPECT_EQ(w.topic_stats("t").published_count, 65'536u);
  w.subscribe("t", "c", 65'536);
  ASSERT_TRUE(w.wait_deliveries(65'536, 60 * kSecond)) << w.deliveries.size();
  for (std::size_t i = 0; i < w.deliveries.size(); ++i) ASSERT_EQ(w.deliveries[i].event.id & kSequenceMask, i + 1);
  w.act([&](Engine& e, Now now) { EXPECT_EQ(e.publish("t", batch(65'537), 0, w.waiter(1), now).code, Code::batch_too_large); });
  EXPECT_EQ(w.topic_stats("t").published_count, 65'536u);
}

TEST(PublishCases, Q_16_ACrashInsideARotationRecoversBothSegments) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    queue::EngineOptions options = engine_options();
    options.max_segment_bytes = 400;
    EngineWorld w(seed, options);
    ASSERT_TRUE(w.open());
    ASSERT_TRUE(w.publish("t", std::string(100, '0')).ok());
    const auto segments = [&] {
      std::size_t count = 0;
      for (const std::string& path : w.disk.files())
        if (path.ends_with(".rqlog")) ++count;
      return count;
    };
    const std::size_t before = segments();
    w.act([&](Engine& e, Now now) {
      for (std::uint64_t i = 1; i <= 4; ++i)
        ASSERT_TRUE(e.publish("t", w.bodies(std::string(100, static_cast<char>('0' + i))), 0, w.waiter(i), now).ok());
    });
    ASSERT_TRUE(w.world.run_until([&] { return segments() > before; }, kSecond)) << "a new directory entry";
    w.world.run_for(static_cast<std::int64_t>(seed) * 20 * kMicrosecond);
    std::size_t answered = 0;
    for (const auto& done : w.published) answered += done.event.outcome.ok() ? 1 : 0;
    ASSERT_TRUE(w.crash_and_open()) << w.engine().fault()->message();
    w.subscribe("t", "c", 10);
    w.world.run_for(kSecond);
    ASSERT_GE(w.deliveries.size(), answered);
    EXPECT_GE(w.deliveries.size(), 2u) << "what was in the old segment is durable once the new one exists, answered or not";
    for (std::size_t i = 0; i < w.deliveries.size(); ++i)
      EXPECT_EQ(text_of(w.deliveries[i].event.body.bytes()), std::string(100, static_cast<char>('0' + i)));
  }
}

TEST(PublishCases, Q_17_OneTopicTooManyWithAnActiveCommitterIsRefusedUntilOneIsIdle) {
  BrokerHarness h(17);
  ASSERT_TRUE(h.start());
  Client& producer = h.connect();
  for (int i = 0; i < 1'024; ++i) {
    producer.pub("t" + std::to_string(i), "x");
    const Frame answer = producer.answer();
    ASSERT_EQ(answer.payload, "OK") << i;
  }
  HttpReply reply = h.http("POST", "/pub?topic=last", "x");
  EXPECT_EQ(reply.status, 429);
  EXPECT_EQ(reply.header("retry-after"), "1");
  EXPECT_NE(reply.body.find("E_THROTTLED"), std::string::npos) << reply.body;
  h.run_for(61'000);
  reply = h.http("POST", "/pub?topic=last", "x");
  EXPECT_EQ(reply.status, 200) << reply.body;
}

TEST(PublishCases, Q_18_TheTopicLimitIsRetryableAndALowerOneRefusesToStart) {
  BrokerHarness h(18, [](broker::Config& c) { c.queue.max_topics = 3; });
  ASSERT_TRUE(h.start());
  for (const char* topic : {"a", "b", "c"}) ASSERT_EQ(h.publish(topic, "x"), "OK");
  EXPECT_TRUE(h.publish("d", "x").starts_with("E_PUB_RETRY"));
  EXPECT_EQ(h.http("POST", "/pub?topic=d", "x").status, 429);
  EXPECT_EQ(h.http("POST", "/topic/delete?topic=a").status, 200);
  EXPECT_TRUE(h.run_until([&] { return h.publish("d", "x") == "OK"; }, 5'000));
  ASSERT_TRUE(h.stop());
  h.config().queue.max_topics = 2;
  EXPECT_NE(h.start_expecting_refusal(), "");
  EXPECT_EQ(h.last_exit(), broker::Broker::Exit::failed);
  h.config().queue.max_topics = 3;
  EXPECT_TRUE(h.start());
}

TEST(PublishCases, Q_19_AClockThatStepsBackKeepsTheTimestampAndPositionsAndIdsGrow) {
  EngineWorld w(19);
  ASSERT_TRUE(w.open());
  ASSERT_TRUE(w.publish("t", "a").ok());
  w.process.wall_offset_ns = -3'600 * kSecond;
  ASSERT_TRUE(w.publish("t", "b").ok());
  w.subscribe("t", "c", 10);
  ASSERT_TRUE(w.wait_deliveries(2));
  EXPECT_EQ(text_of(w.deliveries[0].event.body.bytes()), "a");
  EXPECT_EQ(w.deliveries[1].event.timestamp_ns, w.deliveries[0].event.timestamp_ns);
  EXPECT_GT(w.deliveries[1].event.id, w.deliveries[0].event.id);
  EXPECT_EQ(w.topic_stats("t").published_count, 2u);
}

TEST(PublishCases, Q_20_PublishesQueuedAtADeletionAreInOneTopicOrFail) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    EngineWorld w(seed);
    ASSERT_TRUE(w.open());
    ASSERT_TRUE(w.publish("t", "before").ok());
    w.subscribe("t", "old", 0);
    w.published.clear();
    std::set<std::uint64_t> refused;
    const auto publish = [&](Engine& e, Now now, std::uint64_t first, std::uint64_t last) {
      for (std::uint64_t i = first; i < last; ++i)
        if (!e.publish("t", w.bodies("m" + std::to_string(i)), 0, w.waiter(100 + i), now).ok()) refused.insert(i);
    };
    w.act([&](Engine& e, Now now) {
      publish(e, now, 0, 10);
      e.admin(queue::Admin::delete_topic, "t", "", w.waiter(3), now);
      publish(e, now, 10, 20);
    });
    ASSERT_TRUE(
        w.world.run_until([&] { return w.admin.size() == 1 && w.published.size() + refused.size() == 20; }, 10 * kSecond));
    EXPECT_TRUE(w.admin[0].outcome.ok());
    ASSERT_TRUE(w.publish("t", "after").ok());
    w.deliveries.clear();
    w.subscribe("t", "new", 100);
    w.world.run_for(kSecond);
    std::set<std::string> present;
    for (const auto& delivery : w.deliveries) present.insert(std::string(text_of(delivery.event.body.bytes())));
    EXPECT_FALSE(present.contains("before"));
    EXPECT_TRUE(present.contains("after"));
    for (const auto& done : w.published) {
      const std::uint64_t number = static_cast<std::uint64_t>(done.event.waiter) - 100;
      if (!done.event.outcome.ok() || number >= 20) continue;
      // OK: before the deletion, which took it along, or in the new Topic.
      EXPECT_TRUE(number < 10 || present.contains("m" + std::to_string(number))) << number;
    }
  }
}

}  // namespace
}  // namespace rq::sim
