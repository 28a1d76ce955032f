#include "core/broker/metrics_text.h"

#include <fmt/format.h>

namespace rq::broker {

std::string seconds_text(std::uint64_t us) {
  std::string text = fmt::format("{}.{:06}", us / 1'000'000, us % 1'000'000);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

void MetricsText::family(std::string_view name, std::string_view type, std::string_view help) {
  fmt::format_to(std::back_inserter(out_), "# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
}

void MetricsText::sample(std::string_view name, std::string_view labels, std::string_view value) {
  fmt::format_to(std::back_inserter(out_), "{}{{{}}} {}\n", name, labels, value);
}

void MetricsText::scalar(std::string_view name, std::string_view type, std::string_view help, std::uint64_t value) {
  family(name, type, help);
  fmt::format_to(std::back_inserter(out_), "{} {}\n", name, value);
}

void MetricsText::seconds(std::string_view name, std::string_view help, std::uint64_t us) {
  family(name, "gauge", help);
  fmt::format_to(std::back_inserter(out_), "{} {}\n", name, seconds_text(us));
}

void MetricsText::histogram(std::string_view name, std::string_view help, const Histogram& histogram) {
  family(name, "histogram", help);
  const auto out = std::back_inserter(out_);
  std::uint64_t cumulative = 0;
  for (std::size_t i = 0; i < Histogram::kBoundsUs.size(); ++i) {
    cumulative += histogram.buckets[i];
    fmt::format_to(out, "{}_bucket{{le=\"{}\"}} {}\n", name, seconds_text(Histogram::kBoundsUs[i]), cumulative);
  }
  fmt::format_to(out, "{}_bucket{{le=\"+Inf\"}} {}\n{}_sum {}\n{}_count {}\n", name, histogram.count, name,
                 seconds_text(histogram.sum_us), name, histogram.count);
}

}  // namespace rq::broker
