// Whole runs of rustqueue-bench against the Broker, both in the simulated world: virtual time, fragmented reads, real machines.
#include <gtest/gtest.h>

#include <boost/json.hpp>

#include "bench/load/report.h"
#include "sim/harness.h"

namespace rq::load {
namespace {

// A Broker and the load generator as the process "bench".
class LoadRun : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(broker.start()); }
  void begin(LoadOptions with) {
    options = std::move(with);
    options.address = broker.tcp_address();
    process = &broker.world().make_process("bench", disk, [this](io::Host& host, io::Turn&) {
      return std::unique_ptr<io::Shard, void (*)(io::Shard*)>(new LoadShard(host, options, "u", 7),
                                                              [](io::Shard* shard) { delete static_cast<LoadShard*>(shard); });
    });
    process->start();
    process->poke();
  }
  LoadShard& shard() { return *static_cast<LoadShard*>(process->shard()); }
  bool wait(std::int64_t limit_ms = 600'000) {
    return broker.run_until([&] { return shard().done(); }, limit_ms);
  }
  bool run(LoadOptions with) {
    begin(std::move(with));
    return wait();
  }
  const PhaseResult& result() { return shard().phase()->result(); }
  Report report() { return {options, shard().phase()->names(), result(), shard().phase()->latency()}; }
  boost::json::object json() { return boost::json::parse(report().json()).get_object(); }
  // What the load generator sends, or what is sent to it, waits for that long, from then on.
  void stall(std::int64_t after_ms, std::int64_t for_ms, bool answers = false) {
    broker.world().at(after_ms * kMillisecond,
                      [this, answers] { broker.world().partition(answers ? "broker" : "bench", answers ? "bench" : "broker"); });
    broker.world().at((after_ms + for_ms) * kMillisecond, [&] { broker.world().heal(); });
  }
  // From now on nothing travels between the two.
  void silence() {
    broker.world().partition("broker", "bench");
    broker.world().partition("bench", "broker");
  }
  // A Topic that takes messages and delivers none.
  void hold(const std::string& topic) {
    ASSERT_EQ(broker.http("POST", "/topic/create?topic=" + topic).status, 200);
    ASSERT_EQ(broker.http("POST", "/topic/pause?topic=" + topic).status, 200);
  }
  // Runs until the load generator is in that state.
  bool reach(std::string_view state) {
    return broker.run_until([&] {
      const Phase* phase = process->shard() != nullptr ? shard().phase() : nullptr;
      return phase != nullptr && phase->state_name() == state;
    });
  }
  static LoadOptions small() {
    LoadOptions o;
    o.messages = 500;
    o.message_bytes = 100;
    o.producers = 3;
    o.consumers = 2;
    return o;
  }

  sim::BrokerHarness broker{1, [](broker::Config& config) { config.queue.message_timeout_ms = 5'000; }};
  sim::SimDisk& disk = broker.world().make_disk("bench");
  LoadOptions options;
  sim::Process* process = nullptr;
};

TEST_F(LoadRun, EveryMessageIsPublishedAndComesBackOnce) {
  ASSERT_TRUE(run(small()));
  ASSERT_EQ(shard().error(), "");
  EXPECT_EQ(result().published, 500u);
  EXPECT_EQ(result().unique, 500u);
  EXPECT_EQ(result().duplicates(), 0u);
  EXPECT_TRUE(report().valid());
  EXPECT_EQ(shard().phase()->latency().count(), 500u);
}

TEST_F(LoadRun, TheReportHasTheKeysOfTheSpecification) {
  LoadOptions o = small();
  o.batch_size = 7;
  ASSERT_TRUE(run(o));
  ASSERT_EQ(shard().error(), "");
  const boost::json::object object = json();
  const char* keys[] = {"address",
                        "requested_topic",
                        "topic",
                        "channel",
                        "messages",
                        "received_unique_messages",
                        "received_total_messages",
                        "duplicate_messages",
                        "missing_messages",
                        "delivery_verified",
                        "delivery_complete",
                        "drain_timed_out",
                        "message_bytes",
                        "producers",
                        "consumers",
                        "batch_size",
                        "mode",
                        "elapsed_seconds",
                        "messages_per_second",
                        "mebibytes_per_second",
                        "publish_elapsed_seconds",
                        "publish_messages_per_second",
                        "drain_elapsed_seconds",
                        "end_to_end_elapsed_seconds",
                        "receive_messages_per_second",
                        "receive_mebibytes_per_second",
                        "latency_us_p50",
                        "latency_us_p95",
                        "latency_us_p99",
                        "latency_us_p999",
                        "latency_us_max"};
  std::size_t at = 0;
  ASSERT_EQ(object.size(), std::size(keys));
  for (const auto& pair : object) EXPECT_EQ(std::string(pair.key()), keys[at++]);
  EXPECT_EQ(object.at("messages").to_number<int>(), 500);  // 71 batches of 7 and one of 3
  EXPECT_EQ(object.at("mode").as_string(), "saturation");
  EXPECT_EQ(object.at("topic").as_string(), "benchmark-u");
  EXPECT_TRUE(object.at("delivery_verified").as_bool());
  EXPECT_TRUE(object.at("delivery_complete").as_bool());
  EXPECT_EQ(shard().phase()->latency().count(), 72u);
}

TEST_F(LoadRun, AFixedRateKeepsItsScheduleForItsDuration) {
  LoadOptions o = small();
  o.rate = 200;
  o.duration_seconds = 5;
  ASSERT_TRUE(run(o));
  ASSERT_EQ(shard().error(), "");
  EXPECT_EQ(result().published, 1000u);
  EXPECT_NEAR(static_cast<double>(result().publish_ns), 5e9, 0.1e9);
  EXPECT_EQ(json().at("mode").as_string(), "fixed-rate");
}

TEST_F(LoadRun, AWarmUpIsDeliveredOnATopicOfItsOwnAndNotCounted) {
  LoadOptions o = small();
  o.warmup_seconds = 2;
  begin(o);
  ASSERT_TRUE(broker.run_until([&] { return shard().warming() && shard().phase()->published() > 0; }));
  EXPECT_EQ(shard().phase()->names().topic, "benchmark-u-warmup");
  ASSERT_TRUE(wait());
  ASSERT_EQ(shard().error(), "");
  EXPECT_EQ(shard().phase()->names().topic, "benchmark-u");
  EXPECT_EQ(result().published, 500u);
  EXPECT_EQ(result().total, 500u);
}

TEST_F(LoadRun, BodiesTooShortForANumberAreToldApartByTheirIds) {
  LoadOptions o = small();
  o.message_bytes = 1;
  ASSERT_TRUE(run(o));
  ASSERT_EQ(shard().error(), "");
  EXPECT_EQ(result().unique, 500u);
  EXPECT_TRUE(report().valid());
}

TEST_F(LoadRun, L_16_ADuplicateIsReportedAndFailsTheRun) {
  // Deliveries are on their way for longer than the Broker waits for their FINs, so it delivers again.
  LoadOptions o = small();
  o.rate = 100;
  o.duration_seconds = 5;
  begin(o);
  stall(2'000, broker.config().queue.message_timeout_ms + 1'000, true);
  ASSERT_TRUE(wait());
  ASSERT_EQ(shard().error(), "");
  EXPECT_GT(result().duplicates(), 0u);
  EXPECT_EQ(result().missing(), 0u);
  EXPECT_FALSE(report().valid());
  EXPECT_EQ(json().at("duplicate_messages").to_number<std::uint64_t>(), result().duplicates());
}

TEST_F(LoadRun, L_17_TheDrainLimitIsReportedAndFailsTheRun) {
  hold("held");
  LoadOptions o = small();
  o.topic = "held";
  o.reuse_topic = true;
  o.drain_timeout_seconds = 20;
  ASSERT_TRUE(run(o));
  ASSERT_EQ(shard().error(), "");
  EXPECT_FALSE(report().valid());
  const boost::json::object object = json();
  EXPECT_TRUE(object.at("drain_timed_out").as_bool());
  EXPECT_FALSE(object.at("delivery_complete").as_bool());
  EXPECT_EQ(object.at("missing_messages").to_number<int>(), 500);
  EXPECT_NEAR(object.at("drain_elapsed_seconds").as_double(), 20, 0.1);
}

TEST_F(LoadRun, L_17_WithoutConsumersNothingIsVerifiedAndTheRunIsGood) {
  LoadOptions o = small();
  o.consumers = 0;
  ASSERT_TRUE(run(o));
  ASSERT_EQ(shard().error(), "");
  EXPECT_TRUE(report().valid());
  const boost::json::object object = json();
  EXPECT_FALSE(object.at("delivery_verified").as_bool());
  for (const char* key : {"channel", "end_to_end_elapsed_seconds", "receive_messages_per_second", "receive_mebibytes_per_second"})
    EXPECT_TRUE(object.at(key).is_null()) << key;
}

TEST_F(LoadRun, L_18_AStallOfAFixedRateRunIsInItsLatency) {
  LoadOptions o = small();
  o.rate = 100;
  o.duration_seconds = 20;
  begin(o);
  stall(5'000, 3'000);  // 300 of 2,000 arrivals wait, the first for 3 s
  ASSERT_TRUE(wait());
  ASSERT_EQ(shard().error(), "");
  EXPECT_EQ(result().published, 2'000u);
  EXPECT_EQ(shard().phase()->latency().count(), 2'000u);
  EXPECT_GT(shard().phase()->latency().value_at(990), 2'500'000u);
  EXPECT_GT(shard().phase()->latency().value_at(900), 800'000u);
  EXPECT_LT(shard().phase()->latency().value_at(800), 100'000u);
}

TEST_F(LoadRun, ABrokerThatDiesFailsTheRunWithoutAReport) {
  LoadOptions o = small();
  o.rate = 100;
  o.duration_seconds = 5;
  begin(o);
  broker.world().at(2 * kSecond, [&] { broker.kill(); });
  ASSERT_TRUE(wait());
  EXPECT_NE(shard().error().find("lost its connection"), std::string::npos) << shard().error();
}

TEST_F(LoadRun, L_17_ABrokerThatHangsAtTheDrainLimitLeavesTheReport) {
  hold("held");
  LoadOptions o = small();
  o.topic = "held";
  o.reuse_topic = true;
  o.drain_timeout_seconds = 20;
  begin(o);
  ASSERT_TRUE(reach("draining"));
  silence();
  ASSERT_TRUE(wait(20'000 + Phase::kStopNsMax / kMillisecond + 1'000));
  ASSERT_EQ(shard().error(), "");
  EXPECT_FALSE(report().valid());
  const boost::json::object object = json();
  EXPECT_TRUE(object.at("drain_timed_out").as_bool());
  EXPECT_EQ(object.at("messages").to_number<int>(), 500);
  EXPECT_EQ(object.at("missing_messages").to_number<int>(), 500);
}

TEST_F(LoadRun, ABrokerThatDoesNotAnswerSubscriptionsEndsTheRun) {
  begin(small());
  ASSERT_TRUE(broker.run_until([&] { return broker.broker().tcp_connections() == 5; }));
  silence();
  ASSERT_TRUE(wait(40'000));
  EXPECT_EQ(shard().error(), "2 of 5 connections are not ready after 30 s");
}

TEST_F(LoadRun, ABrokerThatNeverAnswersEndsTheRunAtALimit) {
  LoadOptions o = small();
  o.drain_timeout_seconds = 10;
  begin(o);
  ASSERT_TRUE(reach("publishing"));
  silence();
  ASSERT_TRUE(wait(15'000));
  EXPECT_EQ(shard().error(), "nothing was acknowledged for 10 s");
}

TEST_F(LoadRun, ARateThatCannotBeKeptEndsTheRunAtALimit) {
  LoadOptions o = small();
  o.producers = 1;
  o.rate = 10;
  o.duration_seconds = 5;
  o.drain_timeout_seconds = 10;
  begin(o);
  ASSERT_TRUE(reach("publishing"));
  broker.world().net().latency_ns_min = broker.world().net().latency_ns_max = kSecond;  // so a command takes 2 s
  ASSERT_TRUE(wait(20'000));
  EXPECT_TRUE(shard().error().starts_with("the rate cannot be kept: ")) << shard().error();
  EXPECT_TRUE(shard().error().ends_with(" of 50 commands were acknowledged")) << shard().error();
}

TEST_F(LoadRun, ConsumersThatCannotStopFailACompleteRun) {
  begin(small());
  ASSERT_TRUE(reach("stopping"));
  silence();
  ASSERT_TRUE(wait(40'000));
  EXPECT_EQ(shard().error(), "2 consumers are not stopped after 30 s");
}

TEST_F(LoadRun, AWarmUpThatIsNotDeliveredFailsTheRun) {
  hold("benchmark-u-warmup");
  LoadOptions o = small();
  o.rate = 10;
  o.warmup_seconds = 2;
  o.drain_timeout_seconds = 5;
  ASSERT_TRUE(run(o));
  EXPECT_EQ(shard().error(), "warm-up: 20 messages are missing and 0 came twice");
}

TEST_F(LoadRun, ARefusedSubscriptionNamesTheAnswer) {
  broker.kill();
  broker.config().queue.max_topics = 1;
  ASSERT_TRUE(broker.start());
  ASSERT_EQ(broker.publish("other", "x"), "OK");
  ASSERT_TRUE(run(small()));
  EXPECT_NE(shard().error().find("was answered E_"), std::string::npos) << shard().error();
}

}  // namespace
}  // namespace rq::load
