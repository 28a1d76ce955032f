// What holds for an NSQ connection whatever a client sends.
#pragma once

#include <string_view>

#include "core/base/check.h"
#include "sim/harness.h"

namespace rq::fuzz {

inline bool documented(const sim::Frame& frame) {
  if (frame.type == 2) return frame.payload.size() > 26;
  if (frame.type == 0)
    return frame.payload == "OK" || frame.payload == "CLOSE_WAIT" || frame.payload.starts_with("{\"max_rdy_count\":");
  static constexpr std::string_view kCodes[] = {
      "E_INVALID ",    "E_BAD_TOPIC ",    "E_BAD_CHANNEL ", "E_BAD_BODY ",    "E_BAD_MESSAGE ",   "E_IDENTIFY_FAILED ",
      "E_SUB_FAILED ", "E_PUB_FAILED ",   "E_MPUB_FAILED ", "E_DPUB_FAILED ", "E_AUTH_DISABLED ", "E_FIN_FAILED ",
      "E_REQ_FAILED ", "E_TOUCH_FAILED ", "E_THROTTLED ",   "E_DRAINING ",    "E_PUB_RETRY "};
  for (const std::string_view code : kCodes) {
    if (frame.is_error(code)) return true;
  }
  return frame.type == 1 && frame.payload == "E_BAD_PROTOCOL";
}

// The client has sent everything: the connection ends, only documented frames came, and nothing of it is left.
inline void check_end(sim::BrokerHarness& h, sim::Client& client) {
  client.shutdown_write();
  RQ_CHECK(client.wait_closed(70'000));
  for (const sim::Frame& frame : client.frames()) RQ_CHECK(documented(frame));
  h.run_for(3'000);
  RQ_CHECK(h.running() && h.broker().tcp_connections() == 0 && h.broker().publish_bytes_in_flight() == 0);
  h.broker().check_invariants();
  RQ_CHECK(h.publish("after", "x") == "OK");
}

}  // namespace rq::fuzz
