// Decimal numbers in file names and JSON keys.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rq {

// Canonical decimal: digits only, no leading zero except "0" itself, no more than 2^64 - 1.
std::optional<std::uint64_t> parse_decimal(std::string_view text);
// Exactly 20 digits, no more than 2^64 - 1.
std::optional<std::uint64_t> parse_decimal20(std::string_view text);
std::string decimal20(std::uint64_t value);

}  // namespace rq
