#include "core/broker/cors.h"

#include <algorithm>
#include <string_view>

namespace rq::broker {

void allow_origin(http::Response& response, const http::Request& request, const std::vector<std::string>& allowed) {
  if (allowed.empty()) return;
  const std::string_view target = request.target;
  if (target.substr(0, target.find('?')) != "/lookup") return;
  response.headers.emplace_back("Vary", "Origin");
  if (!request.origin || std::find(allowed.begin(), allowed.end(), *request.origin) == allowed.end()) return;
  response.headers.emplace_back("Access-Control-Allow-Origin", *request.origin);
  if (request.method != "OPTIONS") return;
  response.headers.emplace_back("Access-Control-Allow-Methods", "GET");
  response.headers.emplace_back("Access-Control-Allow-Headers", "Accept");
  response.headers.emplace_back("Access-Control-Max-Age", "600");
}

}  // namespace rq::broker
