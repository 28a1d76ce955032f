// Any bytes as an HTTP request: no crash, bounded memory, and the same result however they are cut.
#include <cstdint>
#include <string>

#include "core/base/check.h"
#include "core/http/body_buffer.h"
#include "core/http/request_parser.h"

namespace {

struct Outcome {
  rq::http::RequestParser::Stage stage;
  int failure;
  std::string body, method, target;
  bool operator==(const Outcome&) const = default;
};

Outcome parse(std::string_view bytes, std::size_t piece) {
  rq::http::RequestParser parser;
  rq::http::BodyBuffer body(1 << 16, std::nullopt);
  using Stage = rq::http::RequestParser::Stage;
  std::size_t at = 0;
  while (at < bytes.size() && parser.stage() != Stage::complete && parser.stage() != Stage::failed) {
    const std::string part(bytes.substr(at, piece));
    const std::size_t used = parser.feed(rq::bytes_of(part), body);
    RQ_CHECK(used > 0 && used <= part.size());
    at += used;
  }
  Outcome out{parser.stage(), parser.failure_status(), {}, {}, {}};
  if (out.stage == Stage::body || out.stage == Stage::complete) {
    out.method = parser.request().method;
    out.target = parser.request().target;
    out.body = std::string(rq::text_of(body.take().bytes()));
  }
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const Outcome whole = parse(bytes, size == 0 ? 1 : size);
  RQ_CHECK(whole == parse(bytes, 1));
  RQ_CHECK(whole == parse(bytes, 7));
  return 0;
}
