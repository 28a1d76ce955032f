// IDENTIFY bodies: decoding never crashes, what is kept is bounded, and what is granted lies within the limits.
#include <cstdint>
#include <string_view>

#include "core/base/check.h"
#include "core/nsq/identify.h"
#include "core/nsq/quote.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rq::nsq;
  Identify wish;
  if (!decode_identify({reinterpret_cast<const char*>(data), size}, wish)) return 0;
  RQ_CHECK(wish.user_agent.size() <= kIdentifyTextBytesMax && wish.client_id.size() <= kIdentifyTextBytesMax);
  RQ_CHECK(clean_utf8(wish.hostname, kIdentifyTextBytesMax) == wish.hostname);
  const IdentifyLimits limits;
  const auto granted = negotiate(wish, defaults(limits), limits);
  if (!granted) return 0;
  RQ_CHECK(granted->heartbeat_ms == -1 || (granted->heartbeat_ms >= 1'000 && granted->heartbeat_ms <= 60'000));
  RQ_CHECK(granted->msg_timeout_ms >= 1'000 && granted->msg_timeout_ms <= 900'000);
  RQ_CHECK(granted->output_buffer_size >= 1 && granted->output_buffer_size <= 65'536);
  RQ_CHECK(granted->deflate_level >= 1 && granted->deflate_level <= 6);
  RQ_CHECK(identify_reply(*granted, limits).size() < 1'024);
  return 0;
}
