#include "sim/auth_server.h"

#include <fmt/format.h>

namespace rq::sim {

std::string AuthServer::grant(std::string_view permissions, std::string_view topic, std::string_view channels, std::int64_t ttl) {
  return document(fmt::format(R"({{"ttl":{},"identity":"someone","identity_url":"http://who",)"
                              R"("authorizations":[{{"permissions":{},"topic":"{}","channels":{}}}]}})",
                              ttl, permissions, topic, channels));
}

}  // namespace rq::sim
