#include "io/sim/socket_address.h"

#include <charconv>

namespace rq::sim {
namespace {

template <class T>
bool parse_number(std::string_view text, T& out, std::uint32_t max) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size() || value > max) return false;
  out = static_cast<T>(value);
  return true;
}

bool parse_v4(std::string_view text, std::uint32_t& out) {
  out = 0;
  for (int i = 0; i < 4; ++i) {
    const std::size_t dot = i < 3 ? text.find('.') : text.size();
    std::uint32_t part = 0;
    if (dot == std::string_view::npos || !parse_number(text.substr(0, dot), part, 255)) return false;
    out = out << 8 | part;
    text.remove_prefix(i < 3 ? dot + 1 : dot);
  }
  return true;
}

}  // namespace

bool parse_address(std::string_view text, SocketAddress& out) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || !parse_number(text.substr(colon + 1), out.port, 65'535)) return false;
  const std::string_view host = text.substr(0, colon);
  if (host == "[::]") {
    out.host = SocketAddress::Host::any;
    return true;
  }
  if (host == "[::1]") {
    out.host = SocketAddress::Host::loopback;
    return true;
  }
  if (host.size() > 4 && host.front() == '[' && host.back() == ']') {
    out.host = SocketAddress::Host::other;
    return host.find_first_not_of("0123456789abcdefABCDEF:.", 1) == host.size() - 1;
  }
  std::uint32_t v4 = 0;
  if (!parse_v4(host, v4)) return false;
  if (v4 == 0) {
    out.host = SocketAddress::Host::any;
  } else if (v4 >> 24 == 127) {
    out.host = SocketAddress::Host::loopback;
  } else if (v4 >> 16 == (10u << 8) && (v4 & 0xffff) != 0) {
    out.host = SocketAddress::Host::station;
    out.station = (v4 & 0xffff) - 1;
  } else {
    out.host = SocketAddress::Host::other;
  }
  return true;
}

std::string station_ip(Station station) {
  const std::uint32_t number = station + 1;
  return "10.0." + std::to_string(number >> 8 & 255) + "." + std::to_string(number & 255);
}

}  // namespace rq::sim
