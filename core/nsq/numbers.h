// Numeric parameters of RDY, REQ and DPUB (page 10 section 2.3).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace rq::nsq {

// Digits only; the empty text is 0 and a number beyond 64 bits wraps, as in nsqd. None for anything else.
constexpr std::optional<std::uint64_t> parse_number(std::string_view text) {
  std::uint64_t value = 0;
  for (char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    value = value * 10 + static_cast<std::uint64_t>(c - '0');
  }
  return value;
}

}  // namespace rq::nsq
