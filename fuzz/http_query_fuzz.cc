// Any bytes as a request target, a query, and the body of a publish.
#include <cstdint>
#include <string>

#include "core/base/check.h"
#include "core/broker/http_publish.h"
#include "core/http/query.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto target = rq::http::parse_target(text)) {
    RQ_CHECK(target->path == "*" || target->path.starts_with('/'));
    (void)rq::http::Query::parse(target->query);
  }
  const std::size_t cut = text.find('\n');
  if (cut == std::string_view::npos) return 0;
  const rq::broker::PublishLimits limits{64, 4'096, 1'000};
  const rq::Slice body = rq::Slice::copy_of(rq::bytes_of(text.substr(cut + 1)));
  for (const auto& parsed :
       {rq::broker::parse_pub(text.substr(0, cut), body, limits), rq::broker::parse_mpub(text.substr(0, cut), body, limits)}) {
    if (parsed.refusal) continue;
    RQ_CHECK(parsed.request.defer_ms >= 0 && parsed.request.defer_ms <= 1'000);
    for (const rq::Slice& message : parsed.request.bodies) RQ_CHECK(!message.empty());
  }
  return 0;
}
