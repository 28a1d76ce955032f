// The phases of a Broker, from binding its ports to its end.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/base/probe.h"
#include "core/broker/broker_impl.h"

namespace rq::broker {
namespace {
constexpr std::int64_t kFaultExitNs = 200 * kMillisecond;  // I2: well before 250 ms, and long enough to answer who waits
constexpr std::int64_t kCutBeforeGraceNs = 250 * kMillisecond;
}  // namespace

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

}  // namespace rq::broker
