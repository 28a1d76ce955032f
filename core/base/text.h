// Small text: decimal numbers in file names and JSON keys, ASCII as protocols compare it.
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

int hex_digit(char c);  // 0 to 15 for 0-9, a-f and A-F, else -1

// ASCII letters only; every other byte is left as it is.
constexpr char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
std::string lower(std::string_view text);
bool equal_ignoring_case(std::string_view a, std::string_view b);

// Without what of `blanks` stands at its ends.
std::string_view trimmed(std::string_view text, std::string_view blanks);

}  // namespace rq
