// Collection: which segments of a Topic nobody needs any more, and their removal (page 30 section 6.1).
#include <algorithm>

#include "core/base/probe.h"
#include "core/queue/dead_letters.h"
#include "core/queue/fetch.h"
#include "core/queue/topic.h"

namespace rq::queue {

// The first position that a Channel created now would get (page 30 section 5).
storage::Position Topic::bootstrap_start(Now now) const {
  const std::uint64_t window = std::min<std::uint64_t>(shared_.options.bootstrap_retention_seconds, 1ull << 33);
  return disk_->first_not_older(WallTime{now.wall.ns - static_cast<std::int64_t>(window) * kSecond});
}

storage::Position Topic::retain_from(Now now) const {
  storage::Position retain = std::max(bootstrap_start(now), manifest_.expired_through + 1);
  if (manifest_.unrouted_from) retain = std::min(retain, *manifest_.unrouted_from);
  for (const auto& [name, lane] : lanes_) {
    if (!lane->ephemeral() && !io::planted(shared_.host, "collect_past_a_channel"))
      retain = std::min(retain, lane->durable_floor() + 1);
    if (const std::optional<Position> held = lane->channel().lowest_in_flight()) retain = std::min(retain, *held);
  }
  retain = std::min(retain, shared_.dead_letters->lowest_intent(owner_));
  // Readers finish first: bodies on their way, metadata pages on their way.
  for (const auto& fetch : fetches_)
    for (const Fetch::Item& item : fetch->items) retain = std::min(retain, item.reservation.message.position);
  return std::min(retain, disk_->lowest_loading());
}

bool Topic::collect(Now now) {
  if (phase_ != Phase::live || disk_ == nullptr || script_ || rotating_ || exclusive() || !operations_.empty() || shared_.fault)
    return false;
  const storage::Position retain = retain_from(now);
  const std::size_t count = disk_->collectable(retain);
  if (count == 0) {
    if (!disk_->active_collectable(retain) || !unanswered_.empty() || !shared_.committer.idle(disk_->active_log())) return false;
    start_rotation();  // a later tick collects it
    return true;
  }
  removal_since_ = now.mono;
  begin_script(&Topic::on_collected);
  script_->replace_file(shared_.paths.manifest(name_), manifest_with(false));  // positions survive the purge (I-41)
  stored_next_position_ = log_->next_position();
  disk_->collect(count, *script_);
  for (const auto& [name, lane] : lanes_) {
    lane->channel().drop_absent(*log_);
    mark_dispatch(*lane);
  }
  script_->start();
  return true;
}

void Topic::on_collected(void* self, storage::Script& script) {
  Topic& topic = *static_cast<Topic*>(self);
  topic.finished_ = std::move(topic.script_);
  topic.mark();
  if (script.failed()) return topic.shared_.set_fault(script.fault());
  topic.note_removal();
}

void Topic::note_removal() {
  const std::int64_t took_ns = std::max<std::int64_t>(0, shared_.host.clock.now() - removal_since_);
  shared_.metrics.gc_us.add_us(static_cast<std::uint64_t>(took_ns) / 1'000);
}

}  // namespace rq::queue
