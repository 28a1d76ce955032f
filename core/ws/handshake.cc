#include "core/ws/handshake.h"

#include <openssl/sha.h>

#include <algorithm>
#include <array>

#include "core/base/base64.h"
#include "core/base/text.h"

namespace rq::ws {
namespace {

constexpr std::string_view kGuid = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";  // RFC 6455 section 1.3

}  // namespace

bool list_has(std::string_view list, std::string_view item, bool ignore_case) {
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    const std::string_view part = trimmed(list.substr(0, comma), " \t");
    list.remove_prefix(std::min(comma + 1, list.size()));
    if (ignore_case ? equal_ignoring_case(part, item) : part == item) return true;
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
  return to_base64({reinterpret_cast<const char*>(digest.data()), digest.size()});
}

}  // namespace rq::ws
