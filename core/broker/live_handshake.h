// The opening handshake of a live feed: the checks of page 31 section 6.1 in their order, as far as they need nothing to wait
// for.
#pragma once

#include <optional>
#include <string_view>

#include "core/broker/server_view.h"
#include "core/http/request_parser.h"
#include "core/http/response.h"

namespace rq::broker {

// Rows 1 to 7: the refusal, or nothing. Counts what row 6 counts.
std::optional<http::Response> refuse_live_feed(const http::Request& request, std::string_view topic, ServerView& view);

}  // namespace rq::broker
