#include "core/ws/handshake.h"

#include <openssl/sha.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

namespace rq::ws {
namespace {

constexpr std::string_view kGuid = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";  // RFC 6455 section 1.3

bool equal(std::string_view a, std::string_view b, bool ignore_case) {
  const auto fold = [ignore_case](char c) { return ignore_case && c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [fold](char x, char y) { return fold(x) == fold(y); });
}

std::string base64(std::span<const std::uint8_t> bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - at);
    std::uint32_t group = 0;
    for (std::size_t i = 0; i < 3; ++i) group = group << 8 | (i < count ? bytes[at + i] : 0u);
    for (std::size_t i = 0; i < 4; ++i) out.push_back(i <= count ? kDigits[group >> (18 - 6 * i) & 63] : '=');
  }
  return out;
}

}  // namespace

bool list_has(std::string_view list, std::string_view item, bool ignore_case) {
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    std::string_view part = list.substr(0, comma);
    list.remove_prefix(std::min(comma + 1, list.size()));
    while (!part.empty() && (part.front() == ' ' || part.front() == '\t')) part.remove_prefix(1);
    while (!part.empty() && (part.back() == ' ' || part.back() == '\t')) part.remove_suffix(1);
    if (equal(part, item, ignore_case)) return true;
  }
  return false;
}

int offer_status(const UpgradeOffer& offer) {
  if (!list_has(offer.connection, "upgrade", true) || !list_has(offer.upgrade, "websocket", true)) return 426;
  if (offer.key.empty()) return 400;
  return offer.version == "13" ? 0 : 426;
}

std::string accept_key(std::string_view key) {
  std::string text(key);
  text += kGuid;
  std::array<std::uint8_t, SHA_DIGEST_LENGTH> digest;
  SHA1(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
  return base64(digest);
}

}  // namespace rq::ws
