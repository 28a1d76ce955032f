// "ip:port" literals, IPv6 in brackets, and "name:port". Nothing is looked up here.
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
// Of a host name and a port from 1 to 65535. What looks like an address (the last label is a number) is no name, so a mistyped
// address is not asked for.
struct HostPort {
  std::string host, port;
  bool operator==(const HostPort&) const = default;
};
std::optional<HostPort> parse_host_port(std::string_view text);
std::string format_address(const SocketAddress& address);  // empty for other families

}  // namespace rq::real
