// How bytes, ends and resets travel between the two endpoints of a stream.
#include <algorithm>

#include "core/base/check.h"
#include "core/io/turn.h"
#include "io/sim/sim_net.h"

namespace rq::sim {

Instant SimNet::arrival(Endpoint& to) {
  const Instant at{std::max(kernel_.now.ns + latency(), to.in.last_arrival_ns + 1)};
  to.in.last_arrival_ns = at.ns;
  return at;
}

// All of it, some of it, or a byte or two.
std::size_t SimNet::piece_size(std::size_t available) {
  if (!kernel_.net.fragment || available <= 1) return available;
  const std::uint64_t style = streams_.fragment.below(8);
  if (style < 4) return available;
  if (style < 6) return 1 + streams_.fragment.below(available);
  if (style < 7) return 1 + streams_.fragment.below(std::min<std::size_t>(available, 16));
  return 1;
}

// ---- reading

void SimNet::read_some(Station station, io::ReadOp& op, io::StreamId id, ChunkPool& pool) {
  io::submit(op);
  op.data = Slice();
  Endpoint* endpoint = mine(station, id);
  if (endpoint == nullptr || endpoint->listener) return stale(station, op, "read");
  RQ_CHECK(endpoint->read == nullptr);
  kernel_.counts.midway_reads += op.midway ? 1 : 0;
  endpoint->read = &op;
  endpoint->pool = &pool;
  if (kernel_.net.reset != 0 && endpoint->peer != 0 && streams_.reset.chance(kernel_.net.reset)) tear_down(*endpoint);
  if (endpoint->read != nullptr) fill_read(*endpoint);
}

void SimNet::fill_read(Endpoint& endpoint) {
  Pipe& in = endpoint.in;
  const std::size_t available = in.arrived - in.taken;
  if (available == 0) {
    const bool ended = in.end && in.unread() == 0;
    if (!ended && !in.reset) return;
    io::Op& op = *std::exchange(endpoint.read, nullptr);
    return complete(endpoint.station, op, ended ? io::Errc::eof : io::Errc::reset, "read");
  }
  const std::size_t size = piece_size(std::min<std::size_t>(available, endpoint.pool->chunk_bytes()));
  Chunk* chunk = endpoint.pool->take();
  std::memcpy(chunk->data(), in.bytes.data() + in.taken, size);
  io::ReadOp& op = *std::exchange(endpoint.read, nullptr);
  op.data = Slice(chunk, chunk->data(), static_cast<std::uint32_t>(size));
  in.taken += size;
  constexpr std::size_t kCompactBytes = 64 * 1024;
  if (in.taken == in.bytes.size() || in.taken >= kCompactBytes) {
    in.bytes.erase(0, in.taken);
    in.arrived -= in.taken;
    in.taken = 0;
  }
  const Endpoint* peer = find(endpoint.peer);
  if (peer != nullptr && peer->write != nullptr) kernel_.push(kernel_.now + latency(), *this, kRoom, endpoint.peer);
  kernel_.trace("net.read", endpoint.local, size, op.data.size());
  complete(endpoint.station, op, io::Errc::ok, "read", size);
}

// ---- writing

void SimNet::write_some(Station station, io::Op& op, io::StreamId id, std::span<const ConstBuf> pieces) {
  io::submit(op);
  Endpoint* endpoint = mine(station, id);
  if (endpoint == nullptr || endpoint->listener) return stale(station, op, "write");
  RQ_CHECK(endpoint->write == nullptr);
  endpoint->write = &op;
  endpoint->pieces.assign(pieces.begin(), pieces.end());
  if (kernel_.net.reset != 0 && endpoint->peer != 0 && streams_.reset.chance(kernel_.net.reset)) tear_down(*endpoint);
  if (endpoint->write != nullptr) drain_write(*endpoint);
}

void SimNet::drain_write(Endpoint& endpoint) {
  std::size_t wanted = 0;
  for (const ConstBuf& piece : endpoint.pieces) wanted += piece.size();
  const auto finish = [&](io::Errc code, std::size_t taken) {
    io::Op& op = *std::exchange(endpoint.write, nullptr);
    endpoint.pieces.clear();
    kernel_.trace("net.write", endpoint.local, static_cast<std::uint64_t>(code), taken);
    complete(endpoint.station, op, code, "write", taken);
  };
  if (endpoint.in.reset || endpoint.write_ended) return finish(io::Errc::reset, 0);
  if (wanted == 0) return finish(io::Errc::ok, 0);
  Endpoint* peer = find(endpoint.peer);
  if (peer == nullptr && !endpoint.silent) {
    // The peer closed: its kernel takes the bytes for nobody and answers with a reset.
    Instant answer = arrival(endpoint);
    answer.ns += latency();
    kernel_.push(answer, *this, kReset, handle_of(endpoint));
    return finish(io::Errc::ok, wanted);
  }
  const std::size_t used = peer != nullptr ? peer->in.unread() : endpoint.vanished;
  if (used >= kernel_.net.buffer_bytes) return;  // kRoom comes, or never
  std::size_t taken = std::min<std::size_t>(wanted, kernel_.net.buffer_bytes - used);
  if (kernel_.net.fragment && taken > 1 && streams_.fragment.below(8) == 0) taken = 1 + streams_.fragment.below(taken);
  if (peer == nullptr) {
    endpoint.vanished += taken;
    return finish(io::Errc::ok, taken);
  }
  std::size_t left = taken;
  for (const ConstBuf& piece : endpoint.pieces) {
    const std::size_t step = std::min(piece.size(), left);
    peer->in.bytes.append(text_of(piece.first(step)));
    left -= step;
  }
  kernel_.push(arrival(*peer), *this, kArrive, endpoint.peer, taken);
  finish(io::Errc::ok, taken);
}

void SimNet::shutdown_write(Station station, io::StreamId id) {
  Endpoint* endpoint = mine(station, id);
  if (endpoint == nullptr || endpoint->listener) {
    ++kernel_.counts.stale_handles;
    return;
  }
  if (endpoint->write_ended) return;
  endpoint->write_ended = true;
  send_end(*endpoint);
  if (endpoint->write != nullptr) drain_write(*endpoint);
}

// ---- the end

void SimNet::send_end(Endpoint& from) {
  Endpoint* peer = find(from.peer);
  if (peer != nullptr) kernel_.push(arrival(*peer), *this, kEnd, from.peer);
}

void SimNet::send_reset(Handle to) {
  Endpoint* endpoint = find(to);
  if (endpoint != nullptr) kernel_.push(arrival(*endpoint), *this, kReset, to);
}

void SimNet::drop_in_flight(Pipe& pipe) {
  pipe.bytes.resize(pipe.arrived);
  pipe.held = 0;
}

void SimNet::tear_down(Endpoint& endpoint) {
  ++kernel_.counts.resets;
  kernel_.trace("net.reset", endpoint.local, endpoint.station);
  Endpoint* peer = find(endpoint.peer);
  if (peer != nullptr) {
    if (streams_.reset.below(2) == 0) drop_in_flight(peer->in);
    send_reset(endpoint.peer);
  }
  drop_in_flight(endpoint.in);
  apply_reset(endpoint);
}

void SimNet::leave(Endpoint& endpoint, bool graceful) {
  Endpoint* peer = find(endpoint.peer);
  if (peer == nullptr) return;
  if (kernel_.net.half_open != 0 && streams_.half_open.chance(kernel_.net.half_open)) {
    ++kernel_.counts.half_open;
    peer->silent = true;
    peer->vanished = endpoint.in.unread();
    return;
  }
  if (!graceful) {
    if (streams_.reset.below(2) == 0) drop_in_flight(peer->in);
    return send_reset(endpoint.peer);
  }
  if (!endpoint.write_ended) send_end(endpoint);
  if (endpoint.in.unread() > 0) send_reset(endpoint.peer);  // as a kernel does when bytes were left unread
}

void SimNet::close(Station station, io::StreamId id) {
  Endpoint* endpoint = mine(station, id);
  if (endpoint == nullptr) {
    ++kernel_.counts.stale_handles;
    return;
  }
  for (io::Op* op : endpoint->accepts) complete(station, *op, io::Errc::cancelled, "accept");
  if (endpoint->read != nullptr) complete(station, *endpoint->read, io::Errc::cancelled, "read");
  if (endpoint->write != nullptr) complete(station, *endpoint->write, io::Errc::cancelled, "write");
  if (endpoint->handshake != nullptr) finish_handshake(*endpoint, io::Errc::cancelled);
  kernel_.trace("net.close", endpoint->local, station);
  for (const Handle waiting : endpoint->backlog) {  // nobody will accept them
    if (Endpoint* stream = find(waiting)) {
      leave(*stream, false);
      remove(*stream);
    }
  }
  if (!endpoint->listener) leave(*endpoint, true);
  remove(*endpoint);
}

void SimNet::on_arrive(Handle to, std::size_t bytes) {
  Endpoint* endpoint = find(to);
  if (endpoint == nullptr) return;  // closed meanwhile; its end has told the sender
  Pipe& in = endpoint->in;
  if (in.reset) return;
  bytes = std::min(bytes, in.bytes.size() - in.arrived - in.held);
  if (cut(endpoint->peer_station, endpoint->station)) {
    in.held += bytes;
    return;
  }
  in.arrived += bytes;
  kernel_.trace("net.arrive", endpoint->local, endpoint->station, bytes);
  if (endpoint->handshake != nullptr) try_handshake(*endpoint);
  if (endpoint->read != nullptr) fill_read(*endpoint);
}

void SimNet::on_end(Handle to) {
  Endpoint* endpoint = find(to);
  if (endpoint == nullptr) return;
  if (cut(endpoint->peer_station, endpoint->station)) {
    endpoint->in.end_held = true;
    return;
  }
  endpoint->in.end = true;
  kernel_.trace("net.end", endpoint->local, endpoint->station);
  if (endpoint->handshake != nullptr) try_handshake(*endpoint);
  if (endpoint->read != nullptr) fill_read(*endpoint);
}

void SimNet::on_reset(Handle to) {
  Endpoint* endpoint = find(to);
  if (endpoint == nullptr) return;
  if (cut(endpoint->peer_station, endpoint->station)) {
    endpoint->in.reset_held = true;
    return;
  }
  kernel_.trace("net.was_reset", endpoint->local, endpoint->station);
  apply_reset(*endpoint);
}

void SimNet::apply_reset(Endpoint& endpoint) {
  endpoint.in.reset = true;
  endpoint.peer = 0;
  if (endpoint.handshake != nullptr) finish_handshake(endpoint, io::Errc::reset);
  if (endpoint.read != nullptr) fill_read(endpoint);
  if (endpoint.write != nullptr) drain_write(endpoint);
}

std::string SimNet::local_address(Station station, io::StreamId id) const {
  const Endpoint* endpoint = const_cast<SimNet*>(this)->mine(station, id);
  return endpoint == nullptr ? "" : endpoint->local;
}

}  // namespace rq::sim
