// The opening handshake of WebSocket (RFC 6455 section 4.2), as far as it is text.
#pragma once

#include <string>
#include <string_view>

namespace rq::ws {

// What the headers say; a header that came several times is one list, joined by ", ".
struct UpgradeOffer {
  std::string_view connection, upgrade, key, version, protocols;
};
// The status of the refusal: 426 when no upgrade to WebSocket, version 13, is asked for, 400 without a key; 0 when it is one.
int offer_status(const UpgradeOffer& offer);

// True when the comma-separated list has that item; blanks around items do not matter.
bool list_has(std::string_view list, std::string_view item, bool ignore_case);

// Sec-WebSocket-Accept for a key.
std::string accept_key(std::string_view key);

}  // namespace rq::ws
