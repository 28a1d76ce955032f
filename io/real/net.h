// The Net port on non-blocking TCP sockets. The loop listens, accepts and connects; what moves bytes on a stream is its Endpoint,
// on the loop or, with NetOptions::threads, on one of that many network threads (net_thread.h).
//
//  I1 A call is tried at once when its socket may be ready, and otherwise when the socket becomes ready; either way it completes
//     through the inbox. With threads, calls go out at flush() and results come in at collect().
//  I2 At most one read, one write and one accept or connect are outstanding on a stream.
//  I3 Stale handles complete with Errc::cancelled and are counted. A stream is stale from close() on; its slot is used again when
//     the endpoint has let go of it.
//  I4 A stream stays with the thread that it was given to, the one with the fewest streams.
// Sockets have TCP_NODELAY and keep-alive probes after 15 s of silence.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <vector>

#include "core/io/turn.h"
#include "io/real/address.h"
#include "io/real/endpoint.h"
#include "io/real/lookups.h"
#include "io/real/readiness.h"

namespace rq::real {

class NetThread;

struct NetOptions {
  unsigned threads = 0;  // 0: sockets and TLS on the loop
  Resolver resolver{};   // look_up() when there is none
};
struct NetCounters {
  std::uint64_t accepted = 0, connected = 0, stale_calls = 0;
};

class RealNet final : public io::Net, private EndpointOwner {
 public:
  // `wake` is called from network threads and must be safe there.
  RealNet(io::Turn& turn, NetOptions options, const std::function<void()>& wake);
  ~RealNet();

  void listen(io::Op&, std::string_view address) override;
  void accept(io::Op&, io::StreamId listener) override;
  void connect(io::Op&, std::string_view address, Instant deadline) override;
  void read_some(io::ReadOp&, io::StreamId, ChunkPool&) override;
  void write_some(io::Op&, io::StreamId, std::span<const ConstBuf>) override;
  void start_tls(io::Op&, io::StreamId, std::span<const ConstBuf> leftover, Instant deadline) override;
  void start_tls_client(io::Op&, io::StreamId, std::string_view server_name, Instant deadline) override;
  io::PeerInfo info(io::StreamId) const override;
  std::string local_address(io::StreamId) const override;
  void shutdown_write(io::StreamId) override;
  void close(io::StreamId) override;

  // What start_tls() uses; without it every handshake fails.
  void use_tls(TlsContext context) { tls_server_ = std::move(context); }
  // What start_tls_client() uses, instead of the trust store of the system alone.
  void use_client_tls(TlsContext context) { tls_client_ = std::move(context); }

  // Host names in connect() are looked up there (lookups.h); without it they are bad addresses.
  void use_pool(Pool& pool) { lookups_.use_pool(pool); }

  // The loop: take what became ready, and end connects and handshakes whose deadline has come.
  int fd() const { return ready_.fd(); }
  bool collect();  // true when there may be more
  void expire(Instant now);
  Instant next_deadline() const;
  // Of the reads asked for since the last call, some wait for the rest of a command (ReadOp::midway) and none for a new one.
  // Never so with threads, which look at the sockets without the loop.
  bool take_midway();
  // The loop, with threads: results that came back, and calls that go out.
  bool threaded() const { return !threads_.empty(); }
  bool has_results() const;
  void collect_results();
  void flush();
  // Ends the threads, after the calls that were made. Only destruction follows; the pools named in reads live until here.
  void stop();
  std::size_t lent_chunks() const;  // that the threads have
  const NetCounters& counters() const { return counters_; }

 private:
  enum class Kind : std::uint8_t { free, listener, connecting, stream, closing };
  struct Slot {
    Endpoint endpoint;
    int fd = -1;  // beside that of the endpoint, which may be on another thread
    std::uint32_t generation = 1;
    Kind kind = Kind::free;
    NetThread* thread = nullptr;
    io::ReadOp* read = nullptr;
    io::Op* write = nullptr;
    io::Op* handshake = nullptr;
    io::Op* entry = nullptr;  // accept or connect
    Instant deadline = Instant::never();
    std::string peer;
    std::unique_ptr<io::PeerInfo> agreed;  // in a handshake of TLS
  };

  // net.cc
  Slot* find(io::StreamId id);
  const Slot* find(io::StreamId id) const;
  Slot* find_stream(io::StreamId id);
  Slot& slot_of(const Endpoint& endpoint) { return slots_[endpoint.slot]; }
  io::StreamId id_of(const Slot& slot) const;
  io::StreamId add(int fd, Kind kind);
  bool place(Slot& slot);  // on the thread with the fewest streams; false: errno says why
  void drop(Slot& slot);
  void order(Slot& slot, Call call);
  void stale(io::Op& op, const char* name);
  void complete(const Slot& slot, io::Op& op, io::Error error, std::uint64_t value);
  void begin_handshake(Slot& slot, io::Op& op, std::unique_ptr<TlsMachine> machine, Instant deadline);
  void on_ready(io::StreamId id, std::uint32_t events);

  // What became of calls.
  Chunk* take_chunk(Endpoint& endpoint) override;
  void give_back(Chunk* chunk) override;
  void read_done(Endpoint& endpoint, ChunkPool& pool, io::Error error, Chunk* chunk, std::uint32_t bytes) override;
  void write_done(Endpoint& endpoint, io::Error error, std::uint64_t bytes) override;
  void handshake_done(Endpoint& endpoint, io::Error error, std::unique_ptr<io::PeerInfo> agreed) override;
  void closed(Endpoint& endpoint) override;

  // net_entry.cc
  void try_accept(Slot& listener);
  void begin_connect(io::Op& op, const SocketAddress& address, Instant deadline);
  void on_connect(Slot& slot);
  void finish_connect(Slot& slot, io::Error error);

  io::Turn& turn_;
  Readiness ready_;
  std::deque<Slot> slots_;
  std::vector<std::uint32_t> free_;
  std::vector<io::StreamId> connecting_;
  std::vector<io::StreamId> handshaking_;
  TlsContext tls_server_, tls_client_;
  bool asked_midway_ = false, asked_afresh_ = false;  // since take_midway()
  Lookups lookups_;
  std::vector<std::unique_ptr<NetThread>> threads_;
  NetCounters counters_;
};

}  // namespace rq::real
