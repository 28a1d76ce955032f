// The Broker: one shard that owns the queue engine, the NSQ listener with its sessions, and the HTTP server (page 31 sections 1
// and 3, page 30 sections 2.8, 8 and 12).
//
//   starting  both ports are bound, then the data directory is opened (D-49); HTTP serves meanwhile
//   serving   TCP accepts
//   stopping  request_stop(): publishes refused, deliveries stopped, sessions end, the engine is flushed
//   ended     exit_state() is not `running` any more: the process ends with that
//
//  I1 A wrong thing on one connection never reaches another one.
//  I2 After a storage fault the process ends within 250 ms.
//  I3 An idle connection costs nothing per turn: it is one entry in a heap of deadlines.
#pragma once

#include <memory>
#include <string>

#include "core/broker/engine_options.h"
#include "core/broker/server_view.h"
#include "core/io/turn.h"

namespace rq::broker {

class Broker final : public io::Shard, public ServerView {
 public:
  Broker(io::Host& host, io::Turn& turn, Config config, const Process& process = {});
  ~Broker();
  Broker(const Broker&) = delete;
  Broker& operator=(const Broker&) = delete;

  void start();
  void request_stop();  // SIGTERM; idempotent
  enum class Exit { running, clean, failed };
  Exit exit_state() const;
  const std::string& exit_reason() const;  // what "Error: ..." says; empty unless failed
  bool serving() const;                    // directory open, TCP accepting

  // Drain (page 30 section 12): refuses publishes, and with `freeze` stops deliveries. Memory only.
  void set_drain(bool enabled, bool freeze) override;
  bool draining() const;
  bool frozen() const;

  // True when nothing is queued or on its way: no pending answer, no unsent output, engine quiet.
  bool quiet() const;
  void check_invariants() const;

  // io::Shard
  void expire(Now now) override;
  void settle(Now now) override;
  Instant next_deadline() const override;

  // ServerView
  const Config& config() const override;
  queue::Engine& engine() override;
  std::int64_t start_time_unix() const override;
  std::uint64_t tcp_connections() const override;
  std::uint64_t websocket_connections() const override;
  LiveFeeds& live_feeds() override;
  void clients(std::vector<ClientRow>& out) const override;
  BrokerCounters& counters() override;
  LogLevel& log_level() override;
  bool starting() const override;
  bool accepting() const override;
  bool stopping() const override;
  bool delivering() const override;
  TokenStore::Verdict check_token(TokenClass wanted, std::string_view authorization, std::string_view header) const override;
  bool disk_pressure() const override;
  const io::DiskUsage& disk_usage() const override;
  bool reserve_publish_bytes(std::uint64_t bytes) override;
  void release_publish_bytes(std::uint64_t bytes) override;
  std::uint64_t publish_bytes_in_flight() const override;
  std::uint64_t receive_bytes_held() const;  // of chunks of the pool, whoever keeps them: what was received and is not let go yet
  std::uint64_t http_output_bytes() const;   // of answers that are being made or not yet written
  LookupRegistration& lookups() override;
  std::uint16_t tcp_port() const override;
  std::uint16_t http_port() const override;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rq::broker
