// Runs a Broker on the real ports until it ends.
#pragma once

#include "core/broker/config.h"
#include "io/real/log_sink.h"

namespace rq::service {

// The exit status. Never destroys the Broker: its calls may still be on their way when the process ends.
int serve(const broker::Config& config, real::LogFilter filter);

}  // namespace rq::service
