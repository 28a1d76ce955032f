#include "bench/qualify/document.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "bench/qualify/fields.h"

namespace rq::qualify {
namespace {

using boost::json::object;

void read_protocol(Fields& f, object& json, Protocol& p) {
  p.pairs = f.count(json, "pairs", 1);
  f.count(json, "warmup_seconds", 1);
  f.count(json, "measurement_seconds", 1);
  f.count(json, "drain_timeout_seconds", 1);
  json.insert(boost::json::key_value_pair("bootstrap_iterations", kIterationsDefault));  // nothing when it is there
  p.iterations = f.count(json, "bootstrap_iterations", 1);
  p.seed = f.count(json, "bootstrap_seed", 0);
  p.throughput_ratio = f.number(json, "throughput_regression_ratio");
  p.latency_rss_ratio = f.number(json, "latency_rss_regression_ratio");
  f.require(f.text(json, "alternating_order") == "AB_then_BA", "protocol.alternating_order is not \"AB_then_BA\"");
  f.require(p.throughput_ratio >= 0 && p.throughput_ratio < 1, "protocol.throughput_regression_ratio is not in [0, 1)");
  f.require(p.latency_rss_ratio > 1, "protocol.latency_rss_regression_ratio is not above 1");
  f.require(p.pairs <= kPairsMax && p.iterations <= kIterationsMax && p.pairs * p.iterations <= kDrawsMax,
            "protocol.pairs or protocol.bootstrap_iterations is too large");
  for (const boost::json::value& each : f.array(json, "scenarios")) {
    const std::string name = each.is_string() ? std::string(each.get_string()) : std::string();
    f.require(name == "raw_write" || name == "sustainable" || name == "low_load_latency",
              fmt::format("protocol.scenarios: \"{}\" is no scenario", name));
    f.require(std::find(p.scenarios.begin(), p.scenarios.end(), name) == p.scenarios.end(),
              fmt::format("protocol.scenarios: \"{}\" stands twice", name));
    p.scenarios.push_back(name);
  }
  f.require(!p.scenarios.empty(), "protocol.scenarios is empty");
}

void check_metrics(Fields& f, const Run& run) {
  const object& m = *run.metrics;
  const std::uint64_t messages = f.count(m, "messages", 1);
  f.positive(m, "publish_messages_per_second");
  f.positive(m, "pub_ack_p99_us");
  f.positive(m, "rss_peak_bytes");
  const std::uint64_t consumers = f.count(m, "consumers", 0);
  if (run.scenario == "raw_write") return f.require(consumers == 0, f.at("a raw_write run has consumers"));
  f.require(consumers > 0, f.at("has no consumers"));
  f.require(f.flag(m, "delivery_verified"), f.at("delivery was not verified"));
  f.require(f.flag(m, "delivery_complete"), f.at("delivery is not complete"));
  f.require(!f.flag(m, "drain_timed_out"), f.at("the drain limit was reached"));
  f.require(f.count(m, "received_unique_messages", 0) == messages, f.at("not every message was received"));
  for (const char* key : {"missing_messages", "duplicate_messages", "channel_depth", "channel_in_flight", "channel_deferred",
                          "broker_depth", "broker_in_flight", "broker_deferred"})
    f.require(f.count(m, key, 0) == 0, f.at(fmt::format("{} is not 0", key)));
  f.positive(m, "receive_messages_per_second");
}

Run read_run(Fields& f, const object& json, const Document& document) {
  Run run;
  run.scenario = f.text(json, "case");
  run.pair = f.count(json, "pair", 1);
  run.sequence = f.count(json, "sequence", 0);
  run.position = f.count(json, "position_in_pair", 1);
  const std::string variant = f.text(json, "variant");
  run.candidate = variant == "candidate";
  run.metrics = &f.object(json, "metrics");
  f.require(run.candidate || variant == "baseline", f.at("variant is neither baseline nor candidate"));
  f.require(f.count(json, "benchmark_exit_code", 0) == 0, f.at("the benchmark failed"));
  const auto& scenarios = document.protocol.scenarios;
  f.require(std::find(scenarios.begin(), scenarios.end(), run.scenario) != scenarios.end(), f.at("case is no scenario of it"));
  f.require(run.pair <= document.protocol.pairs && run.position <= 2, f.at("pair or position_in_pair is out of range"));
  // Odd pairs run the baseline first, even pairs the candidate.
  f.require((run.position == 1) == (run.candidate == (run.pair % 2 == 0)), f.at("the order is not AB_then_BA"));
  const object& side = f.object(document.json, variant.c_str());
  f.require(f.text(json, "commit") == f.text(side, "commit"), f.at("another commit than that of its variant"));
  if (f.ok()) check_metrics(f, run);
  return run;
}

void check_coverage(Fields& f, const Document& document) {
  const Protocol& p = document.protocol;
  f.require(document.runs.size() == p.scenarios.size() * p.pairs * 2,
            fmt::format("{} runs instead of {}", document.runs.size(), p.scenarios.size() * p.pairs * 2));
  std::map<std::tuple<std::string, std::uint64_t, std::uint64_t>, std::uint64_t> sequence_at;
  for (const Run& run : document.runs) {
    f.require(sequence_at.try_emplace({run.scenario, run.pair, run.position}, run.sequence).second,
              fmt::format("case {} pair {} position {} stands twice", run.scenario, run.pair, run.position));
  }
  for (const Run& run : document.runs) {
    if (!f.ok() || run.position == 1) continue;
    f.require(sequence_at[{run.scenario, run.pair, 1}] < run.sequence,
              fmt::format("case {} pair {}: its second run came first", run.scenario, run.pair));
  }
}

}  // namespace

tl::expected<Document, std::string> read_document(std::string_view text) {
  boost::json::error_code failed;
  boost::json::value json = boost::json::parse({text.data(), text.size()}, failed);
  if (failed) return tl::unexpected("the input is no JSON: " + failed.message());
  if (!json.is_object()) return tl::unexpected(std::string("the input is no JSON object"));
  Document document{std::move(json.get_object()), {}, {}};
  Fields f;
  f.require(f.count(document.json, "schema_version", 0) == 1, "schema_version is not 1");
  f.text(document.json, "release");
  f.text(document.json, "generated_at_utc");
  for (const char* side : {"baseline", "candidate"}) {
    f.place(side);
    for (const char* key : {"revision", "commit", "image_id", "binary_sha256"}) f.text(f.object(document.json, side), key);
  }
  f.place("");
  f.object(document.json, "environment");
  f.object(document.json, "protocol");
  f.place("protocol");
  if (f.ok()) read_protocol(f, document.json["protocol"].get_object(), document.protocol);
  f.place("");
  const boost::json::array& runs = f.array(document.json, "runs");
  for (std::size_t i = 0; i < runs.size() && f.ok(); ++i) {
    f.place(fmt::format("runs[{}]", i));
    f.require(runs[i].is_object(), f.at("is no object"));
    if (f.ok()) document.runs.push_back(read_run(f, runs[i].get_object(), document));
  }
  if (f.ok()) check_coverage(f, document);
  if (!f.ok()) return tl::unexpected(f.error());
  return document;
}

std::vector<double> ratios(const Document& document, std::string_view scenario, std::string_view metric) {
  std::vector<double> baseline(document.protocol.pairs), candidate(document.protocol.pairs);
  for (const Run& run : document.runs) {
    if (run.scenario != scenario) continue;
    (run.candidate ? candidate : baseline)[run.pair - 1] = run.metrics->at({metric.data(), metric.size()}).to_number<double>();
  }
  for (std::size_t i = 0; i < candidate.size(); ++i) candidate[i] /= baseline[i];
  return candidate;
}

}  // namespace rq::qualify
