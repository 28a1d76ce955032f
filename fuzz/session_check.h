// What holds for an NSQ connection whatever a client sends.
#pragma once

#include <string_view>
#include <utility>

#include "core/base/check.h"
#include "sim/harness.h"

namespace rq::fuzz {

// The answer to an AUTH that was granted.
inline bool granted(const sim::Frame& frame) { return frame.type == 0 && frame.payload.starts_with("{\"identity\":"); }

inline bool documented(const sim::Frame& frame) {
  if (frame.type == 2) return frame.payload.size() > 26;
  if (frame.type == 0)
    return frame.payload == "OK" || frame.payload == "CLOSE_WAIT" || frame.payload.starts_with("{\"max_rdy_count\":") ||
           granted(frame);
  static constexpr std::string_view kCodes[] = {"E_INVALID ",     "E_BAD_TOPIC ",       "E_BAD_CHANNEL ",   "E_BAD_BODY ",
                                                "E_BAD_MESSAGE ", "E_IDENTIFY_FAILED ", "E_SUB_FAILED ",    "E_PUB_FAILED ",
                                                "E_MPUB_FAILED ", "E_DPUB_FAILED ",     "E_AUTH_DISABLED ", "E_FIN_FAILED ",
                                                "E_REQ_FAILED ",  "E_TOUCH_FAILED ",    "E_THROTTLED ",     "E_DRAINING ",
                                                "E_PUB_RETRY ",   "E_AUTH_FIRST ",      "E_AUTH_FAILED ",   "E_UNAUTHORIZED "};
  for (const std::string_view code : kCodes) {
    if (frame.is_error(code)) return true;
  }
  return frame.type == 1 && frame.payload == "E_BAD_PROTOCOL";
}

// The client has sent everything: the connection ends, only documented frames came, and nothing of it is left.
// `authed`: AUTH was granted, and its answer is not among the client's frames any more.
inline void check_end(sim::BrokerHarness& h, sim::Client& client, bool auth = false, bool authed = false) {
  client.shutdown_write();
  RQ_CHECK(client.wait_closed(70'000));
  bool allowed = !auth || authed;
  for (const sim::Frame& frame : client.frames()) {
    RQ_CHECK(documented(frame));
    RQ_CHECK(!granted(frame) || !std::exchange(allowed, true));  // one a connection, and none without AUTH
    RQ_CHECK(allowed || frame.type != 2);
  }
  if (!allowed) RQ_CHECK(h.http("GET", "/stats?format=json").body.find("\"topic_name\"") == std::string::npos);
  h.run_for(3'000);
  RQ_CHECK(h.running() && h.broker().tcp_connections() == 0 && h.broker().publish_bytes_in_flight() == 0);
  h.broker().check_invariants();
  RQ_CHECK(h.publish("after", "x") == (auth ? "E_AUTH_FIRST AUTH required before PUB" : "OK"));
}

}  // namespace rq::fuzz
