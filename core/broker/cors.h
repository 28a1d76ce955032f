// Reading /lookup from a page of another origin (page 31 section 6.8): the origins of websocket.allowed_origins, byte for byte,
// with method GET and request header Accept; also while the live feed itself is disabled.
#pragma once

#include <string>
#include <vector>

#include "core/http/request_parser.h"
#include "core/http/response.h"

namespace rq::broker {

// Adds the headers that the answer to this request needs: none for another route, without a list, or for another origin. A
// preflight (OPTIONS) is told the method, the header and that it may remember this for 600 s.
void allow_origin(http::Response& response, const http::Request& request, const std::vector<std::string>& allowed);

}  // namespace rq::broker
