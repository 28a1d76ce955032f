// Any bytes as WebSocket frames of a client: no crash, bounded memory, and the same messages however they are cut. What is read
// as a message is no longer than the limit, which the first byte chooses.
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/check.h"
#include "core/ws/frame.h"

namespace {

struct Outcome {
  std::vector<std::string> got;
  std::uint16_t failure = 0;
  bool operator==(const Outcome&) const = default;
};

Outcome parse(std::string_view bytes, std::size_t piece, std::size_t limit) {
  rq::ws::FrameParser parser(limit);
  Outcome out;
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    rq::ConstBuf input = rq::bytes_of(bytes.substr(at, piece));
    while (!input.empty() && parser.failure() == 0) {
      const std::size_t used = parser.feed(input);
      RQ_CHECK(used <= input.size());
      input = input.subspan(used);
      const rq::ws::Incoming incoming = parser.take();
      RQ_CHECK(used > 0 || incoming.kind != rq::ws::Incoming::Kind::none || parser.failure() != 0);
      if (incoming.kind == rq::ws::Incoming::Kind::none) continue;
      RQ_CHECK(incoming.payload.size() <= limit || incoming.payload.size() <= rq::ws::kControlBytesMax);
      out.got.push_back(std::to_string(static_cast<int>(incoming.kind)) + ":" + std::to_string(incoming.close_code) + ":" +
                        incoming.payload);
    }
  }
  out.failure = parser.failure();
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::size_t limit = std::size_t{data[0]} * 16;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const Outcome whole = parse(bytes, bytes.size(), limit);
  RQ_CHECK(whole == parse(bytes, 1, limit));
  RQ_CHECK(whole == parse(bytes, 5, limit));
  return 0;
}
