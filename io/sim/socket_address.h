// "ip:port" literals as the simulated network understands them. Process number n (from 0) has the address of n + 1
// in 10.0.0.0/16.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace rq::sim {

using Station = std::uint32_t;  // a process, as the network counts them

struct SocketAddress {
  enum class Host : std::uint8_t { any, loopback, station, other };
  Host host = Host::other;
  Station station = 0;  // host == station
  std::uint16_t port = 0;
};

bool parse_address(std::string_view text, SocketAddress& out);
std::string station_ip(Station station);

}  // namespace rq::sim
