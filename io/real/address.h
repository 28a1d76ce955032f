// "ip:port" literals, IPv6 in brackets. No names are resolved.
#pragma once

#include <sys/socket.h>

#include <optional>
#include <string>
#include <string_view>

namespace rq::real {

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t length = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
};

std::optional<SocketAddress> parse_address(std::string_view text);
std::string format_address(const SocketAddress& address);  // empty for other families

}  // namespace rq::real
