// What a Broker is made of. Its life (broker_life.cc) is a row of phases; its turn (broker.cc) runs the machines.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/broker/broker.h"
#include "core/broker/disk_guard.h"
#include "core/broker/engine_options.h"
#include "core/broker/http_server.h"
#include "core/broker/listener.h"
#include "core/broker/live_feeds.h"
#include "core/broker/lookup_registration.h"
#include "core/broker/session_table.h"

namespace rq::broker {

struct Broker::Impl {
  enum class Phase : std::uint8_t { idle, binding, opening, measuring, serving, stopping, flushing, ended };

  Impl(io::Host& host_, io::Turn& turn, Config config_, const Process& process)
      : host(host_),
        config(std::move(config_)),
        node_budget(config.limits.node_publish_inflight_bytes),
        engine(host, engine_options(config, process)),
        guard(host, config.storage),
        tokens(host, config.security),
        listener(host),
        auth(host, config, pool),
        lookups(host, config, pool),
        env{host, turn, config, engine, pool, node_budget, counters, gates, auth, dirty, identify_limits(config)},
        sessions(env),
        feeds(host, config, engine, pool, counters, gates, auth),
        start_time_unix(host.clock.wall().ns / kSecond) {}

  // --- life
  bool step(Now now);  // true when the phase changed
  void begin_stop(Now now);
  void step_stop(Now now);
  std::int64_t grace_ns() const { return static_cast<std::int64_t>(config.shutdown.grace_seconds) * kSecond; }
  void check_fault(Now now);
  void look_at_volume(Now now);
  void tell_dead_letters();
  void end(Exit how, std::string why);
  // --- the turn
  void accept_connections(Now now);
  void run_machines(Now now);
  void route(Now now);
  void count_storage_errors(const queue::Events& events);
  void gates_changed() {
    sessions.for_each([](Session& session) { session.gates_changed(); });
    feeds.gates_changed(now);
  }

  io::Host& host;
  Config config;
  ChunkPool pool;  // outlives everything that may hold a slice
  Gates gates;
  BrokerCounters counters;
  LogLevel log_level;
  ByteBudget node_budget;
  queue::Engine engine;
  DiskGuard guard;
  TokenStore tokens;
  Listener listener;
  AuthService auth;
  LookupRegistration lookups;
  std::vector<std::uint32_t> dirty;
  SessionEnv env;
  SessionTable sessions;
  LiveFeeds feeds;
  std::unique_ptr<HttpServer> http;

  Phase phase = Phase::idle;
  Exit exit = Exit::running;
  std::string exit_reason;
  std::uint64_t released = 0;      // messages that were in flight when the flush began
  std::uint64_t letters_told = 0;  // dead letters of which the log knows
  bool stop_requested = false;
  bool at_limit = false;  // the connection limit was reached and logged
  Instant cut_at = Instant::never(), grace_at = Instant::never(), fault_exit_at = Instant::never();
  queue::Events routing;
  Now now;  // of the latest turn
  std::int64_t start_time_unix;
};

}  // namespace rq::broker
