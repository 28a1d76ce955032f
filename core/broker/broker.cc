#include "core/broker/broker.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/base/check.h"
#include "core/base/probe.h"
#include "core/broker/disk_guard.h"
#include "core/broker/http_server.h"
#include "core/broker/listener.h"
#include "core/broker/live_feeds.h"
#include "core/broker/lookup_registration.h"
#include "core/broker/session_table.h"

namespace rq::broker {
namespace {

constexpr std::int64_t kFaultExitNs = 200 * kMillisecond;  // I2: well before 250 ms, and long enough to answer who waits
constexpr std::int64_t kCutBeforeGraceNs = 250 * kMillisecond;
constexpr std::size_t kSessionsMax = 1 << 24;  // slots in a waiter id

queue::EngineOptions engine_options(const Config& config, std::int64_t process_id) {
  queue::EngineOptions o;
  o.maintenance_startup_delay_seconds = config.storage.maintenance_startup_delay_seconds;
  o.scrub_interval_seconds = config.storage.scrub_interval_seconds;
  o.scrub_bytes_per_second = config.storage.scrub_bytes_per_second;
  o.pid = process_id;
  o.data_path = config.storage.data_path;
  o.node_id = config.node.id;
  o.feature_level = static_cast<std::uint32_t>(config.storage.feature_level);
  o.max_segment_bytes = config.storage.max_segment_bytes;
  o.entry_cache_bytes = config.storage.entry_cache_bytes;
  o.message_index_cache_bytes = config.storage.message_index_cache_bytes;
  o.max_message_bytes = config.queue.max_message_bytes;
  o.max_topics = config.queue.max_topics;
  o.max_ack_gap = config.queue.max_ack_gap;
  o.max_publish_workers = config.queue.max_publish_workers;
  o.publish_worker_idle_seconds = config.queue.publish_worker_idle_seconds;
  o.bootstrap_retention_seconds = config.queue.bootstrap_retention_seconds;
  o.max_defer_ms = static_cast<std::int64_t>(config.queue.max_defer_ms);
  o.max_message_timeout_ms = static_cast<std::int64_t>(config.queue.max_message_timeout_ms);
  o.node_delivery_inflight_bytes = config.limits.node_delivery_inflight_bytes;
  o.connection_delivery_inflight_bytes = config.limits.connection_delivery_inflight_bytes;
  o.payload_read_queue = config.storage.payload_read_queue;
  o.node_delivery_inflight_messages = config.limits.node_delivery_inflight_messages;
  o.dead_letters.max_delivery_attempts = config.queue.max_delivery_attempts;
  o.dead_letters.message_retention_seconds = config.queue.message_retention_seconds;
  o.dead_letters.suffix = config.queue.dead_letter_suffix;
  o.max_channel_consumers = config.limits.max_channel_consumers;
  o.ephemeral_queue_messages = config.queue.ephemeral_queue_messages;
  o.node_ephemeral_bytes = config.limits.node_ephemeral_bytes;
  o.console_management = config.security.console_management_enabled;
  o.ack_mode = config.queue.publish_ack_mode;
  o.relaxed_sync_messages = config.queue.relaxed_sync_messages;
  o.relaxed_sync_bytes = config.queue.relaxed_sync_bytes;
  o.relaxed_sync_interval_ms = static_cast<std::int64_t>(config.queue.relaxed_sync_interval_ms);
  return o;
}

}  // namespace

struct Broker::Impl {
  enum class Phase : std::uint8_t { idle, binding, opening, measuring, serving, stopping, flushing, ended };

  Impl(io::Host& host_, io::Turn& turn, Config config_, std::int64_t process_id)
      : host(host_),
        config(std::move(config_)),
        node_budget(config.limits.node_publish_inflight_bytes),
        engine(host, engine_options(config, process_id)),
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

// --- life

void Broker::Impl::end(Exit how, std::string why) {
  if (phase == Phase::ended) return;
  phase = Phase::ended;
  exit = how;
  exit_reason = std::move(why);
  guard.end();
  tokens.end();
  lookups.end();
  listener.close();
  std::string fields = fmt::format("released={}", released);
  if (!exit_reason.empty()) fields += " reason=\"" + exit_reason + '"';
  host.log.log(how == Exit::clean ? io::Level::info : io::Level::error, "stopped", fields);
}

void Broker::Impl::check_fault(Now at) {
  const storage::Fault* fault = engine.fault();
  if (fault == nullptr) return;
  if (phase == Phase::opening || phase == Phase::flushing) return end(Exit::failed, fault->message());
  if (fault_exit_at == Instant::never()) {
    RQ_SOMETIMES(true, "broker.storage_fault");
    fault_exit_at = at.mono + kFaultExitNs;
    feeds.end_all(live_end::kShutdown, at);
  }
  if (at.mono >= fault_exit_at) end(Exit::failed, "storage fault: " + fault->message());
}

void Broker::Impl::begin_stop(Now at) {
  phase = Phase::stopping;
  RQ_SOMETIMES(sessions.size() > 0, "broker.stopped_with_connections");
  gates.stopping = true;
  listener.close();
  lookups.end();
  http->stop_accepting();
  engine.end_scrub();
  gates_changed();
  grace_at = at.mono + grace_ns();
  cut_at = at.mono + std::max<std::int64_t>(0, grace_ns() - kCutBeforeGraceNs);
}

void Broker::Impl::step_stop(Now at) {
  if (at.mono >= cut_at) {
    cut_at = Instant::never();
    sessions.for_each([](Session& session) { session.cut(); });
    feeds.cut_all();
  }
  const bool finished = sessions.size() == 0 && feeds.size() == 0 && node_budget.used() == 0 && http->connections() == 0;
  if (!finished && at.mono < grace_at) return;
  if (!finished) {
    host.log.log(io::Level::warn, "grace_expired",
                 fmt::format("tcp={} http={} websocket={}", sessions.size(), http->connections(), feeds.size()));
  }
  http->close_all();
  phase = Phase::flushing;
  grace_at = cut_at = Instant::never();
  released = engine.metrics().in_flight_messages;
  engine.stop();
}

bool Broker::Impl::step(Now at) {
  const Phase before = phase;
  if (phase == Phase::ended || phase == Phase::idle) return false;
  gates.disk_pressure = guard.pressure() && !io::planted(host, "publish_under_pressure");
  check_fault(at);
  switch (phase) {
    case Phase::binding:
      if (listener.failed()) {
        end(Exit::failed, listener.failure());
      } else if (http->failed()) {
        end(Exit::failed, http->failure());
      } else if (stop_requested) {
        end(Exit::clean, "");
      } else if (listener.listening() && http->listening()) {
        phase = Phase::opening;
        engine.open();
      }
      break;
    case Phase::opening:
      if (stop_requested && grace_at == Instant::never()) grace_at = at.mono + grace_ns();
      if (engine.state() == queue::EngineState::open) {
        phase = Phase::measuring;
        grace_at = Instant::never();
        guard.begin();
        tokens.begin();
      } else if (at.mono >= grace_at) {
        // An opening that a stop finds under way may end within the grace, so that the directory is closed as usual. Otherwise
        // nothing was answered yet, and what an opening has changed a later one finds as after a crash.
        end(Exit::clean, "the opening was cut short");
      }
      break;
    case Phase::measuring:
      if (guard.known() && guard.failed()) {
        end(Exit::failed, fmt::format("cannot read the free space of {}", config.storage.data_path));
      } else if (!tokens.failure().empty()) {
        end(Exit::failed, tokens.failure());
      } else if (stop_requested) {
        begin_stop(at);
      } else if (guard.known() && tokens.known()) {
        phase = Phase::serving;
        listener.enable();
        lookups.begin(advertised(config.network.advertised_tcp_port, listener.port()),
                      advertised(config.network.advertised_http_port, http->port()));
        host.log.log(io::Level::info, "serving",
                     fmt::format("node_id={} tcp={} http={} format=7 topics={}", config.node.id, listener.port(), http->port(),
                                 engine.recovered_topics()));
      }
      break;
    case Phase::serving:
      if (guard.take_reading()) look_at_volume(at);
      if (stop_requested) begin_stop(at);
      break;
    case Phase::stopping:
      step_stop(at);
      break;
    case Phase::flushing:
      if (engine.state() == queue::EngineState::stopped) end(Exit::clean, "");
      break;
    case Phase::idle:
    case Phase::ended:
      break;
  }
  return phase != before;
}

// Moves are counted once a second and not told one by one: a Topic whose consumers all fail moves thousands.
void Broker::Impl::tell_dead_letters() {
  const std::uint64_t moved = engine.metrics().dead_letter_messages;
  if (moved == letters_told) return;
  host.log.log(io::Level::warn, "dead_letters", fmt::format("moved={} since_start={}", moved - letters_told, moved));
  letters_told = moved;
}

void Broker::Impl::look_at_volume(Now at) {
  tell_dead_letters();
  if (guard.room_for(queue::kReserveBytes)) {
    engine.hold_reserve(at);
    return;
  }
  if (!guard.failed() && guard.usage().available < queue::kReserveBytes) engine.give_back_reserve();
  if (guard.eviction_due(at)) engine.evict_oldest(at);
}

// --- the turn

// What clients are about to hear. Refusals without an event are counted where they are made.
void Broker::Impl::count_storage_errors(const queue::Events& events) {
  const auto count = [this](const queue::Outcome& outcome) {
    if (outcome.code == queue::Code::storage) ++counters.storage_errors;
  };
  for (const auto& done : events.published) count(done.outcome);
  for (const auto& done : events.subscribed) count(done.outcome);
  for (const auto& done : events.commands) count(done.outcome);
  for (const auto& done : events.admin) count(done.outcome);
  for (const auto& done : events.managed) count(done.outcome);
  for (const auto& done : events.stats) count(done.outcome);
  for (const auto& done : events.scrubbed) count(done.outcome);
}

void Broker::Impl::accept_connections(Now at) {
  const std::uint64_t most = std::min<std::uint64_t>(config.limits.max_connections, kSessionsMax);
  for (const io::StreamId stream : listener.take_accepted()) {
    if (phase == Phase::serving && sessions.size() < most) {
      at_limit = false;
      ++counters.tcp_connections_total;
      sessions.add(stream, at);
      continue;
    }
    if (phase == Phase::serving && !at_limit) {
      at_limit = true;
      host.log.log(io::Level::warn, "connection_limit", fmt::format("limit={} peer={}", most, host.net.info(stream).address));
    }
    host.net.close(stream);
  }
}

void Broker::Impl::route(Now at) {
  engine.advance(at);
  std::swap(routing, engine.events());
  if (engine.fault() != nullptr) count_storage_errors(routing);
  sessions.route(routing, at);
  feeds.route(routing, at);
  for (const queue::PublishDone& done : routing.published) {
    if (waiter_kind(done.waiter) == WaiterKind::http) http->on_published(done);
  }
  for (const queue::AdminDone& done : routing.admin) http->on_admin(done);
  for (const queue::ManagedDone& done : routing.managed) http->on_managed(done);
  for (queue::StatsDone& done : routing.stats) {
    if (waiter_kind(done.waiter) == WaiterKind::lookup) {
      lookups.on_stats(done);
    } else {
      http->on_stats(done);
    }
  }
  for (const queue::ScrubDone& done : routing.scrubbed) http->on_scrubbed(done);
  routing.clear();
}

// Machines until none has anything left to do; their effects on files go out with the engine's submit().
void Broker::Impl::run_machines(Now at) {
  do {
    do {
      route(at);
      for (AuthAnswer& answer : auth.take_answers(at)) {
        if (LiveFeed::owns(answer.slot)) {
          feeds.on_auth(std::move(answer), at);
        } else {
          sessions.on_auth(std::move(answer), at);
        }
      }
    } while (sessions.resume(at) || feeds.resume(at) || !engine.events().empty());
    http->settle(at);
    sessions.flush(at);
    feeds.flush(at);
    lookups.settle(at, engine);
    engine.advance(at);
    auth.settle(at);
  } while (!dirty.empty() || feeds.has_work() || !engine.events().empty() || auth.has_answers());
}

// --- the outside

Broker::Broker(io::Host& host, io::Turn& turn, Config config, std::int64_t process_id)
    : impl_(std::make_unique<Impl>(host, turn, std::move(config), process_id)) {
  impl_->http = std::make_unique<HttpServer>(host, *this);
}

Broker::~Broker() = default;

void Broker::start() {
  RQ_CHECK(impl_->phase == Impl::Phase::idle);
  impl_->phase = Impl::Phase::binding;
  impl_->listener.listen(impl_->config.network.tcp_address);
  impl_->http->listen(impl_->config.network.http_address);
}

void Broker::request_stop() { impl_->stop_requested = true; }
Broker::Exit Broker::exit_state() const { return impl_->exit; }
const std::string& Broker::exit_reason() const { return impl_->exit_reason; }
bool Broker::serving() const { return impl_->phase == Impl::Phase::serving; }

void Broker::set_drain(bool enabled, bool freeze) {
  if (enabled != draining() || (enabled && freeze) != frozen())
    impl_->host.log.log(io::Level::info, "drain", fmt::format("enabled={} freeze_deliveries={}", enabled, enabled && freeze));
  impl_->gates.draining = enabled;
  impl_->gates.frozen = enabled && freeze;
  impl_->gates_changed();
}
bool Broker::draining() const { return impl_->gates.draining; }
bool Broker::frozen() const { return impl_->gates.frozen; }

bool Broker::quiet() const {
  bool quiet =
      impl_->dirty.empty() && !impl_->feeds.has_work() && impl_->node_budget.used_by_publishes() == 0 && impl_->engine.quiet();
  std::as_const(impl_->sessions).for_each([&](const Session& session) { quiet = quiet && session.quiet(); });
  return quiet;
}

void Broker::check_invariants() const {
  impl_->engine.check_invariants();
  std::uint64_t held = 0;
  std::as_const(impl_->sessions).for_each([&](const Session& session) { held += session.budget_used(); });
  RQ_CHECK(held <= impl_->node_budget.used());
}

void Broker::expire(Now now) {
  Impl& m = *impl_;
  m.now = now;
  if (m.phase == Impl::Phase::ended) return;
  m.feeds.begin_turn(now);
  m.sessions.expire(now);
  m.feeds.expire(now);
  m.http->expire(now);
  m.auth.expire(now);
  m.lookups.expire(now);
  m.engine.expire(now);
}

void Broker::settle(Now now) {
  Impl& m = *impl_;
  m.now = now;
  m.feeds.begin_turn(now);
  m.accept_connections(now);
  do {
    if (m.phase == Impl::Phase::ended) return;
    m.run_machines(now);
  } while (m.step(now));
  if (m.guard.ready(now)) m.guard.settle(now, m.engine.metrics().appended_bytes);
  m.tokens.settle(now);
  m.listener.settle(now);
  m.engine.submit(now);
}

Instant Broker::next_deadline() const {
  const Impl& m = *impl_;
  if (m.phase == Impl::Phase::ended || m.phase == Impl::Phase::idle) return Instant::never();
  if (m.feeds.has_work()) return m.now.mono;
  Instant earliest = std::min(m.sessions.next_deadline(), m.http->next_deadline());
  earliest = std::min(earliest, m.engine.next_deadline(m.now));
  earliest = std::min(earliest, m.auth.next_deadline());
  earliest = std::min(earliest, m.lookups.next_deadline());
  earliest = std::min(earliest, m.feeds.next_deadline());
  earliest = std::min(earliest, m.guard.next_deadline());
  earliest = std::min(earliest, m.tokens.next_deadline());
  earliest = std::min(earliest, m.listener.next_deadline());
  earliest = std::min(earliest, m.fault_exit_at);
  return std::min(earliest, std::min(m.cut_at, m.grace_at));
}

const Config& Broker::config() const { return impl_->config; }
queue::Engine& Broker::engine() { return impl_->engine; }
std::int64_t Broker::start_time_unix() const { return impl_->start_time_unix; }
std::uint64_t Broker::tcp_connections() const { return impl_->sessions.size(); }
std::uint64_t Broker::websocket_connections() const { return impl_->feeds.connections(); }
LiveFeeds& Broker::live_feeds() { return impl_->feeds; }
BrokerCounters& Broker::counters() { return impl_->counters; }
LogLevel& Broker::log_level() { return impl_->log_level; }
bool Broker::starting() const { return impl_->phase < Impl::Phase::serving; }
bool Broker::stopping() const { return impl_->gates.stopping; }
bool Broker::accepting() const { return impl_->gates.accepting(); }
bool Broker::delivering() const { return impl_->gates.delivering(); }
TokenStore::Verdict Broker::check_token(TokenClass wanted, std::string_view authorization, std::string_view header) const {
  return impl_->tokens.check(wanted, authorization, header);
}
bool Broker::disk_pressure() const { return impl_->gates.disk_pressure; }
const io::DiskUsage& Broker::disk_usage() const { return impl_->guard.usage(); }
std::uint64_t Broker::publish_bytes_in_flight() const { return impl_->node_budget.used_by_publishes(); }
LookupRegistration& Broker::lookups() { return impl_->lookups; }
std::uint16_t Broker::tcp_port() const { return impl_->listener.port(); }
std::uint16_t Broker::http_port() const { return impl_->http->port(); }

void Broker::clients(std::vector<ClientRow>& out) const {
  std::as_const(impl_->sessions).for_each([&](const Session& session) { out.push_back(session.row()); });
  impl_->feeds.clients(out);
}

bool Broker::reserve_publish_bytes(std::uint64_t bytes) { return !impl_->gates.disk_pressure && impl_->node_budget.take(bytes); }
void Broker::release_publish_bytes(std::uint64_t bytes) { impl_->node_budget.give(bytes); }

}  // namespace rq::broker
