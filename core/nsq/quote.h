// Text as it appears in error frames (page 10, "%q"), and UTF-8.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace rq::nsq {

// In double quotes: `"` and `\` escaped, \a \b \f \n \r \t \v, other ASCII control bytes, 0x7f and bytes outside valid UTF-8 as
// \xNN, printable Unicode as it is, other runes as \uNNNN or \UNNNNNNNN.
std::string quote(std::string_view text);

// Letters, marks, numbers, punctuation and symbols; of the ASCII range also the space.
bool printable(std::uint32_t rune);

// The rune at the start of `text` (not empty) and its length; length 0 when the bytes are not valid UTF-8.
struct Rune {
  std::uint32_t value = 0;
  std::uint32_t length = 0;
};
Rune decode_rune(std::string_view text);

// Invalid bytes replaced by U+FFFD, cut to at most `bytes_max` bytes at a rune boundary.
std::string clean_utf8(std::string_view text, std::size_t bytes_max);

}  // namespace rq::nsq
