// Lowercase hexadecimal, as names and message ids are written (page 20 section 0).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rq {

std::string to_hex(std::string_view bytes);                       // two digits per byte
std::optional<std::string> from_hex(std::string_view text);       // none unless an even number of 0-9 a-f
std::string hex16(std::uint64_t value);                           // exactly 16 digits
std::optional<std::uint64_t> parse_hex16(std::string_view text);  // none unless exactly 16 of 0-9 a-f

}  // namespace rq
