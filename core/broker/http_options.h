// Options of /config that stand for something else here than for nsqd, and the log level (page 10 section 6.8).
#pragma once

#include <optional>
#include <string_view>

#include "core/broker/server_view.h"
#include "core/http/response.h"

namespace rq::broker {

// Nothing: not an option that this Broker has.
std::optional<http::Response> further_option(const Config& config, std::string_view option);

// nsqd's five levels, a bare word in any letter case: debug, info, warn, error, fatal. `fatal` lets no event through, since a
// Broker that dies of something says so on standard error.
std::optional<LogLevel> parse_log_level(std::string_view text);
int log_level_number(const LogLevel& level);  // 1 debug ... 5 fatal

}  // namespace rq::broker
