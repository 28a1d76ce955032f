#include "io/real/endpoint.h"

#include <utility>

namespace rq::real {

void Endpoint::ready(std::uint32_t events, EndpointOwner& owner) {
  socket.note(events);
  if (shaking) return try_handshake(owner);
  if (pool != nullptr && socket.readable()) try_read(owner);
  if (!socket.writable()) return;
  if (writing) {
    try_write(owner);
  } else if (socket.has_records()) {
    socket.flush_records();
  }
}

void Endpoint::try_read(EndpointOwner& owner) {
  Chunk* chunk = owner.take_chunk(*this);
  if (chunk == nullptr) return;
  const Step step = socket.receive(MutBuf(chunk->data(), chunk->capacity));
  if (!step.done || step.error) owner.give_back(std::exchange(chunk, nullptr));
  if (step.done) owner.read_done(*this, *std::exchange(pool, nullptr), step.error, chunk, static_cast<std::uint32_t>(step.value));
}

void Endpoint::try_write(EndpointOwner& owner) {
  const Step step = socket.send(pieces);
  if (!step.done) return;
  writing = false;
  pieces.clear();
  owner.write_done(*this, step.error, step.value);
}

void Endpoint::try_handshake(EndpointOwner& owner) {
  const Step step = socket.handshake();
  if (!step.done) return;
  shaking = false;
  owner.handshake_done(*this, step.error, step.error ? nullptr : std::make_unique<io::PeerInfo>(socket.agreed()));
}

void Endpoint::close(EndpointOwner& owner) {
  const io::Error cancelled{io::Errc::cancelled, 0, "close"};
  if (std::exchange(shaking, false)) owner.handshake_done(*this, cancelled, nullptr);
  if (pool != nullptr) owner.read_done(*this, *std::exchange(pool, nullptr), cancelled, nullptr, 0);
  if (std::exchange(writing, false)) owner.write_done(*this, cancelled, 0);
  socket.close();
  owner.closed(*this);
}

void perform(Call& call, EndpointOwner& owner) {
  Endpoint& endpoint = *call.endpoint;
  switch (call.kind) {
    case Call::Kind::read:
      endpoint.pool = call.pool;
      if (endpoint.socket.has_input()) endpoint.try_read(owner);
      return;
    case Call::Kind::write:
      endpoint.writing = true;
      if (endpoint.socket.writable()) endpoint.try_write(owner);
      return;
    case Call::Kind::handshake:
      endpoint.shaking = true;
      endpoint.socket.begin_tls(std::move(call.tls));
      return endpoint.try_handshake(owner);
    case Call::Kind::end_output:
      return endpoint.socket.end_output();
    case Call::Kind::close:
      return endpoint.close(owner);
  }
}

void deliver(Result& result, EndpointOwner& owner) {
  Endpoint& endpoint = *result.endpoint;
  switch (result.kind) {
    case Result::Kind::read:
      return owner.read_done(endpoint, *result.pool, result.error, result.chunk, static_cast<std::uint32_t>(result.bytes));
    case Result::Kind::write:
      return owner.write_done(endpoint, result.error, result.bytes);
    case Result::Kind::handshake:
      return owner.handshake_done(endpoint, result.error, std::move(result.agreed));
    case Result::Kind::closed:
      return owner.closed(endpoint);
  }
}

}  // namespace rq::real
