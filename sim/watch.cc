#include "sim/watch.h"

#include "core/broker/disk_guard.h"

namespace rq::sim {
namespace {
constexpr std::int64_t kLookPause = 20 * kMillisecond;
}  // namespace

void Watch::look_at_policies() {
  policies_.look(stage_.now());
  if (!stage_.calm) stage_.world.at(kLookPause, [this] { look_at_policies(); });
}

void Watch::look_inside() {
  if (stage_.calm) return;
  if (life_.serving()) {
    life_.broker().check_invariants();
    watch_quiesced();
    watch_pressure();
  }
  stage_.world.at(kLookPause, [this] { look_inside(); });
}

// I-52: nothing is answered OK and nothing handed over while the Broker is known to be quiesced.
void Watch::watch_quiesced() {
  if (stage_.quiesced_at == Instant::never()) return;
  const broker::BrokerCounters& counters = life_.broker().counters();
  const std::uint64_t moved = counters.publish_messages + counters.delivered_messages + counters.websocket_messages;
  if (watched_quiesced_ == stage_.quiesced_at && moved != moved_) stage_.fail("a quiesced Broker published or delivered");
  if (watched_quiesced_ != stage_.quiesced_at) ++quiesced_;
  watched_quiesced_ = stage_.quiesced_at;
  moved_ = moved;
}

void Watch::volume_is_full() {
  if (!disk_.claims_full) full_since_ = stage_.world.now();
}

// Nothing is published while the volume has looked full for as long as the guard's next reading and what was on its way may take.
void Watch::watch_pressure() {
  const std::int64_t known_ns = stage_.swarm.slow(broker::DiskGuard::kPeriodNs + stage_.swarm.transit_ns());
  const std::uint64_t published = life_.broker().counters().publish_messages;
  const bool full = disk_.claims_full && stage_.swarm.read_error == 0 && stage_.world.now() - full_since_ >= known_ns;
  const std::uint64_t boot = life_.process().boots;
  if (full && full_boot_ == boot && published != full_published_) stage_.fail("published on a volume known to be full");
  full_boot_ = full ? boot : 0;
  full_published_ = published;
}

}  // namespace rq::sim
