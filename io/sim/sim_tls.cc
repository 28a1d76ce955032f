// TLS as the simulator models it: its round trips, its failures and what it proves, over plain bytes. OpenSSL draws its own
// random numbers and would make a seed's trace different each time, so it stays in io/real.
//
//   client   "TLS hello <common name>\n", the name empty without a certificate
//   server   "TLS ready\n"; then plain bytes in both directions
//
// Anything else from the client, or no name where NetFaults::tls_name_needed asks for one, fails the handshake: "TLS alert\n".
#include "core/base/check.h"
#include "core/io/turn.h"
#include "io/sim/sim_net.h"

namespace rq::sim {
namespace {

constexpr std::string_view kHello = "TLS hello ", kReady = "TLS ready\n", kAlert = "TLS alert\n";
constexpr std::size_t kLineBytesMax = 256;

}  // namespace

void SimNet::start_tls(Station station, io::Op& op, io::StreamId id, std::span<const ConstBuf> leftover, Instant deadline) {
  io::submit(op);
  Endpoint* endpoint = mine(station, id);
  if (endpoint == nullptr || endpoint->listener) return stale(station, op, "tls");
  std::string front;
  for (const ConstBuf piece : leftover) put_bytes(front, piece);
  endpoint->in.bytes.insert(endpoint->in.taken, front);
  endpoint->in.arrived += front.size();
  begin_handshake(*endpoint, op, deadline);
}

void SimNet::start_tls_client(Station station, io::Op& op, io::StreamId id, Instant deadline) {
  io::submit(op);
  Endpoint* endpoint = mine(station, id);
  if (endpoint == nullptr || endpoint->listener) return stale(station, op, "tls");
  endpoint->tls_client = true;
  say(*endpoint, std::string(kHello) + "\n");
  begin_handshake(*endpoint, op, deadline);
}

void SimNet::begin_handshake(Endpoint& endpoint, io::Op& op, Instant deadline) {
  RQ_CHECK(endpoint.read == nullptr && endpoint.write == nullptr && endpoint.handshake == nullptr);
  endpoint.handshake = &op;
  kernel_.push(deadline, *this, kTlsDeadline, handle_of(endpoint));
  if (endpoint.in.reset) return finish_handshake(endpoint, io::Errc::reset);
  try_handshake(endpoint);
}

// A line to the peer, past the buffers: handshakes are small.
void SimNet::say(Endpoint& endpoint, std::string_view line) {
  Endpoint* peer = find(endpoint.peer);
  if (peer == nullptr) return;
  peer->in.bytes.append(line);
  kernel_.push(arrival(*peer), *this, kArrive, endpoint.peer, line.size());
}

void SimNet::try_handshake(Endpoint& endpoint) {
  Pipe& in = endpoint.in;
  const std::string_view arrived = std::string_view(in.bytes).substr(in.taken, in.arrived - in.taken);
  const std::string_view expected = endpoint.tls_client ? kReady : kHello;
  const std::size_t feed = arrived.find('\n');
  const bool wrong = arrived.substr(0, expected.size()) != expected.substr(0, arrived.size());
  if (!wrong && feed == std::string_view::npos && arrived.size() <= kLineBytesMax) {
    if (in.end && in.unread() == 0) finish_handshake(endpoint, io::Errc::eof);
    return;
  }
  if (!endpoint.tls_client && !wrong && feed != std::string_view::npos) {
    endpoint.common_name = arrived.substr(kHello.size(), feed - kHello.size());
  }
  const bool nameless = !endpoint.tls_client && kernel_.net.tls_name_needed && endpoint.common_name.empty();
  if (wrong || feed == std::string_view::npos || nameless) {
    if (!endpoint.tls_client) say(endpoint, kAlert);
    return finish_handshake(endpoint, io::Errc::tls);
  }
  in.taken += feed + 1;
  endpoint.tls = true;
  if (!endpoint.tls_client) say(endpoint, kReady);
  finish_handshake(endpoint, io::Errc::ok);
}

void SimNet::finish_handshake(Endpoint& endpoint, io::Errc code) {
  io::Op& op = *std::exchange(endpoint.handshake, nullptr);
  kernel_.trace("net.tls", endpoint.local, static_cast<std::uint64_t>(code));
  complete(endpoint.station, op, code, "tls");
}

io::PeerInfo SimNet::info(Station station, io::StreamId id) const {
  const Endpoint* endpoint = const_cast<SimNet*>(this)->mine(station, id);
  io::PeerInfo info;
  if (endpoint == nullptr) return info;
  info.address = endpoint->remote;
  info.tls = endpoint->tls;
  if (!endpoint->tls) return info;
  info.tls_version = "TLS1.3";
  info.tls_cipher = "Unknown 4865";
  info.common_name = endpoint->common_name;
  return info;
}

}  // namespace rq::sim
