#include "core/broker/broker.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/broker/broker_impl.h"

namespace rq::broker {
namespace {
constexpr std::size_t kSessionsMax = 1 << 24;  // slots in a waiter id
}  // namespace

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
      lookups.on_stats(done, at);
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

Broker::Broker(io::Host& host, io::Turn& turn, Config config, const Process& process)
    : impl_(std::make_unique<Impl>(host, turn, std::move(config), process)) {
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
  impl_->http->check_invariants();
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
std::uint64_t Broker::http_output_bytes() const { return impl_->http->output_bytes(); }
std::uint64_t Broker::receive_bytes_held() const { return impl_->pool.outstanding() * impl_->pool.chunk_bytes(); }
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
