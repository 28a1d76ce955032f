// POST /topic/... and /channel/...: checks of page 10 section 6.2 before the engine is asked. GET and PUT /config/<opt> (6.8).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/broker/config.h"
#include "core/broker/http_routes.h"
#include "core/broker/lookup_registration.h"

namespace rq::broker {

struct AdminParse {
  std::optional<http::Response> refusal;
  queue::Admin action = queue::Admin::create_topic;
  std::string topic, channel;
};
AdminParse parse_admin(Route route, std::string_view query, const queue::Engine& engine);

inline constexpr std::uint64_t kConfigValueBytesMax = 64 * 1024;
http::Response config_option(const Config& config, const LookupRegistration& lookups, std::string_view option);
http::Response set_config_option(LookupRegistration& lookups, std::string_view option, ConstBuf body);

}  // namespace rq::broker
