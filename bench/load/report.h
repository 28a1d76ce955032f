// What rustqueue-bench prints (page 60 section 6.1).
#pragma once

#include <string>

#include "bench/load/load_shard.h"

namespace rq::load {

struct Report {
  const LoadOptions& options;
  const RunNames& names;
  const PhaseResult& result;
  const Latency& latency;

  // With consumers: every message came, and once.
  bool valid() const {
    return options.consumers == 0 || (result.missing() == 0 && result.duplicates() == 0 && !result.drain_timed_out);
  }
  std::string json() const;  // one object, one line, without a line end
  std::string text() const;  // for people, several lines
};

}  // namespace rq::load
