// rustqueue-qualify: its rules, its statistics, its verdict.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "bench/qualify/statistics.h"
#include "bench/qualify/verdict.h"

namespace rq::qualify {
namespace {

using boost::json::object;
using boost::json::value;

// Candidate over baseline of a metric in one pair.
using Shape = std::function<double(std::string_view metric, std::uint64_t pair)>;

object metrics_of(std::string_view scenario, bool candidate, std::uint64_t pair, const Shape& shape) {
  const auto scaled = [&](const char* name, double base) { return base * (candidate ? shape(name, pair) : 1.0); };
  object m{{"messages", 1000},
           {"publish_messages_per_second", scaled("publish_messages_per_second", 20'000)},
           {"pub_ack_p99_us", scaled("pub_ack_p99_us", 1'500)},
           {"rss_peak_bytes", scaled("rss_peak_bytes", 8e7)},
           {"consumers", scenario == "raw_write" ? 0 : 16}};
  if (scenario == "raw_write") return m;
  m["receive_messages_per_second"] = scaled("receive_messages_per_second", 19'000);
  m["delivery_verified"] = true;
  m["delivery_complete"] = true;
  m["drain_timed_out"] = false;
  m["received_unique_messages"] = 1000;
  for (const char* key : {"missing_messages", "duplicate_messages", "channel_depth", "channel_in_flight", "channel_deferred",
                          "broker_depth", "broker_in_flight", "broker_deferred"})
    m[key] = 0;
  return m;
}

object document_of(const Shape& shape, std::uint64_t pairs = 10) {
  object build{{"revision", "v1"}, {"commit", "base"}, {"image_id", "i"}, {"binary_sha256", "s"}};
  object other = build;
  other["commit"] = "next";
  boost::json::array runs;
  std::uint64_t sequence = 0;
  for (const char* scenario : {"raw_write", "sustainable", "low_load_latency"})
    for (std::uint64_t pair = 1; pair <= pairs; ++pair)
      for (int position = 1; position <= 2; ++position) {
        const bool candidate = (position == 1) == (pair % 2 == 0);
        runs.push_back(object{{"case", scenario},
                              {"pair", pair},
                              {"sequence", ++sequence},
                              {"position_in_pair", position},
                              {"variant", candidate ? "candidate" : "baseline"},
                              {"commit", candidate ? "next" : "base"},
                              {"benchmark_exit_code", 0},
                              {"metrics", metrics_of(scenario, candidate, pair, shape)}});
      }
  return {{"schema_version", 1},
          {"release", "0.10.1"},
          {"generated_at_utc", "2026-01-01T00:00:00Z"},
          {"baseline", build},
          {"candidate", other},
          {"environment", object{{"cpus", 4}, {"note", "\"quoted\""}}},
          {"protocol",
           {{"pairs", pairs},
            {"warmup_seconds", 30},
            {"measurement_seconds", 120},
            {"drain_timeout_seconds", 1800},
            {"alternating_order", "AB_then_BA"},
            {"bootstrap_iterations", 20'000},
            {"bootstrap_seed", 802},
            {"throughput_regression_ratio", 0.95},
            {"latency_rss_regression_ratio", 1.10},
            {"scenarios", {"raw_write", "sustainable", "low_load_latency"}}}},
          {"runs", std::move(runs)}};
}

double same(std::string_view, std::uint64_t) { return 1.0; }

object judged(const object& input) {
  const auto document = read_document(boost::json::serialize(input));
  if (!document) ADD_FAILURE() << document.error();
  if (!document) return {};
  return boost::json::parse(verdict_text(*document, judge(*document))).get_object();
}
std::string refused(const std::function<void(object&)>& change) {
  object input = document_of(same);
  change(input);
  const auto document = read_document(boost::json::serialize(input));
  return document ? "" : document.error();
}
object& run_of(object& input, std::size_t index) { return input.at("runs").get_array()[index].get_object(); }

TEST(QualifyStatistics, QuantilesAreInterpolated) {
  const std::vector<double> values{1, 2, 4};
  EXPECT_EQ(quantile(values, 0), 1);
  EXPECT_EQ(quantile(values, 0.5), 2);
  EXPECT_EQ(quantile(values, 0.75), 3);
  EXPECT_EQ(quantile(values, 1), 4);
  EXPECT_NEAR(geometric_mean({0.5, 2.0, 1.0}), 1.0, 1e-12);
}

TEST(QualifyStatistics, TheHashIsFnv1a) {
  EXPECT_EQ(fnv1a64(""), 0xcbf29ce484222325u);
  EXPECT_EQ(fnv1a64("a"), 0xaf63dc4c8601ec8cu);
}

TEST(QualifyStatistics, ABootstrapOfEqualRatiosHasNoSpread) {
  const Bootstrap spread = bootstrap(std::vector<double>(10, 0.9), 1000, 5);
  EXPECT_NEAR(spread.p05, 0.9, 1e-12);
  EXPECT_NEAR(spread.p95, 0.9, 1e-12);
}

TEST(Qualify, L_21_TheSameInputTwiceGivesTheSameBytes) {
  const object input =
      document_of([](std::string_view, std::uint64_t pair) { return 0.97 + 0.01 * static_cast<double>(pair % 5); });
  const std::string text = boost::json::serialize(input);
  const auto first = read_document(text), second = read_document(text);
  ASSERT_TRUE(first && second);
  const std::string once = verdict_text(*first, judge(*first));
  EXPECT_EQ(once, verdict_text(*second, judge(*second)));
  // And so does the output as input: old statistics and verdict are replaced.
  const auto again = read_document(once);
  ASSERT_TRUE(again);
  EXPECT_EQ(once, verdict_text(*again, judge(*again)));
}

TEST(Qualify, L_22_TenPairsAtNineTenthsOfTheThroughputFail) {
  const object out = judged(
      document_of([](std::string_view metric, std::uint64_t) { return metric == "receive_messages_per_second" ? 0.90 : 1.0; }));
  EXPECT_EQ(out.at("verdict").at("status").as_string(), "fail");
  EXPECT_EQ(boost::json::serialize(out.at("verdict").at("regressions")), "[\"sustainable:receive_messages_per_second\"]");
  EXPECT_TRUE(out.at("verdict").at("hard_failures").as_array().empty());
}

TEST(Qualify, L_22_TenPairsAtAFifthMoreLatencyFail) {
  const object out =
      judged(document_of([](std::string_view metric, std::uint64_t) { return metric == "pub_ack_p99_us" ? 1.20 : 1.0; }));
  EXPECT_EQ(boost::json::serialize(out.at("verdict").at("regressions")), "[\"low_load_latency:pub_ack_p99_us\"]");
}

TEST(Qualify, L_22_NoiseAroundTheThresholdPasses) {
  const object out = judged(document_of([](std::string_view metric, std::uint64_t pair) {
    return metric.ends_with("per_second") ? (pair % 2 == 0 ? 0.85 : 1.05) : 1.0;
  }));
  EXPECT_EQ(out.at("verdict").at("status").as_string(), "pass");
  const object& raw = out.at("statistics").as_array()[0].as_object();
  EXPECT_LT(raw.at("bootstrap_p05").as_double(), 0.95);
  EXPECT_GT(raw.at("bootstrap_p95").as_double(), 0.95);
}

TEST(Qualify, EachStatisticHasItsFields) {
  const object out = judged(document_of([](std::string_view, std::uint64_t) { return 1.05; }));
  const boost::json::array& entries = out.at("statistics").as_array();
  ASSERT_EQ(entries.size(), 4u);
  const object& first = entries[0].as_object();
  std::string keys;
  for (const auto& pair : first) keys += std::string(pair.key()) + " ";
  EXPECT_EQ(keys,
            "case metric direction estimator candidate_over_baseline bootstrap_p05 bootstrap_p95 one_sided_95_bound "
            "regression_threshold regression statistically_significant_improvement bootstrap_seed ");
  EXPECT_NEAR(first.at("candidate_over_baseline").as_double(), 1.05, 1e-9);
  EXPECT_EQ(first.at("one_sided_95_bound").at("kind").as_string(), "upper");
  EXPECT_TRUE(first.at("statistically_significant_improvement").as_bool());
  EXPECT_EQ(first.at("bootstrap_seed").to_number<std::uint64_t>(), 802 ^ fnv1a64("raw_write:publish_messages_per_second"));
  EXPECT_EQ(entries[3].at("metric").as_string(), "rss_peak_bytes");
  EXPECT_EQ(entries[3].at("one_sided_95_bound").at("kind").as_string(), "lower");
  EXPECT_FALSE(entries[3].at("statistically_significant_improvement").as_bool());
  EXPECT_EQ(out.at("verdict").at("status").as_string(), "pass");
}

TEST(Qualify, L_23_ASwappedOrderIsRefused) {
  EXPECT_NE(refused([](object& d) {
              std::swap(run_of(d, 0)["position_in_pair"], run_of(d, 1)["position_in_pair"]);
            }).find("AB_then_BA"),
            std::string::npos);
  EXPECT_NE(refused([](object& d) { std::swap(run_of(d, 0)["sequence"], run_of(d, 1)["sequence"]); }).find("came first"),
            std::string::npos);
}

TEST(Qualify, L_23_AnotherCommitAMissingMessageOrAResidualDepthIsRefused) {
  EXPECT_NE(refused([](object& d) { run_of(d, 3)["commit"] = "wrong"; }).find("runs[3]: another commit"), std::string::npos);
  for (const char* key : {"missing_messages", "duplicate_messages", "channel_depth", "channel_in_flight", "channel_deferred",
                          "broker_depth", "broker_in_flight", "broker_deferred"})
    EXPECT_NE(refused([&](object& d) { run_of(d, 25)["metrics"].get_object()[key] = 1; }).find(std::string(key) + " is not 0"),
              std::string::npos)
        << key;
  EXPECT_NE(refused([](object& d) { run_of(d, 25)["metrics"].get_object()["received_unique_messages"] = 999; }), "");
  EXPECT_NE(refused([](object& d) { run_of(d, 25)["metrics"].get_object()["drain_timed_out"] = true; }), "");
}

TEST(Qualify, EveryOtherRuleIsHeld) {
  EXPECT_EQ(refused([](object&) {}), "");
  const auto protocol = [](object& d) -> object& { return d["protocol"].get_object(); };
  const std::vector<std::function<void(object&)>> changes{
      [](object& d) { d["schema_version"] = 2; },
      [](object& d) { d.erase("release"); },
      [](object& d) { d["environment"] = 1; },
      [](object& d) { d["baseline"].get_object().erase("image_id"); },
      [&](object& d) { protocol(d)["pairs"] = 0; },
      [&](object& d) { protocol(d)["pairs"] = 11; },
      [&](object& d) { protocol(d)["bootstrap_iterations"] = 0; },
      [&](object& d) { protocol(d)["bootstrap_iterations"] = 1e9; },
      [&](object& d) { protocol(d)["measurement_seconds"] = -1; },
      [&](object& d) { protocol(d)["throughput_regression_ratio"] = 1.0; },
      [&](object& d) { protocol(d)["latency_rss_regression_ratio"] = 1.0; },
      [&](object& d) { protocol(d)["alternating_order"] = "BA_then_AB"; },
      [&](object& d) { protocol(d)["scenarios"] = boost::json::array{}; },
      [&](object& d) {
        protocol(d)["scenarios"] = {"raw_write", "raw_write", "sustainable"};
      },
      [&](object& d) {
        protocol(d)["scenarios"] = {"raw_write", "sustainable"};
      },
      [&](object& d) {
        protocol(d)["scenarios"] = {"raw_write", "sustainable", "other"};
      },
      [](object& d) { d["runs"].get_array().pop_back(); },
      [](object& d) { run_of(d, 1)["sequence"] = 1; },
      [](object& d) { run_of(d, 1)["pair"] = 3; },
      [](object& d) { run_of(d, 0)["benchmark_exit_code"] = 1; },
      [](object& d) { run_of(d, 0)["variant"] = "other"; },
      [](object& d) { run_of(d, 0)["metrics"].get_object()["messages"] = 0; },
      [](object& d) { run_of(d, 0)["metrics"].get_object()["rss_peak_bytes"] = 0; },
      [](object& d) { run_of(d, 0)["metrics"].get_object()["pub_ack_p99_us"] = "1"; },
      [](object& d) { run_of(d, 0)["metrics"].get_object()["consumers"] = 1; },
      [](object& d) { run_of(d, 30)["metrics"].get_object()["receive_messages_per_second"] = 0; },
      [](object& d) { run_of(d, 30)["metrics"].get_object()["delivery_verified"] = false; },
  };
  for (std::size_t i = 0; i < changes.size(); ++i) EXPECT_NE(refused(changes[i]), "") << "change " << i;
  for (const char* text : {"", "[]", "{", "{}", "null"}) EXPECT_FALSE(read_document(text)) << text;
}

}  // namespace
}  // namespace rq::qualify
