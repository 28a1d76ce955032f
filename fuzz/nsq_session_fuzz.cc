// Any bytes to an NSQ connection of a Broker in the simulated world: never a crash, never a stuck Broker, only documented frames,
// and nothing kept afterwards. The first two bytes choose the seed and how the stream is cut.
#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/check.h"
#include "sim/harness.h"

namespace {

using namespace rq;

bool documented(const sim::Frame& frame) {
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

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 3 || size > 8'192) return 0;
  const std::string_view stream(reinterpret_cast<const char*>(data) + 2, size - 2);
  sim::BrokerHarness h(data[0], [](broker::Config& config) { config.limits.max_rdy_count = 10; });
  RQ_CHECK(h.start());
  sim::Client& client = h.connect();
  data[1] == 0 ? client.send(stream) : client.send_split(stream, 1 + data[1] % 64);
  h.run_for(200);
  client.shutdown_write();
  RQ_CHECK(client.wait_closed(70'000));
  for (const sim::Frame& frame : client.frames()) RQ_CHECK(documented(frame));
  h.run_for(3'000);
  RQ_CHECK(h.running() && h.broker().tcp_connections() == 0 && h.broker().publish_bytes_in_flight() == 0);
  h.broker().check_invariants();
  RQ_CHECK(h.publish("after", "x") == "OK");
  return 0;
}
