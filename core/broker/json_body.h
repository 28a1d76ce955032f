// The JSON bodies of the native routes (page 31 sections 5.3, 5.6 and 5.9). Unknown fields are ignored; null counts as absent
// where a field may be absent.
#pragma once

#include <optional>
#include <string_view>

#include "core/base/bytes.h"
#include "core/http/response.h"
#include "core/queue/engine.h"

namespace rq::broker {

inline constexpr std::uint64_t kJsonBodyBytesMax = 2ull << 20;

// 413, for a body over the limit.
http::Response json_body_too_long();

struct DrainRequest {
  bool enabled = true;
  bool freeze_deliveries = false;
};

// Either a refusal (415, 400 for bad syntax, 422 for missing or wrong fields) or the value.
template <class T>
struct JsonBody {
  std::optional<http::Response> refusal;
  T value{};
};
JsonBody<DrainRequest> parse_drain(std::string_view content_type, ConstBuf body);
// `action` as in the path: an unknown one is 400 E_BAD_ACTION.
JsonBody<queue::ManagedRequest> parse_managed(bool on_channel, std::string_view action, std::string_view content_type,
                                              ConstBuf body);
JsonBody<queue::FenceSnapshot> parse_fences(std::string_view content_type, ConstBuf body);

}  // namespace rq::broker
