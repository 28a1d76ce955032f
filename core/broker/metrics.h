// GET /metrics: the Prometheus text form of page 31 section 7. Every family this build has something to say about stands in one
// table; families of features it lacks are left out, except counters that are truthfully zero and that alert rules read (7.5).
#pragma once

#include <string>
#include <vector>

#include "core/broker/server_view.h"

namespace rq::broker {

struct MetricsInput {
  std::uint64_t tcp_connections = 0;
  std::uint64_t http_connections = 0;
  std::uint64_t publish_bytes_in_flight = 0;
  bool disk_pressure = false;
  bool detailed = false;
  std::uint64_t max_detailed_series = 0;
  BrokerCounters counters;
  queue::EngineMetrics engine;
  std::uint64_t storage_errors = 0;
  std::vector<queue::TopicStats> topics;  // by name
};

std::string metrics_text(const MetricsInput& input);

}  // namespace rq::broker
