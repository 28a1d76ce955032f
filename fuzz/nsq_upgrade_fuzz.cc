// A whole session through an upgrade: IDENTIFY grants TLS, Snappy or Deflate or two of them, then any bytes come, inside the
// layer as commands, or past it as what a broken client sends. The first three bytes choose the seed, the layers and how the
// stream is cut.
#include <cstdint>
#include <string>
#include <string_view>

#include "fuzz/session_check.h"

namespace {

constexpr std::uint8_t kTls = 1, kSnappy = 2, kDeflate = 4, kPastTheLayer = 8;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rq;
  if (size < 4 || size > 8'192) return 0;
  const std::uint8_t layers = data[1];
  const bool tls = (layers & kTls) != 0, snappy = (layers & kSnappy) != 0, deflate = !snappy && (layers & kDeflate) != 0;
  const std::string_view stream(reinterpret_cast<const char*>(data) + 3, size - 3);
  sim::BrokerHarness h(data[0], [](broker::Config& config) {
    config.limits.max_rdy_count = 10;
    config.security.tls.present = true;
  });
  RQ_CHECK(h.start());
  sim::Client& client = h.connect();
  std::string wish = "{\"feature_negotiation\":true";
  if (tls) wish += ",\"tls_v1\":true";
  if (snappy) wish += ",\"snappy\":true";
  if (deflate) wish += ",\"deflate\":true";
  client.identify(wish + "}");
  RQ_CHECK(client.answer().payload.starts_with("{\"max_rdy_count\":"));
  if (tls) {
    client.start_tls();
    RQ_CHECK(client.answer().payload == "OK");
  }
  if (snappy || deflate) {
    client.compress(snappy ? sim::Client::Compression::snappy : sim::Client::Compression::deflate);
    RQ_CHECK(client.answer().payload == "OK");
  }
  if ((layers & kPastTheLayer) != 0) {
    client.send_plain(stream);
  } else {
    data[2] == 0 ? client.send(stream) : client.send_split(stream, 1 + data[2] % 64);
  }
  h.run_for(200);
  fuzz::check_end(h, client);
  return 0;
}
