// The gates of rustqueue-qualify (page 60 section 6.2): one statistic each, and the verdict.
#pragma once

#include <string>
#include <vector>

#include "bench/qualify/document.h"

namespace rq::qualify {

struct Statistic {
  const char* scenario;
  const char* metric;
  bool higher_is_better;
  double estimate, p05, p95;  // candidate over baseline
  double threshold;
  std::uint64_t seed;

  // The bound of the one-sided 95 % interval that speaks for the candidate: beyond the threshold even so, it is a regression.
  double bound() const { return higher_is_better ? p95 : p05; }
  bool regression() const { return higher_is_better ? p95 < threshold : p05 > threshold; }
  bool improvement() const { return higher_is_better ? p05 > 1 : p95 < 1; }
};

// The gates of the scenarios that the document has, in a fixed order.
std::vector<Statistic> judge(const Document& document);
bool passed(const std::vector<Statistic>& statistics);
// The input with `statistics` and `verdict`, indented by two blanks, with a line end.
std::string verdict_text(const Document& document, const std::vector<Statistic>& statistics);

}  // namespace rq::qualify
