// Families in the text form of Prometheus, version 0.0.4: one HELP and one TYPE line, then the samples of that family.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/histogram.h"
#include "core/queue/engine.h"

namespace rq::broker {

class MetricsText {
 public:
  explicit MetricsText(std::string& out) : out_(out) {}

  void counter(std::string_view name, std::string_view help, std::uint64_t value) { scalar(name, "counter", help, value); }
  void gauge(std::string_view name, std::string_view help, std::uint64_t value) { scalar(name, "gauge", help, value); }
  void seconds(std::string_view name, std::string_view help, std::uint64_t us);  // a gauge
  void histogram(std::string_view name, std::string_view help, const Histogram& histogram);

  void family(std::string_view name, std::string_view type, std::string_view help);
  // A sample of the family; `labels` as they stand between the braces.
  void sample(std::string_view name, std::string_view labels, std::string_view value);

 private:
  void scalar(std::string_view name, std::string_view type, std::string_view help, std::uint64_t value);
  std::string& out_;
};

// Decimal seconds, exact, without trailing zeros.
std::string seconds_text(std::uint64_t us);

// Page 31 section 7.4 with its two gauges: six series a Topic, four a Channel, by name, at most `budget` in all.
class DetailedSeries {
 public:
  // Writes the gauges. `topics` outlive it.
  DetailedSeries(MetricsText& out, const std::vector<queue::TopicStats>& topics, std::uint64_t budget);
  bool step(MetricsText& out);  // one series; false: there is no more

 private:
  std::vector<const queue::TopicStats*> topics_;
  std::vector<std::pair<const queue::TopicStats*, const queue::ChannelStats*>> channels_;
  std::size_t family_ = 0, row_ = 0;  // of the next series
};

}  // namespace rq::broker
