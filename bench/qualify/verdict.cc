#include "bench/qualify/verdict.h"

#include <algorithm>

#include "bench/qualify/json_text.h"
#include "bench/qualify/statistics.h"

namespace rq::qualify {
namespace {

struct Gate {
  const char* scenario;
  const char* metric;
  bool higher_is_better;
};
constexpr Gate kGates[] = {
    {"raw_write", "publish_messages_per_second", true},
    {"sustainable", "receive_messages_per_second", true},
    {"low_load_latency", "pub_ack_p99_us", false},
    {"low_load_latency", "rss_peak_bytes", false},
};

std::string name_of(const Statistic& s) { return std::string(s.scenario) + ":" + s.metric; }

boost::json::object object_of(const Statistic& s) {
  return {{"case", s.scenario},
          {"metric", s.metric},
          {"direction", s.higher_is_better ? "higher" : "lower"},
          {"estimator", "geometric_mean_of_pair_ratios"},
          {"candidate_over_baseline", s.estimate},
          {"bootstrap_p05", s.p05},
          {"bootstrap_p95", s.p95},
          {"one_sided_95_bound", {{"kind", s.higher_is_better ? "upper" : "lower"}, {"value", s.bound()}}},
          {"regression_threshold", s.threshold},
          {"regression", s.regression()},
          {"statistically_significant_improvement", s.improvement()},
          {"bootstrap_seed", s.seed}};
}

}  // namespace

std::vector<Statistic> judge(const Document& document) {
  std::vector<Statistic> out;
  const Protocol& p = document.protocol;
  for (const Gate& gate : kGates) {
    if (std::find(p.scenarios.begin(), p.scenarios.end(), gate.scenario) == p.scenarios.end()) continue;
    Statistic s{gate.scenario, gate.metric, gate.higher_is_better, 0, 0, 0, 0, 0};
    const std::vector<double> pairs = ratios(document, gate.scenario, gate.metric);
    s.seed = p.seed ^ fnv1a64(name_of(s));
    s.threshold = gate.higher_is_better ? p.throughput_ratio : p.latency_rss_ratio;
    s.estimate = geometric_mean(pairs);
    const Bootstrap spread = bootstrap(pairs, p.iterations, s.seed);
    s.p05 = spread.p05;
    s.p95 = spread.p95;
    out.push_back(s);
  }
  return out;
}

bool passed(const std::vector<Statistic>& statistics) {
  return std::none_of(statistics.begin(), statistics.end(), [](const Statistic& s) { return s.regression(); });
}

std::string verdict_text(const Document& document, const std::vector<Statistic>& statistics) {
  boost::json::object json = document.json;
  boost::json::array entries, regressions;
  for (const Statistic& s : statistics) {
    entries.push_back(object_of(s));
    if (s.regression()) regressions.push_back(boost::json::string(name_of(s)));
  }
  json["statistics"] = std::move(entries);
  boost::json::object verdict;
  verdict["status"] = passed(statistics) ? "pass" : "fail";
  verdict["hard_failures"] = boost::json::array();
  verdict["regressions"] = std::move(regressions);
  json["verdict"] = std::move(verdict);
  return json_text(json) + "\n";
}

}  // namespace rq::qualify
