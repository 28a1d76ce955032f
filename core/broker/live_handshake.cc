#include "core/broker/live_handshake.h"

#include <algorithm>
#include <string>

#include "core/broker/live_text.h"
#include "core/storage/names.h"
#include "core/ws/handshake.h"

namespace rq::broker {
namespace {

// Row 1 is about HTTP, not about this API: plain text.
http::Response not_an_upgrade(int status) {
  http::Response response = http::text_response(status == 405   ? "a live feed is read with GET"
                                                : status == 400 ? "Sec-WebSocket-Key is missing"
                                                                : "an upgrade to WebSocket, version 13, is required");
  response.status = status;
  response.nsq_header = false;
  if (status == 405) response.headers.emplace_back("Allow", "GET, OPTIONS");
  if (status == 426) response.headers.emplace_back("Upgrade", "websocket");
  if (status == 426) response.headers.emplace_back("Sec-WebSocket-Version", "13");
  return response;
}

http::Response refusal(int status, std::string_view code, std::string_view detail) {
  http::Response response = http::error_response(status, code, detail);
  response.nsq_header = false;
  return response;
}

http::Response refusal(int status, const LiveEnd& end) { return refusal(status, end.code, end.detail); }

bool origin_allowed(const http::Request& request, const Config::Websocket& websocket) {
  if (!request.origin) return true;
  const auto& allowed = websocket.allowed_origins;
  return std::find(allowed.begin(), allowed.end(), *request.origin) != allowed.end();
}

}  // namespace

std::optional<http::Response> refuse_live_feed(const http::Request& request, std::string_view topic, ServerView& view) {
  if (request.method != "GET") return not_an_upgrade(405);
  const ws::UpgradeOffer offer{request.connection, request.upgrade, request.websocket_key, request.websocket_version,
                               request.websocket_protocols};
  const int status = request.version < 11 ? 426 : ws::offer_status(offer);
  if (status != 0) return not_an_upgrade(status);
  if (request.target.find('?') != std::string::npos) return refusal(400, "E_WS_QUERY_FORBIDDEN", "a query is not accepted");
  if (!origin_allowed(request, view.config().websocket)) return refusal(403, "E_WS_ORIGIN", "the origin is not allowed");
  if (!ws::list_has(request.websocket_protocols, kLiveProtocol, false))
    return refusal(400, "E_WS_SUBPROTOCOL", "rustqueue.live.v1 must be offered");
  if (!storage::valid_name(topic)) return refusal(400, "E_BAD_TOPIC", "the name is not valid");
  if (view.engine().fault() != nullptr || view.stopping()) return refusal(503, live_end::kShutdown);
  const std::optional<queue::DeliveryPolicy> policy = view.engine().policy_of(topic);
  if (!policy) return refusal(404, "E_BAD_TOPIC", "no such Topic on this Broker");
  if (!policy->ttl_discard) {
    ++view.counters().websocket_non_ttl_rejections;
    return refusal(409, live_end::kTtlRequired);
  }
  if (!view.accepting() || !view.delivering()) return refusal(503, live_end::kDraining);
  return std::nullopt;
}

}  // namespace rq::broker
