#include "io/real/look_up.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>

namespace rq::real {

const addrinfo* preferred(const addrinfo* found) {
  const addrinfo* chosen = found;
  while (chosen != nullptr && chosen->ai_family != AF_INET) chosen = chosen->ai_next;
  return chosen != nullptr ? chosen : found;
}

std::optional<SocketAddress> look_up(const HostPort& name) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_ADDRCONFIG | AI_NUMERICSERV;
  if (::getaddrinfo(name.host.c_str(), name.port.c_str(), &hints, &found) != 0) return {};
  const addrinfo* chosen = preferred(found);
  SocketAddress address;
  std::memcpy(&address.storage, chosen->ai_addr, chosen->ai_addrlen);
  address.length = chosen->ai_addrlen;
  ::freeaddrinfo(found);
  return address;
}

}  // namespace rq::real
