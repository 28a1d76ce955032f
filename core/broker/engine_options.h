// What of the configuration the engine runs with.
#pragma once

#include <cstdint>

#include "core/broker/config.h"
#include "core/queue/engine.h"

namespace rq::broker {

// `process_id` is written into the lock file.
queue::EngineOptions engine_options(const Config& config, std::int64_t process_id);

}  // namespace rq::broker
