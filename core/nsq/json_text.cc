#include "core/nsq/json_text.h"

#include <cstdint>

#include "core/base/text.h"
#include "core/nsq/quote.h"

namespace rq::nsq {
namespace {

constexpr std::uint32_t kLongS = 0x17f, kKelvin = 0x212a;

// The code unit of "\uXXXX" at `at`, or 0.
std::uint32_t escaped_unit(std::string_view json, std::size_t at) {
  if (json.size() < at + 6 || json[at] != '\\' || json[at + 1] != 'u') return 0;
  std::uint32_t unit = 0;
  for (std::size_t i = at + 2; i < at + 6; ++i) {
    const int digit = hex_digit(json[i]);
    if (digit < 0) return 0;
    unit = unit << 4 | static_cast<std::uint32_t>(digit);
  }
  return unit;
}
bool high_half(std::uint32_t unit) { return unit >= 0xd800 && unit < 0xdc00; }
bool low_half(std::uint32_t unit) { return unit >= 0xdc00 && unit < 0xe000; }

}  // namespace

bool same_json_key(std::string_view known, std::string_view key) {
  for (const char letter : known) {
    if (key.empty()) return false;
    const Rune rune = decode_rune(key);
    if (rune.length == 0) return false;
    std::uint32_t folded = rune.value;
    if (folded >= 'A' && folded <= 'Z') folded += 'a' - 'A';
    if (folded == kLongS) folded = 's';
    if (folded == kKelvin) folded = 'k';
    if (folded != static_cast<unsigned char>(letter)) return false;
    key.remove_prefix(rune.length);
  }
  return key.empty();
}

std::string_view whole_pairs(std::string_view json, std::string& storage) {
  std::size_t at = json.find('\\');
  while (at != std::string_view::npos) {
    const std::uint32_t unit = escaped_unit(json, at);
    if (high_half(unit) && low_half(escaped_unit(json, at + 6))) {
      at += 12;
    } else {
      if (high_half(unit) || low_half(unit)) {
        if (storage.empty()) {
          storage = json;
          json = storage;
        }
        storage.replace(at + 2, 4, "fffd");
      }
      at += 2;
    }
    at = json.find('\\', at);
  }
  return json;
}

}  // namespace rq::nsq
