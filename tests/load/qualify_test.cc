// rustqueue-qualify: its rules, its statistics, its verdict.
#include <gtest/gtest.h>

#include <algorithm>
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

// Worked out apart from this code: SplitMix64, the high half of draw times count as index. The remainder would give 0.9124.
TEST(QualifyStatistics, TheDrawsAreThoseOfTheSpecification) {
  const Bootstrap spread = bootstrap({0.80, 0.95, 1.00, 1.10, 1.30}, 1000, 802);
  EXPECT_NEAR(spread.p05, 0.9085099622809176, 1e-12);
  EXPECT_NEAR(spread.p95, 1.1420342691903937, 1e-12);
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

TEST(Qualify, EveryOtherRuleIsHeldAndNamed) {
  EXPECT_EQ(refused([](object&) {}), "");
  const auto protocol = [](object& d) -> object& { return d["protocol"].get_object(); };
  const auto metrics = [](object& d, std::size_t index) -> object& { return run_of(d, index)["metrics"].get_object(); };
  // Only these scenarios, in the protocol and among the runs.
  const auto scenarios = [&](object& d, const std::vector<std::string>& kept) {
    protocol(d)["scenarios"] = boost::json::array(kept.begin(), kept.end());
    auto& runs = d["runs"].get_array();
    for (auto run = runs.begin(); run != runs.end();)
      run = std::find(kept.begin(), kept.end(), run->at("case").as_string()) == kept.end() ? runs.erase(run) : run + 1;
  };
  struct Rule {
    const char* complaint;
    std::function<void(object&)> change;
  };
  const Rule rules[] = {
      {"schema_version is not 1", [](object& d) { d["schema_version"] = 2; }},
      {"release is missing", [](object& d) { d.erase("release"); }},
      {"generated_at_utc is no text", [](object& d) { d["generated_at_utc"] = 1; }},
      {"environment is no object", [](object& d) { d["environment"] = 1; }},
      {"baseline: image_id is missing", [](object& d) { d["baseline"].get_object().erase("image_id"); }},
      {"candidate: binary_sha256 is missing", [](object& d) { d["candidate"].get_object().erase("binary_sha256"); }},
      {"protocol: pairs is not above 0", [&](object& d) { protocol(d)["pairs"] = 0; }},
      {"60 runs instead of 66", [&](object& d) { protocol(d)["pairs"] = 11; }},
      {"protocol: warmup_seconds is not above 0", [&](object& d) { protocol(d)["warmup_seconds"] = 0; }},
      {"protocol: measurement_seconds is no whole number from 0 on", [&](object& d) { protocol(d)["measurement_seconds"] = -1; }},
      {"protocol: drain_timeout_seconds is missing", [&](object& d) { protocol(d).erase("drain_timeout_seconds"); }},
      {"protocol: bootstrap_iterations is not above 0", [&](object& d) { protocol(d)["bootstrap_iterations"] = 0; }},
      {"protocol.pairs or protocol.bootstrap_iterations is too large",
       [&](object& d) { protocol(d)["bootstrap_iterations"] = kIterationsMax + 1; }},
      {"protocol.throughput_regression_ratio is not in [0, 1)",
       [&](object& d) { protocol(d)["throughput_regression_ratio"] = 1.0; }},
      {"protocol.throughput_regression_ratio is not in [0, 1)",
       [&](object& d) { protocol(d)["throughput_regression_ratio"] = -0.1; }},
      {"protocol.latency_rss_regression_ratio is not above 1",
       [&](object& d) { protocol(d)["latency_rss_regression_ratio"] = 1.0; }},
      {"protocol.alternating_order is not \"AB_then_BA\"", [&](object& d) { protocol(d)["alternating_order"] = "BA_then_AB"; }},
      {"protocol.scenarios is empty", [&](object& d) { scenarios(d, {}); }},
      {"protocol.scenarios: \"raw_write\" stands twice",
       [&](object& d) {
         scenarios(d, {"raw_write", "raw_write"});
         auto& runs = d["runs"].get_array();  // so that their number is right
         for (std::size_t i = 0, count = runs.size(); i < count; ++i) runs.push_back(value(runs[i]));
       }},
      {"protocol.scenarios: \"other\" is no scenario",
       [&](object& d) {
         for (std::size_t i = 40; i < 60; ++i) run_of(d, i)["case"] = "other";
         scenarios(d, {"raw_write", "sustainable", "other"});
       }},
      {"runs[40]: case is no scenario of it",
       [&](object& d) {
         protocol(d)["scenarios"] = {"raw_write", "sustainable"};
       }},
      {"59 runs instead of 60", [](object& d) { d["runs"].get_array().pop_back(); }},
      {"runs[7]: is no object", [](object& d) { d["runs"].get_array()[7] = 1; }},
      {"case raw_write pair 3 position 2 stands twice", [](object& d) { run_of(d, 1)["pair"] = 3; }},
      {"runs[0]: pair or position_in_pair is out of range", [](object& d) { run_of(d, 0)["pair"] = 11; }},
      {"runs[1]: pair or position_in_pair is out of range", [](object& d) { run_of(d, 1)["position_in_pair"] = 3; }},
      {"runs[0]: the benchmark failed", [](object& d) { run_of(d, 0)["benchmark_exit_code"] = 1; }},
      {"runs[0]: variant is neither baseline nor candidate", [](object& d) { run_of(d, 0)["variant"] = "other"; }},
      {"runs[0]: sequence is missing", [](object& d) { run_of(d, 0).erase("sequence"); }},
      {"runs[0]: messages is not above 0", [&](object& d) { metrics(d, 0)["messages"] = 0; }},
      {"runs[0]: publish_messages_per_second is not above 0",
       [&](object& d) { metrics(d, 0)["publish_messages_per_second"] = 0; }},
      {"runs[0]: rss_peak_bytes is not above 0", [&](object& d) { metrics(d, 0)["rss_peak_bytes"] = 0; }},
      {"runs[0]: pub_ack_p99_us is no number", [&](object& d) { metrics(d, 0)["pub_ack_p99_us"] = "1"; }},
      {"runs[0]: a raw_write run has consumers", [&](object& d) { metrics(d, 0)["consumers"] = 1; }},
      {"runs[30]: has no consumers", [&](object& d) { metrics(d, 30)["consumers"] = 0; }},
      {"runs[30]: receive_messages_per_second is not above 0",
       [&](object& d) { metrics(d, 30)["receive_messages_per_second"] = 0; }},
      {"runs[30]: delivery was not verified", [&](object& d) { metrics(d, 30)["delivery_verified"] = false; }},
      {"runs[30]: delivery is not complete", [&](object& d) { metrics(d, 30)["delivery_complete"] = false; }},
      {"runs[30]: the drain limit was reached", [&](object& d) { metrics(d, 30)["drain_timed_out"] = true; }},
      {"runs[30]: drain_timed_out is neither true nor false", [&](object& d) { metrics(d, 30)["drain_timed_out"] = 0; }},
      {"runs[30]: not every message was received", [&](object& d) { metrics(d, 30)["received_unique_messages"] = 999; }},
  };
  for (const Rule& rule : rules) EXPECT_EQ(refused(rule.change), rule.complaint);
  for (const char* text : {"", "[]", "{", "{}", "null"}) EXPECT_FALSE(read_document(text)) << text;
}

TEST(Qualify, ADocumentWithoutANumberOfIterationsHasAHundredThousand) {
  object input = document_of(same, 2);
  input["protocol"].get_object().erase("bootstrap_iterations");
  const auto document = read_document(boost::json::serialize(input));
  ASSERT_TRUE(document) << document.error();
  EXPECT_EQ(document->protocol.iterations, 100'000u);
  EXPECT_EQ(judged(input).at("protocol").at("bootstrap_iterations").to_number<int>(), 100'000);
}

// The page asks for the order of a pair, not for numbers of one kind: they may begin at 0, or anew in each scenario.
TEST(Qualify, SequencesSayOnlyWhichRunOfAPairCameFirst) {
  object input = document_of(same);
  for (boost::json::value& run : input["runs"].get_array())
    run.get_object()["sequence"] = run.at("position_in_pair").to_number<int>() - 1;
  EXPECT_EQ(judged(input).at("verdict").at("status").as_string(), "pass");
  EXPECT_EQ(refused([](object& d) { run_of(d, 1)["sequence"] = 1; }), "case raw_write pair 1: its second run came first");
}

}  // namespace
}  // namespace rq::qualify
