// What of the configuration the engine runs with.
#pragma once

#include <cstdint>

#include "core/broker/config.h"
#include "core/queue/engine.h"

namespace rq::broker {

// What the engine has to know of the process that it runs in.
struct Process {
  std::int64_t id = 0;              // stands in the lock file
  std::uint64_t file_limit = 1024;  // descriptors that it may have open
};

// At most half of the descriptors are logs being written, and no more than this: the rest is for connections and reads.
inline constexpr std::uint64_t kWriteHandlesMax = 16'384;

queue::EngineOptions engine_options(const Config& config, const Process& process);

}  // namespace rq::broker
