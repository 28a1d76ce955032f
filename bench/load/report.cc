#include "bench/load/report.h"

#include <fmt/format.h>

#include "core/base/json_writer.h"

namespace rq::load {
namespace {

constexpr double kMebibyte = 1'048'576;

double seconds(std::int64_t ns) { return static_cast<double>(ns) / 1e9; }
// A run of no measurable length has no rate.
double per_second(double amount, std::int64_t ns) { return ns > 0 ? amount / seconds(ns) : 0; }

class Fields {
 public:
  Fields() : writer_(out_) { writer_.begin_object(); }
  template <class T>
  Fields& add(std::string_view key, T value) {
    writer_.key(key).value(value);
    return *this;
  }
  Fields& add(std::string_view key, double value) {
    writer_.key(key).null();
    out_.resize(out_.size() - 4);
    out_ += fmt::format("{:.6f}", value);
    return *this;
  }
  Fields& null(std::string_view key) {
    writer_.key(key).null();
    return *this;
  }
  std::string end() {
    writer_.end_object();
    return std::move(out_);
  }

 private:
  std::string out_;
  JsonWriter writer_;
};

}  // namespace

std::string Report::json() const {
  const bool consumed = options.consumers > 0;
  const double published = static_cast<double>(result.published), received = static_cast<double>(result.unique);
  const double mebibytes = static_cast<double>(options.message_bytes) / kMebibyte;
  const std::int64_t all_ns = result.publish_ns + result.drain_ns;
  Fields f;
  f.add("address", std::string_view(options.address)).add("requested_topic", std::string_view(options.topic));
  f.add("topic", std::string_view(names.topic));
  consumed ? f.add("channel", std::string_view(names.channel)) : f.null("channel");
  f.add("messages", result.published).add("received_unique_messages", result.unique);
  f.add("received_total_messages", result.total).add("duplicate_messages", result.duplicates());
  f.add("missing_messages", consumed ? result.missing() : 0).add("delivery_verified", consumed);
  f.add("delivery_complete", consumed && result.missing() == 0).add("drain_timed_out", result.drain_timed_out);
  f.add("message_bytes", options.message_bytes).add("producers", options.producers).add("consumers", options.consumers);
  f.add("batch_size", options.batch_size).add("mode", options.fixed_rate() ? "fixed-rate" : "saturation");
  f.add("elapsed_seconds", seconds(result.publish_ns)).add("messages_per_second", per_second(published, result.publish_ns));
  f.add("mebibytes_per_second", per_second(published * mebibytes, result.publish_ns));
  f.add("publish_elapsed_seconds", seconds(result.publish_ns));
  f.add("publish_messages_per_second", per_second(published, result.publish_ns));
  f.add("drain_elapsed_seconds", seconds(result.drain_ns));
  if (consumed) {
    f.add("end_to_end_elapsed_seconds", seconds(all_ns)).add("receive_messages_per_second", per_second(received, all_ns));
    f.add("receive_mebibytes_per_second", per_second(received * mebibytes, all_ns));
  } else {
    f.null("end_to_end_elapsed_seconds").null("receive_messages_per_second").null("receive_mebibytes_per_second");
  }
  f.add("latency_us_p50", latency.value_at(500)).add("latency_us_p95", latency.value_at(950));
  f.add("latency_us_p99", latency.value_at(990)).add("latency_us_p999", latency.value_at(999));
  f.add("latency_us_max", latency.max_us());
  return f.end();
}

std::string Report::text() const {
  const std::int64_t all_ns = result.publish_ns + result.drain_ns;
  std::string out = fmt::format("{} to {}: {} messages of {} bytes, {} producers, batch {}\n",
                                options.fixed_rate() ? fmt::format("fixed rate {}/s", *options.rate) : "saturation", names.topic,
                                result.published, options.message_bytes, options.producers, options.batch_size);
  const double published = static_cast<double>(result.published),
               mebibytes = static_cast<double>(options.message_bytes) / kMebibyte;
  out += fmt::format("published  {:.0f} messages/s, {:.1f} MiB/s in {:.3f} s\n", per_second(published, result.publish_ns),
                     per_second(published * mebibytes, result.publish_ns), seconds(result.publish_ns));
  if (options.consumers > 0) {
    out += fmt::format("received   {:.0f} messages/s with {} consumers, {:.3f} s after the last acknowledgement\n",
                       per_second(static_cast<double>(result.unique), all_ns), options.consumers, seconds(result.drain_ns));
    out += fmt::format("delivery   {} unique, {} missing, {} twice{}\n", result.unique, result.missing(), result.duplicates(),
                       result.drain_timed_out ? "; the drain limit was reached" : "");
  }
  out += fmt::format("latency us p50 {}, p95 {}, p99 {}, p99.9 {}, max {}\n", latency.value_at(500), latency.value_at(950),
                     latency.value_at(990), latency.value_at(999), latency.max_us());
  return out;
}

}  // namespace rq::load
