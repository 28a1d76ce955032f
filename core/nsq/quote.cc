#include "core/nsq/quote.h"

#include <algorithm>
#include <iterator>

#include "core/nsq/printable_runes.h"

namespace rq::nsq {

Rune decode_rune(std::string_view text) {
  const auto at = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const std::uint8_t lead = at(0);
  if (lead < 0x80) return {lead, 1};
  const std::uint32_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc2 ? 2 : 0;
  if (length == 0 || lead > 0xf4 || text.size() < length) return {};
  std::uint32_t value = lead & (0x7fu >> length);
  for (std::uint32_t i = 1; i < length; ++i) {
    if ((at(i) & 0xc0) != 0x80) return {};
    value = value << 6 | (at(i) & 0x3fu);
  }
  constexpr std::uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  if (value < kLeast[length] || value > 0x10ffff || (value >= 0xd800 && value < 0xe000)) return {};
  return {value, length};
}

bool printable(std::uint32_t rune) {
  if (rune < 0x80) return rune >= 0x20 && rune < 0x7f;
  const auto* after = std::upper_bound(std::begin(kPrintableRunes), std::end(kPrintableRunes), rune,
                                       [](std::uint32_t value, const RuneRange& range) { return value < range.first; });
  return after != std::begin(kPrintableRunes) && rune <= std::prev(after)->last;
}

namespace {
void put_hex(std::string& out, std::uint32_t value, int digits) {
  for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4) out.push_back("0123456789abcdef"[value >> shift & 15]);
}

// The letter of a short escape, or 0.
char short_escape(std::uint32_t rune) {
  switch (rune) {
    case '\a':
      return 'a';
    case '\b':
      return 'b';
    case '\f':
      return 'f';
    case '\n':
      return 'n';
    case '\r':
      return 'r';
    case '\t':
      return 't';
    case '\v':
      return 'v';
    case '"':
    case '\\':
      return static_cast<char>(rune);
    default:
      return 0;
  }
}
}  // namespace

std::string quote(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const Rune rune = decode_rune(text);
    if (rune.length == 0 || (rune.length == 1 && !printable(rune.value) && short_escape(rune.value) == 0)) {
      out += "\\x";
      put_hex(out, static_cast<std::uint8_t>(text[0]), 2);
      text.remove_prefix(1);
      continue;
    }
    if (const char letter = short_escape(rune.value); letter != 0) {
      out.push_back('\\');
      out.push_back(letter);
    } else if (printable(rune.value)) {
      out.append(text.substr(0, rune.length));
    } else {
      out += rune.value > 0xffff ? "\\U" : "\\u";
      put_hex(out, rune.value, rune.value > 0xffff ? 8 : 4);
    }
    text.remove_prefix(rune.length);
  }
  out.push_back('"');
  return out;
}

std::string clean_utf8(std::string_view text, std::size_t bytes_max) {
  constexpr std::string_view kReplacement = "\xef\xbf\xbd";
  std::string out;
  while (!text.empty()) {
    const Rune rune = decode_rune(text);
    const std::string_view piece = rune.length == 0 ? kReplacement : text.substr(0, rune.length);
    if (out.size() + piece.size() > bytes_max) break;
    out.append(piece);
    text.remove_prefix(rune.length == 0 ? 1 : rune.length);
  }
  return out;
}

}  // namespace rq::nsq
