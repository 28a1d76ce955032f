// Host names, asked of the resolver. It blocks: for workers, and for programs before their loop begins.
#pragma once

#include <netdb.h>

#include <optional>

#include "io/real/address.h"

namespace rq::real {

// Of what the resolver found, the one address that is tried: of IPv4 when there is one, since many names have an IPv6 address
// that nothing listens on. `found` is not null.
const addrinfo* preferred(const addrinfo* found);
std::optional<SocketAddress> look_up(const HostPort& name);

}  // namespace rq::real
