// Protective eviction: the oldest sealed segment goes, whoever still needs it (page 30 section 8).
//
//   idle -> sealing (the active tail, when nothing is sealed) -> recording (manifest, audit file, unrouted boundary) -> evicting
//   (Evict in every WAL) -> removing -> idle
//
// A crash between any two steps leaves the segment readable or every floor beyond it; no deletion without its audit file (I-46).
#include <algorithm>
#include <string>
#include <utility>

#include "core/queue/fetch.h"
#include "core/queue/topic.h"

namespace rq::queue {

bool Topic::evict() {
  if (phase_ != Phase::live || disk_ == nullptr || script_ || rotating_ || exclusive() || !operations_.empty() || shared_.fault)
    return false;
  if (disk_->oldest_sealed() == nullptr) {
    if (log_->stored_messages() == 0 || !unanswered_.empty() || !shared_.committer.idle(disk_->active_log())) return false;
    eviction_.step = Eviction::Step::sealing;
    start_rotation();
    return true;
  }
  if (oldest_is_read()) return false;
  eviction_.step = Eviction::Step::sealing;
  mark();
  return true;
}

bool Topic::oldest_is_read() const {
  const storage::Position last = disk_->oldest_sealed()->last_position;
  if (disk_->lowest_loading() <= last) return true;
  if (disk_->leased() == disk_->oldest_sealed()) return true;
  return std::any_of(fetches_.begin(), fetches_.end(), [last](const auto& fetch) {
    return std::any_of(fetch->items.begin(), fetch->items.end(),
                       [last](const Fetch::Item& item) { return item.reservation.message.position <= last; });
  });
}

void Topic::pump_eviction(Now now) {
  if (script_ || !evicting()) return;
  switch (eviction_.step) {
    case Eviction::Step::idle:
    case Eviction::Step::recording:
    case Eviction::Step::removing:
      return;
    case Eviction::Step::sealing:
      return record_eviction(now);
    case Eviction::Step::recorded:
      evict_everywhere(eviction_.audit.through_position, now);
      eviction_.step = Eviction::Step::evicting;
      [[fallthrough]];
    case Eviction::Step::evicting:
      // Statistics may look at a page of it; nothing else does any more.
      if (evicted_everywhere(eviction_.audit.through_position) && !oldest_is_read()) remove_evicted();
      return;
  }
}

std::optional<storage::Position> Topic::boundary_behind(storage::Position through) const {
  if (!manifest_.unrouted_from) return std::nullopt;
  return std::min(std::max(*manifest_.unrouted_from, through + 1), log_->next_position());
}

void Topic::record_eviction(Now now) {
  const storage::SegmentInfo& victim = *disk_->oldest_sealed();
  removal_since_ = now.mono;
  eviction_.audit = {.topic = name_,
                     .first_position = victim.first_position,
                     .through_position = victim.last_position,
                     .messages = victim.message_count,
                     .segment = shared_.paths.segment(name_, victim.base),
                     .created_at_ms = std::max<std::int64_t>(0, now.wall.ms())};
  begin_script(&Topic::on_eviction_recorded);
  script_->replace_file(shared_.paths.manifest(name_), manifest_with(false));
  script_->replace_file(storage::audit_path(shared_.paths, eviction_.audit), storage::encode_audit(eviction_.audit));
  if (manifest_.unrouted_from) {
    storage::Manifest manifest = manifest_;
    manifest.next_position = log_->next_position();
    manifest.unrouted_from = boundary_behind(victim.last_position);
    script_->replace_file(shared_.paths.manifest(name_), storage::encode_manifest(manifest));
  }
  stored_next_position_ = log_->next_position();
  script_->start();
  eviction_.step = Eviction::Step::recording;
}

void Topic::on_eviction_recorded(void* self, storage::Script& script) {
  Topic& topic = *static_cast<Topic*>(self);
  topic.finished_ = std::move(topic.script_);
  topic.mark();
  if (script.failed()) return topic.shared_.set_fault(script.fault());
  topic.manifest_.unrouted_from = topic.boundary_behind(topic.eviction_.audit.through_position);
  topic.eviction_.step = Eviction::Step::recorded;
}

void Topic::remove_evicted() {
  begin_script(&Topic::on_evicted);
  disk_->collect(1, *script_);
  for (const auto& [name, lane] : lanes_) lane->channel().drop_absent(*disk_);
  script_->start();
  eviction_.step = Eviction::Step::removing;
}

void Topic::on_evicted(void* self, storage::Script& script) {
  Topic& topic = *static_cast<Topic*>(self);
  topic.finished_ = std::move(topic.script_);
  topic.eviction_.step = Eviction::Step::idle;
  topic.schedule_discard(topic.log_->oldest_timestamp_after(topic.manifest_.expired_through));
  topic.mark_all_lanes();
  if (script.failed()) return topic.shared_.set_fault(script.fault());
  const storage::EvictionAudit& audit = topic.eviction_.audit;
  topic.note_removal();
  ++topic.shared_.metrics.protective_evictions;
  topic.shared_.metrics.protective_evicted_messages += audit.messages;
  topic.shared_.host.log.log(io::Level::warn, "eviction",
                             "topic=" + topic.name_ + " through_position=" + std::to_string(audit.through_position) +
                                 " messages=" + std::to_string(audit.messages));
}

}  // namespace rq::queue
