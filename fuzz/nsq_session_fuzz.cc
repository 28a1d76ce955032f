// Any bytes to an NSQ connection of a Broker in the simulated world: never a crash, never a stuck Broker, only documented frames,
// and nothing kept afterwards. The first two bytes choose the seed and how the stream is cut.
#include <cstdint>
#include <string_view>

#include "fuzz/session_check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rq;
  if (size < 3 || size > 8'192) return 0;
  const std::string_view stream(reinterpret_cast<const char*>(data) + 2, size - 2);
  sim::BrokerHarness h(data[0], [](broker::Config& config) { config.limits.max_rdy_count = 10; });
  RQ_CHECK(h.start());
  sim::Client& client = h.connect();
  data[1] == 0 ? client.send(stream) : client.send_split(stream, 1 + data[1] % 64);
  h.run_for(200);
  fuzz::check_end(h, client);
  return 0;
}
