#include "core/base/text.h"

namespace rq {
namespace {

std::optional<std::uint64_t> parse_digits(std::string_view text) {
  std::uint64_t value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    if (__builtin_mul_overflow(value, std::uint64_t{10}, &value)) return std::nullopt;
    if (__builtin_add_overflow(value, static_cast<std::uint64_t>(c - '0'), &value)) return std::nullopt;
  }
  return value;
}

}  // namespace

std::optional<std::uint64_t> parse_decimal(std::string_view text) {
  if (text.empty() || text.size() > 20 || (text[0] == '0' && text.size() > 1)) return std::nullopt;
  return parse_digits(text);
}

std::optional<std::uint64_t> parse_decimal20(std::string_view text) {
  if (text.size() != 20) return std::nullopt;
  return parse_digits(text);
}

std::string decimal20(std::uint64_t value) {
  std::string out(20, '0');
  for (std::size_t i = 20; i-- > 0; value /= 10) out[i] = static_cast<char>('0' + value % 10);
  return out;
}

}  // namespace rq
