// A stream with the calls that wait on it. The same code serves it on the loop and on a network thread: calls come in as values
// (Call), and what becomes of them leaves through an EndpointOwner, at once on the loop and as values (Result) from a thread.
//
//  I1 At most one read, one write and one handshake wait. A read holds no chunk while it waits.
//  I2 close ends what waits with Errc::cancelled, then says closed(); after that no buffer of a call is touched any more.
//  I3 One thread owns an endpoint at a time. The loop may fill `pieces` of the next write while none waits.
#pragma once

#include <memory>
#include <vector>

#include "core/io/ports.h"
#include "io/real/socket.h"

namespace rq::real {

struct Endpoint;

// Where chunks come from, and where outcomes go. None of these calls back into the endpoint.
class EndpointOwner {
 public:
  virtual Chunk* take_chunk(Endpoint&) = 0;  // null: there is none now, and the owner asks the endpoint again
  virtual void give_back(Chunk*) = 0;
  // `chunk` holds that many bytes, or is null beside an error.
  virtual void read_done(Endpoint&, ChunkPool&, io::Error, Chunk* chunk, std::uint32_t bytes) = 0;
  virtual void write_done(Endpoint&, io::Error, std::uint64_t bytes) = 0;
  virtual void handshake_done(Endpoint&, io::Error, std::unique_ptr<io::PeerInfo> agreed) = 0;
  virtual void closed(Endpoint&) = 0;

 protected:
  ~EndpointOwner() = default;
};

struct alignas(64) Endpoint {  // a cache line of its own: its neighbours belong to the loop
  Socket socket;
  ChunkPool* pool = nullptr;  // of the read that waits
  bool writing = false, shaking = false;
  bool starved = false;  // the read could go on, but there was no chunk; kept by the owner
  bool unread = false;   // there may be input that nobody asked for; kept by the owner
  std::uint32_t slot = 0;
  std::vector<iovec> pieces;  // of the write that waits

  void ready(std::uint32_t events, EndpointOwner& owner);
  void try_read(EndpointOwner& owner);
  void try_write(EndpointOwner& owner);
  void try_handshake(EndpointOwner& owner);
  void close(EndpointOwner& owner);
};

struct Call {
  enum class Kind : std::uint8_t { read, write, handshake, end_output, close };
  Kind kind;
  Endpoint* endpoint = nullptr;
  ChunkPool* pool = nullptr;             // read
  std::unique_ptr<TlsMachine> tls = {};  // handshake
};
void perform(Call& call, EndpointOwner& owner);

struct Result {
  enum class Kind : std::uint8_t { read, write, handshake, closed };
  Kind kind;
  Endpoint* endpoint = nullptr;
  io::Error error{};
  std::uint64_t bytes = 0;
  ChunkPool* pool = nullptr;                  // read
  Chunk* chunk = nullptr;                     // read
  std::unique_ptr<io::PeerInfo> agreed = {};  // handshake
};
void deliver(Result& result, EndpointOwner& owner);

}  // namespace rq::real
