// The network of the world: listeners, streams of two endpoints, and what travels between them.
//
//  I1 Bytes of one direction arrive in order, after a drawn latency each; a pipe holds at most NetFaults::buffer_bytes.
//  I2 What is sent into a partition waits and arrives after heal(), as TCP would send it again; resets and ends wait with it.
//  I3 A handle is (slot, generation); a call with a stale one completes with Errc::cancelled and is counted.
//  I4 Bytes that arrived before the peer closed are still read; then comes eof, or reset when the connection was torn down.
#pragma once

#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/sim/completion.h"
#include "io/sim/kernel.h"
#include "io/sim/socket_address.h"

namespace rq::sim {

using Handle = std::uint64_t;  // slot | generation << 32; 0 is none

class SimNet final : public EventTarget {
 public:
  explicit SimNet(Kernel& kernel);

  Station add_station(Completion& process);
  void kill(Station station);  // streams are reset to their peers, or left half open; Ops are forgotten
  void partition(Station from, Station to);
  void heal();

  void listen(Station, io::Op&, std::string_view address);
  void accept(Station, io::Op&, io::StreamId listener);
  void connect(Station, io::Op&, std::string_view address, Instant deadline);
  void read_some(Station, io::ReadOp&, io::StreamId, ChunkPool&);
  void write_some(Station, io::Op&, io::StreamId, std::span<const ConstBuf>);
  void start_tls(Station, io::Op&, io::StreamId, std::span<const ConstBuf> leftover, Instant deadline);
  void start_tls_client(Station, io::Op&, io::StreamId, Instant deadline);
  io::PeerInfo info(Station, io::StreamId) const;
  std::string local_address(Station, io::StreamId) const;
  void shutdown_write(Station, io::StreamId);
  void close(Station, io::StreamId);

  void on_event(std::uint32_t kind, std::uint64_t a, std::uint64_t b) override;

 private:
  enum Event : std::uint32_t { kArrive, kEnd, kReset, kRoom, kSyn, kConnected, kDeadline, kTlsDeadline };

  struct StationState {
    Completion* process = nullptr;
    std::uint16_t last_port = 39'999;
  };
  // What arrives at an endpoint. [taken, arrived) can be read, [arrived, bytes.size()) is on its way.
  struct Pipe {
    std::string bytes;
    std::size_t taken = 0, arrived = 0;
    std::int64_t last_arrival_ns = 0;
    std::size_t held = 0;  // arrived at a partition
    bool end_held = false, reset_held = false;
    bool end = false;    // everything is here
    bool reset = false;  // torn down by the other side
    std::size_t unread() const { return bytes.size() - taken; }
  };
  struct Endpoint {
    std::uint32_t slot = 0, generation = 1;
    bool live = false, listener = false;
    Station station = 0;
    std::string local, remote;
    // listener
    SocketAddress bound;
    std::deque<Handle> backlog;
    std::deque<io::Op*> accepts;
    // stream
    Handle peer = 0;
    Station peer_station = 0;
    bool write_ended = false;
    bool silent = false;  // half open: the peer is gone and nobody said so; writes vanish
    std::size_t vanished = 0;
    Pipe in;
    io::ReadOp* read = nullptr;
    ChunkPool* pool = nullptr;
    io::Op* write = nullptr;
    std::vector<ConstBuf> pieces;
    io::Op* handshake = nullptr;
    bool tls = false, tls_client = false;
    std::string common_name;
  };
  struct Connect {
    io::Op* op = nullptr;  // null: free, or over
    std::uint32_t slot = 0, generation = 1;
    Station from = 0;
    SocketAddress to;
    std::string address;
    Handle stream = 0;
    bool waiting = false;  // for heal()
  };

  Handle add_endpoint(Station station);
  Endpoint* find(Handle handle);
  const Endpoint* find(Handle handle) const;
  Endpoint* mine(Station station, io::StreamId id);
  static Handle handle_of(const Endpoint& endpoint) { return endpoint.slot | std::uint64_t{endpoint.generation} << 32; }
  void remove(Endpoint& endpoint);
  bool port_taken(Station station, std::uint16_t port) const;
  Endpoint* find_listener(Station from, const SocketAddress& to);
  std::uint16_t pick_port(Station station);
  bool cut(Station from, Station to) const;

  void complete(Station station, io::Op& op, io::Errc code, const char* name, std::uint64_t value = 0);
  void stale(Station station, io::Op& op, const char* name);
  std::int64_t latency() { return draw_ns(streams_.latency, kernel_.net.latency_ns_min, kernel_.net.latency_ns_max); }
  // The next arrival at `to`: after everything sent before.
  Instant arrival(Endpoint& to);
  void send_end(Endpoint& from);
  void send_reset(Handle to);
  void drop_in_flight(Pipe& pipe);
  void tear_down(Endpoint& endpoint);             // by a fault: both sides
  void leave(Endpoint& endpoint, bool graceful);  // its side is over; the peer hears of it, unless by fault

  void fill_read(Endpoint& endpoint);    // completes the waiting read if it can
  void drain_write(Endpoint& endpoint);  // completes the waiting write if it can
  std::size_t piece_size(std::size_t available);
  void offer(Endpoint& listener);

  // sim_tls.cc
  void begin_handshake(Endpoint& endpoint, io::Op& op, Instant deadline);
  void try_handshake(Endpoint& endpoint);
  void finish_handshake(Endpoint& endpoint, io::Errc code);
  void say(Endpoint& endpoint, std::string_view line);

  void on_arrive(Handle to, std::size_t bytes);
  void on_end(Handle to);
  void on_reset(Handle to);
  void apply_reset(Endpoint& endpoint);
  void on_syn(Connect& attempt);
  void finish_connect(Connect& attempt, io::Errc code, std::uint64_t value);
  Connect* find_connect(std::uint64_t handle);
  static std::uint64_t handle_of(const Connect& c) { return c.slot | std::uint64_t{c.generation} << 32; }

  Kernel& kernel_;
  struct Streams {
    explicit Streams(const Random& base);
    Random latency, fragment, reset, refuse, half_open, port, accept;
  } streams_;
  std::vector<StationState> stations_;
  std::deque<Endpoint> endpoints_;
  std::vector<std::uint32_t> free_endpoints_;
  std::deque<Connect> connects_;
  std::vector<std::uint32_t> free_connects_;
  std::vector<Handle> listeners_;
  std::vector<std::pair<Station, Station>> cuts_;
};

// The Net port of one process.
class NetPort final : public io::Net {
 public:
  NetPort(SimNet& net, Station station) : net_(net), station_(station) {}
  void set_running(bool running) { running_ = running; }

  void listen(io::Op& op, std::string_view address) override {
    if (running_) net_.listen(station_, op, address);
  }
  void accept(io::Op& op, io::StreamId id) override {
    if (running_) net_.accept(station_, op, id);
  }
  void connect(io::Op& op, std::string_view address, Instant deadline) override {
    if (running_) net_.connect(station_, op, address, deadline);
  }
  void read_some(io::ReadOp& op, io::StreamId id, ChunkPool& pool) override {
    if (running_) net_.read_some(station_, op, id, pool);
  }
  void write_some(io::Op& op, io::StreamId id, std::span<const ConstBuf> pieces) override {
    if (running_) net_.write_some(station_, op, id, pieces);
  }
  void start_tls(io::Op& op, io::StreamId id, std::span<const ConstBuf> leftover, Instant deadline) override {
    if (running_) net_.start_tls(station_, op, id, leftover, deadline);
  }
  void start_tls_client(io::Op& op, io::StreamId id, std::string_view, Instant deadline) override {
    if (running_) net_.start_tls_client(station_, op, id, deadline);
  }
  io::PeerInfo info(io::StreamId id) const override { return net_.info(station_, id); }
  std::string local_address(io::StreamId id) const override { return net_.local_address(station_, id); }
  void shutdown_write(io::StreamId id) override {
    if (running_) net_.shutdown_write(station_, id);
  }
  void close(io::StreamId id) override {
    if (running_) net_.close(station_, id);
  }

 private:
  SimNet& net_;
  Station station_;
  bool running_ = false;
};

}  // namespace rq::sim
