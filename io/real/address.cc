#include "io/real/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <charconv>
#include <cstdint>
#include <cstring>

namespace rq::real {
namespace {

constexpr std::string_view kDigits = "0123456789";
constexpr std::string_view kNameCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
constexpr std::size_t kNameBytesMax = 253;

// The port behind the last colon, and where that colon is.
bool split_port(std::string_view text, std::size_t& colon, std::uint16_t& port) {
  colon = text.rfind(':');
  if (colon == std::string_view::npos) return false;
  const std::string_view digits = text.substr(colon + 1);
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  return parsed.ec == std::errc{} && parsed.ptr == digits.data() + digits.size();
}

}  // namespace

std::optional<HostPort> parse_host_port(std::string_view text) {
  std::size_t colon = 0;
  std::uint16_t port = 0;
  if (!split_port(text, colon, port) || port == 0) return std::nullopt;
  const std::string_view host = text.substr(0, colon);
  if (host.empty() || host.size() > kNameBytesMax || host.find_first_not_of(kNameCharacters) != std::string_view::npos) {
    return std::nullopt;
  }
  const std::string_view last = host.substr(host.rfind('.') + 1);
  if (!last.empty() && last.find_first_not_of(kDigits) == std::string_view::npos) return std::nullopt;
  return HostPort{std::string(host), std::to_string(port)};
}

std::optional<SocketAddress> parse_address(std::string_view text) {
  std::size_t colon = 0;
  std::uint16_t port = 0;
  if (!split_port(text, colon, port)) return std::nullopt;

  std::string_view host = text.substr(0, colon);
  SocketAddress address;
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    sockaddr_in6 v6{};
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(port);
    if (::inet_pton(AF_INET6, std::string(host.substr(1, host.size() - 2)).c_str(), &v6.sin6_addr) != 1) return std::nullopt;
    std::memcpy(&address.storage, &v6, sizeof v6);
    address.length = sizeof v6;
    return address;
  }
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_port = htons(port);
  if (::inet_pton(AF_INET, std::string(host).c_str(), &v4.sin_addr) != 1) return std::nullopt;
  std::memcpy(&address.storage, &v4, sizeof v4);
  address.length = sizeof v4;
  return address;
}

std::string format_address(const SocketAddress& address) {
  char text[INET6_ADDRSTRLEN] = {};
  if (address.storage.ss_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, &address.storage, sizeof v4);
    ::inet_ntop(AF_INET, &v4.sin_addr, text, sizeof text);
    return std::string(text) + ":" + std::to_string(ntohs(v4.sin_port));
  }
  if (address.storage.ss_family == AF_INET6) {
    sockaddr_in6 v6{};
    std::memcpy(&v6, &address.storage, sizeof v6);
    ::inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof text);
    return "[" + std::string(text) + "]:" + std::to_string(ntohs(v6.sin6_port));
  }
  return {};
}

}  // namespace rq::real
