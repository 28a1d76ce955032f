// The input of rustqueue-qualify (page 60 section 6.2), read and held against the hard rules.
#pragma once

#include <boost/json.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

namespace rq::qualify {

inline constexpr std::uint64_t kPairsMax = 10'000;
inline constexpr std::uint64_t kIterationsDefault = 100'000;
inline constexpr std::uint64_t kIterationsMax = 10'000'000;
inline constexpr std::uint64_t kDrawsMax = 2'000'000'000;  // pairs times iterations

struct Protocol {
  std::uint64_t pairs = 0, iterations = 0, seed = 0;
  double throughput_ratio = 0, latency_rss_ratio = 0;
  std::vector<std::string> scenarios;
};

struct Run {
  std::string scenario;
  std::uint64_t pair = 0, sequence = 0, position = 0;
  bool candidate = false;
  const boost::json::object* metrics = nullptr;
};

struct Document {
  boost::json::object json;  // the whole input; Run::metrics points into it
  Protocol protocol;
  std::vector<Run> runs;  // one for each scenario, pair and position
};

// The document, or the first rule that it breaks.
tl::expected<Document, std::string> read_document(std::string_view text);

// candidate / baseline of a metric that every run of the scenario has, in the order of pairs.
std::vector<double> ratios(const Document& document, std::string_view scenario, std::string_view metric);

}  // namespace rq::qualify
