// An auth server as a simulated process.
#pragma once

#include "sim/web_server.h"

namespace rq::sim {

class AuthServer final : public WebServer {
 public:
  using WebServer::WebServer;

  static std::string grant(std::string_view permissions, std::string_view topic, std::string_view channels,
                           std::int64_t ttl = 3'600);
};

}  // namespace rq::sim
