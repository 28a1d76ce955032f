// The Net port on non-blocking TCP sockets.
//
//  I1 A call is tried at once when its socket may be ready, and otherwise when the socket becomes ready; either way it completes
//     through the inbox. A read holds no chunk while it waits.
//  I2 At most one read, one write and one accept or connect are outstanding on a stream.
//  I3 Stale handles complete with Errc::cancelled and are counted.
//  I4 A write over TLS completes when the records that carry it were taken by the kernel; nothing is encrypted ahead.
//  Sockets have TCP_NODELAY and keep-alive probes after 15 s of silence; a broken pipe is an error, never a signal.
#pragma once

#include <sys/uio.h>

#include <deque>
#include <vector>

#include "core/io/turn.h"
#include "io/real/address.h"
#include "io/real/readiness.h"
#include "io/real/tls.h"

namespace rq::real {

class Pool;

struct NetCounters {
  std::uint64_t accepted = 0, connected = 0, stale_calls = 0, reads = 0, writes = 0, reads_empty = 0, writes_blocked = 0;
};

class RealNet final : public io::Net {
 public:
  static constexpr std::size_t kLookupsMax = 2;  // the workers serve the disk as well, and a name server may be silent for long

  explicit RealNet(io::Turn& turn);
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

  // Host names in connect() are looked up there, kLookupsMax at a time; without it they are bad addresses.
  void use_pool(Pool& pool) { pool_ = &pool; }

  // The loop: take what became ready, and end connects whose deadline has come.
  int fd() const { return ready_.fd(); }
  bool collect();  // true when there may be more
  void expire(Instant now);
  Instant next_deadline() const;
  const NetCounters& counters() const { return counters_; }

 private:
  enum class Kind : std::uint8_t { free, listener, connecting, stream };
  struct Stream {
    int fd = -1;
    std::uint32_t generation = 1;
    Kind kind = Kind::free;
    bool readable = false, writable = false, hung_up = false;
    io::ReadOp* read = nullptr;
    ChunkPool* pool = nullptr;
    io::Op* write = nullptr;
    io::Op* entry = nullptr;  // accept or connect
    Instant deadline = Instant::never();
    std::vector<iovec> unsent;  // of a write that waits
    std::string peer;
    std::unique_ptr<TlsMachine> tls;
    io::Op* handshake = nullptr;
    std::size_t plain = 0;  // of the write that waits: bytes that the pending records carry
  };

  Stream* find(io::StreamId id);
  const Stream* find(io::StreamId id) const;
  io::StreamId add(int fd, Kind kind);
  void drop(std::uint32_t index);
  void on_ready(io::StreamId id, std::uint32_t events);
  void try_accept(Stream& listener);
  struct Lookup;
  void submit_lookups();
  void finish_lookup(Lookup& lookup);
  void begin_connect(io::Op& op, const SocketAddress& address, Instant deadline);
  void finish_connect(io::StreamId id, io::Error error);
  void try_read(Stream& stream);
  void try_write(Stream& stream);

  // net_tls.cc
  void begin_handshake(io::StreamId id, Stream& stream, io::Op& op, Instant deadline);
  void try_handshake(io::StreamId id, Stream& stream);
  void finish_handshake(io::StreamId id, io::Error error);
  void try_read_tls(Stream& stream);
  void try_write_tls(Stream& stream);
  enum class Moved : std::uint8_t { some, none, ended, broken };
  Moved receive_into(Stream& stream);          // one piece of records; broken: errno
  bool send_pending(Stream& stream, int& os);  // true: nothing is pending any more
  void end_tls(Stream& stream);

  void stale(io::Op& op, const char* name);

  io::Turn& turn_;
  Readiness ready_;
  std::deque<Stream> streams_;
  std::vector<std::uint32_t> free_;
  std::vector<io::StreamId> connecting_;
  std::vector<io::StreamId> handshaking_;
  TlsContext tls_server_, tls_client_;
  Pool* pool_ = nullptr;
  std::vector<std::unique_ptr<Lookup>> lookups_;  // the first kLookupsMax run
  NetCounters counters_;
};

}  // namespace rq::real
