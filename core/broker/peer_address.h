// The address of a peer, as ports give it.
#pragma once

#include <string>

namespace rq::broker {

// "1.2.3.4:80" and "[::1]:80" without what is not the address.
inline std::string without_port(const std::string& address) {
  std::string ip = address.substr(0, address.rfind(':'));
  if (ip.starts_with('[') && ip.ends_with(']')) ip = ip.substr(1, ip.size() - 2);
  return ip;
}

}  // namespace rq::broker
