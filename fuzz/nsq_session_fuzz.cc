// Any bytes to an NSQ connection of a Broker in the simulated world: never a crash, never a stuck Broker, only documented frames,
// and nothing kept afterwards. The first byte is the seed, the second says how the stream is cut and whether AUTH is on. With
// AUTH the third byte says what the auth server does, the fourth how many of the bytes behind it are its document; nothing is
// published or delivered before it has granted something.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "fuzz/auth_answers.h"
#include "fuzz/session_check.h"

namespace {

using namespace rq;

constexpr std::uint8_t kAuth = 0x80, kCuts = 64;

void run(sim::BrokerHarness& h, std::uint8_t cut, std::string_view stream, bool auth) {
  RQ_CHECK(h.start());
  sim::Client& client = h.connect();
  cut % kCuts == 0 ? client.send(stream) : client.send_split(stream, 1 + cut % kCuts);
  h.run_for(200);
  fuzz::check_end(h, client, auth);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 3 || size > 8'192) return 0;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const bool auth = (data[1] & kAuth) != 0;
  if (auth && size < 5) return 0;
  sim::BrokerHarness h(data[0], [auth](broker::Config& config) {
    config.limits.max_rdy_count = 10;
    if (auth) config.security.auth_http_addresses = {fuzz::kAuthAddress};
  });
  if (!auth) {
    run(h, data[1], input.substr(2), false);
    return 0;
  }
  const std::size_t length = std::min<std::size_t>(data[3], size - 4);
  sim::AuthServer server(h.world(), h.world().make_disk("auth"), "auth", fuzz::kAuthAddress);
  server.answer = [kind = data[2], document = std::string(input.substr(4, length))](const std::string&) {
    return fuzz::auth_answer(kind, document);
  };
  server.start();
  run(h, data[1], input.substr(4 + length), true);
  return 0;
}
