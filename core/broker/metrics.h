// GET /metrics: the Prometheus text form of page 31 section 7. Every family of the page stands in one table and is always there;
// what this design has no use for (locks of a Topic, committers of a Channel) stays at zero.
//
//  I1 Nothing is counted for this alone on the way of a message: machines count for themselves, the text is made at a scrape.
//  I2 Detailed series cost at most max_detailed_series lines, by name, whole Topics and whole Channels only (7.4).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/broker/rendering.h"
#include "core/broker/server_view.h"

namespace rq::broker {

struct MetricsInput {
  std::uint64_t tcp_connections = 0, http_connections = 0, websocket_connections = 0;
  std::uint64_t publish_bytes_in_flight = 0;
  bool disk_pressure = false;
  io::DiskUsage disk;  // of the latest good reading
  bool detailed = false;
  std::uint64_t max_detailed_series = 0;
  BrokerCounters counters;
  queue::EngineMetrics engine;
  std::vector<queue::TopicStats> topics;  // by name
};

std::unique_ptr<Rendering> metrics_text(MetricsInput input);

// A label's value with backslash, newline and double quote escaped.
std::string metrics_label(std::string_view text);

}  // namespace rq::broker
