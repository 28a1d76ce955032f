// Endpoints, addresses and connections; how bytes travel is in sim_streams.cc.
#include "io/sim/sim_net.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/io/turn.h"

namespace rq::sim {

SimNet::Streams::Streams(const Random& base)
    : latency(base.split("latency")),
      fragment(base.split("fragment")),
      reset(base.split("reset")),
      refuse(base.split("refuse")),
      half_open(base.split("half open")),
      port(base.split("port")),
      accept(base.split("accept")) {}

SimNet::SimNet(Kernel& kernel) : kernel_(kernel), streams_(kernel.root.split("net")) {}

Station SimNet::add_station(Completion& process) {
  stations_.push_back({&process, static_cast<std::uint16_t>(40'000 + streams_.port.below(10'000))});
  return static_cast<Station>(stations_.size() - 1);
}

// ---- endpoints

Handle SimNet::add_endpoint(Station station) {
  if (free_endpoints_.empty()) {
    const auto slot = static_cast<std::uint32_t>(endpoints_.size());
    endpoints_.emplace_back().slot = slot;
    free_endpoints_.push_back(slot);
  }
  Endpoint& endpoint = endpoints_[free_endpoints_.back()];
  free_endpoints_.pop_back();
  endpoint.live = true;
  endpoint.station = station;
  return handle_of(endpoint);
}

SimNet::Endpoint* SimNet::find(Handle handle) {
  const auto slot = static_cast<std::uint32_t>(handle);
  if (handle == 0 || slot >= endpoints_.size()) return nullptr;
  Endpoint& endpoint = endpoints_[slot];
  return endpoint.live && handle_of(endpoint) == handle ? &endpoint : nullptr;
}

const SimNet::Endpoint* SimNet::find(Handle handle) const { return const_cast<SimNet*>(this)->find(handle); }

SimNet::Endpoint* SimNet::mine(Station station, io::StreamId id) {
  Endpoint* endpoint = find(static_cast<Handle>(id));
  return endpoint != nullptr && endpoint->station == station ? endpoint : nullptr;
}

void SimNet::remove(Endpoint& endpoint) {
  if (endpoint.listener) std::erase(listeners_, handle_of(endpoint));
  const std::uint32_t slot = endpoint.slot;
  const std::uint32_t generation = endpoint.generation + 1;
  endpoint = Endpoint{};
  endpoint.slot = slot;
  endpoint.generation = generation;
  free_endpoints_.push_back(slot);
}

void SimNet::complete(Station station, io::Op& op, io::Errc code, const char* name, std::uint64_t value) {
  stations_[station].process->complete(op, {code, 0, name}, value);
}

void SimNet::stale(Station station, io::Op& op, const char* name) {
  ++kernel_.counts.stale_handles;
  complete(station, op, io::Errc::cancelled, name);
}

// ---- listening

bool SimNet::port_taken(Station station, std::uint16_t port) const {
  return std::any_of(listeners_.begin(), listeners_.end(), [&](Handle handle) {
    const Endpoint* listener = find(handle);
    return listener->station == station && listener->bound.port == port;
  });
}

std::uint16_t SimNet::pick_port(Station station) {
  std::uint16_t& last = stations_[station].last_port;
  do last = last >= 60'999 ? 40'000 : static_cast<std::uint16_t>(last + 1);
  while (port_taken(station, last));
  return last;
}

void SimNet::listen(Station station, io::Op& op, std::string_view address) {
  io::submit(op);
  SocketAddress bound;
  const bool own = parse_address(address, bound) && bound.host != SocketAddress::Host::other &&
                   (bound.host != SocketAddress::Host::station || bound.station == station);
  if (!own || (bound.port != 0 && port_taken(station, bound.port))) {
    return complete(station, op, io::Errc::bad_address, "listen");
  }
  if (bound.port == 0) bound.port = pick_port(station);
  const Handle handle = add_endpoint(station);
  Endpoint& listener = *find(handle);
  listener.listener = true;
  listener.bound = bound;
  listener.local = std::string(address.substr(0, address.rfind(':'))) + ":" + std::to_string(bound.port);
  listeners_.push_back(handle);
  kernel_.trace("net.listen", listener.local, station);
  complete(station, op, io::Errc::ok, "listen", handle);
}

void SimNet::accept(Station station, io::Op& op, io::StreamId id) {
  io::submit(op);
  Endpoint* listener = mine(station, id);
  if (listener == nullptr || !listener->listener) return stale(station, op, "accept");
  listener->accepts.push_back(&op);
  offer(*listener);
}

void SimNet::offer(Endpoint& listener) {
  while (!listener.accepts.empty() && !listener.backlog.empty()) {
    io::Op& op = *listener.accepts.front();
    const Handle stream = listener.backlog.front();
    listener.accepts.pop_front();
    if (kernel_.net.no_handles != 0 && streams_.accept.chance(kernel_.net.no_handles)) {
      ++kernel_.counts.no_handles;
      complete(listener.station, op, io::Errc::no_handles, "accept");
      continue;
    }
    listener.backlog.pop_front();
    complete(listener.station, op, io::Errc::ok, "accept", stream);
  }
}

// A loopback listener is also found under the address of its process, and, when the caller has none on that port, by others:
// one configuration then serves a single Broker and its clients.
SimNet::Endpoint* SimNet::find_listener(Station from, const SocketAddress& to) {
  Endpoint* best = nullptr;
  for (const Handle handle : listeners_) {
    Endpoint& listener = *find(handle);
    if (listener.bound.port != to.port) continue;
    const bool loopback = to.host != SocketAddress::Host::station;
    if (!loopback && listener.station != to.station) continue;
    if (loopback && listener.bound.host == SocketAddress::Host::station) continue;
    if (listener.station == from) return &listener;
    if (best == nullptr || listener.station < best->station) best = &listener;
  }
  return best;
}

// ---- connecting

SimNet::Connect* SimNet::find_connect(std::uint64_t handle) {
  const auto slot = static_cast<std::uint32_t>(handle);
  if (slot >= connects_.size()) return nullptr;
  Connect& attempt = connects_[slot];
  return attempt.op != nullptr && handle_of(attempt) == handle ? &attempt : nullptr;
}

void SimNet::connect(Station station, io::Op& op, std::string_view address, Instant deadline) {
  io::submit(op);
  SocketAddress to;
  if (!parse_address(address, to) || to.port == 0) return complete(station, op, io::Errc::bad_address, "connect");
  if (free_connects_.empty()) {
    const auto slot = static_cast<std::uint32_t>(connects_.size());
    connects_.emplace_back().slot = slot;
    free_connects_.push_back(slot);
  }
  Connect& attempt = connects_[free_connects_.back()];
  free_connects_.pop_back();
  attempt.op = &op;
  attempt.from = station;
  attempt.to = to;
  attempt.address.assign(address);
  attempt.stream = 0;
  attempt.waiting = false;
  // Without a deadline the kernel gives up after its own retries.
  constexpr std::int64_t kGiveUpNs = 127 * kSecond;
  kernel_.push(std::min(deadline, kernel_.now + kGiveUpNs), *this, kDeadline, handle_of(attempt));
  kernel_.push(kernel_.now + latency(), *this, kSyn, handle_of(attempt));
}

void SimNet::finish_connect(Connect& attempt, io::Errc code, std::uint64_t value) {
  io::Op& op = *attempt.op;
  attempt.op = nullptr;
  ++attempt.generation;
  free_connects_.push_back(attempt.slot);
  kernel_.trace("net.connect", attempt.address, static_cast<std::uint64_t>(code), value);
  complete(attempt.from, op, code, "connect", value);
}

void SimNet::on_syn(Connect& attempt) {
  if (attempt.to.host == SocketAddress::Host::other) return;  // nobody there: the deadline comes
  if (attempt.to.host == SocketAddress::Host::station && attempt.to.station >= stations_.size()) return;
  Endpoint* listener = find_listener(attempt.from, attempt.to);
  const Station there = listener != nullptr                               ? listener->station
                        : attempt.to.host == SocketAddress::Host::station ? attempt.to.station
                                                                          : attempt.from;
  if (cut(attempt.from, there) || cut(there, attempt.from)) {
    attempt.waiting = true;
    return;
  }
  const bool refused = kernel_.net.refuse != 0 && streams_.refuse.chance(kernel_.net.refuse);
  if (refused) ++kernel_.counts.refused;
  if (refused || listener == nullptr || listener->backlog.size() >= kernel_.net.backlog) {
    return finish_connect(attempt, io::Errc::refused, 0);
  }
  const Handle near_handle = add_endpoint(attempt.from);
  const Handle far_handle = add_endpoint(there);
  Endpoint& near = *find(near_handle);
  Endpoint& far = *find(far_handle);
  const bool loopback = attempt.to.host != SocketAddress::Host::station;
  near.local = (loopback ? "127.0.0.1" : station_ip(attempt.from)) + ":" + std::to_string(pick_port(attempt.from));
  near.remote = attempt.address;
  near.peer = far_handle;
  near.peer_station = there;
  far.local = attempt.address;
  far.remote = near.local;
  far.peer = near_handle;
  far.peer_station = attempt.from;
  attempt.stream = near_handle;
  kernel_.push(kernel_.now + latency(), *this, kConnected, handle_of(attempt));
  listener->backlog.push_back(far_handle);
  offer(*listener);
}

// ---- faults of whole processes and links

bool SimNet::cut(Station from, Station to) const {
  return !cuts_.empty() && std::find(cuts_.begin(), cuts_.end(), std::pair(from, to)) != cuts_.end();
}

void SimNet::partition(Station from, Station to) {
  if (!cut(from, to)) cuts_.emplace_back(from, to);
}

void SimNet::heal() {
  if (cuts_.empty()) return;
  cuts_.clear();
  for (Endpoint& endpoint : endpoints_) {
    if (!endpoint.live || endpoint.listener) continue;
    const Handle handle = handle_of(endpoint);
    Pipe& in = endpoint.in;
    if (in.held > 0) kernel_.push(arrival(endpoint), *this, kArrive, handle, std::exchange(in.held, 0));
    if (std::exchange(in.end_held, false)) kernel_.push(arrival(endpoint), *this, kEnd, handle);
    if (std::exchange(in.reset_held, false)) kernel_.push(arrival(endpoint), *this, kReset, handle);
    if (endpoint.write != nullptr) kernel_.push(kernel_.now + latency(), *this, kRoom, handle);
  }
  for (Connect& attempt : connects_) {
    if (attempt.op == nullptr || !std::exchange(attempt.waiting, false)) continue;
    kernel_.push(kernel_.now + latency(), *this, kSyn, handle_of(attempt));
  }
}

void SimNet::kill(Station station) {
  for (Connect& attempt : connects_) {
    if (attempt.op == nullptr || attempt.from != station) continue;
    forget(*attempt.op);
    attempt.op = nullptr;
    ++attempt.generation;
    free_connects_.push_back(attempt.slot);
  }
  for (Endpoint& endpoint : endpoints_) {
    if (!endpoint.live || endpoint.station != station) continue;
    for (io::Op* op : endpoint.accepts) forget(*op);
    if (endpoint.read != nullptr) forget(*endpoint.read);
    if (endpoint.write != nullptr) forget(*endpoint.write);
    if (endpoint.handshake != nullptr) forget(*endpoint.handshake);
    if (!endpoint.listener) leave(endpoint, false);
    remove(endpoint);
  }
}

void SimNet::on_event(std::uint32_t kind, std::uint64_t a, std::uint64_t b) {
  switch (kind) {
    case kArrive:
      return on_arrive(a, b);
    case kEnd:
      return on_end(a);
    case kReset:
      return on_reset(a);
    case kRoom: {
      Endpoint* endpoint = find(a);
      if (endpoint != nullptr && endpoint->write != nullptr && !cut(endpoint->peer_station, endpoint->station)) {
        drain_write(*endpoint);
      }
      return;
    }
    case kSyn:
      if (Connect* attempt = find_connect(a)) on_syn(*attempt);
      return;
    case kConnected:
      if (Connect* attempt = find_connect(a)) finish_connect(*attempt, io::Errc::ok, attempt->stream);
      return;
    case kTlsDeadline:
      if (Endpoint* endpoint = find(a); endpoint != nullptr && endpoint->handshake != nullptr) {
        finish_handshake(*endpoint, io::Errc::timed_out);
      }
      return;
    case kDeadline:
      if (Connect* attempt = find_connect(a)) {
        if (Endpoint* endpoint = find(attempt->stream)) {
          leave(*endpoint, false);
          remove(*endpoint);
        }
        finish_connect(*attempt, io::Errc::timed_out, 0);
      }
      return;
    default:
      RQ_CHECK(false);
  }
}

}  // namespace rq::sim
