// HTTP responses: any bytes in any pieces give the same outcome within the limits. The first byte chooses the pieces.
#include <cstdint>
#include <string_view>

#include "core/base/check.h"
#include "core/http/response_parser.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using rq::http::ResponseParser;
  if (size < 2) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::size_t piece = 1 + data[0] % 16;
  ResponseParser whole(512, 1'000), cut(512, 1'000);
  whole.feed(rq::bytes_of(text));
  for (std::size_t at = 0; at < text.size(); at += piece) cut.feed(rq::bytes_of(text.substr(at, piece)));
  whole.end_of_input();
  cut.end_of_input();
  RQ_CHECK(whole.stage() == cut.stage() && whole.body().size() <= 1'000);
  if (whole.stage() == ResponseParser::Stage::complete) RQ_CHECK(whole.body() == cut.body() && whole.status() == cut.status());
  return 0;
}
