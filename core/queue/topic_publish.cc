// Publishing to a Topic: group commit, ack modes, rotation (page 30 sections 2.4 to 2.7).
#include <algorithm>
#include <utility>

#include "core/base/probe.h"
#include "core/queue/dead_letters.h"
#include "core/queue/topic.h"

namespace rq::queue {

void Topic::publish(Publish request) {
  RQ_CHECK(phase_ != Phase::gone);
  queue_.push_back(std::move(request));
  mark();
}

void Topic::pump_publishes(Now now) {
  if (phase_ != Phase::live || rotating_) return;
  waiting_for_ids_ = false;
  const bool was_due = std::exchange(rotation_due_, false);  // the request that needed it may be refused by now
  while (!metadata.sealing && !queue_.empty() && publish_one(queue_.front(), now)) queue_.pop_front();
  if (metadata.sealing) rotate_when_idle();
  if (queue_.empty()) shared_.metadata.leave(*this);  // what waited for the budget was refused
  more_ = !queue_.empty();
  if (was_due && !rotation_due_ && !operations_.empty()) mark();
}

// A full group, a rotation or an id block holds work back. The end of a barrier, a script or a write marks the Topic again; only
// a barrier that just started over everything appended lets it go on without any such event.
bool Topic::can_go_on() const {
  if (phase_ != Phase::live || shared_.fault) return false;
  if (disk_ == nullptr) return false;
  const storage::Committer& committer = shared_.committer;
  const storage::Committer::LogId log = disk_->active_log();
  if (!queue_.empty() && !rotating_ && !waiting_for_ids_ && !metadata.waiting && !metadata.sealing && group_requests_ > 0 &&
      committer.barrier_started(log) == committer.appended(log) && !disk_->needs_rotation(queue_.front().bytes))
    return true;
  return std::any_of(held_.begin(), held_.end(), [](const ChannelLane* lane) { return lane->can_go_on(); });
}

// False: the request has to wait, and so has everything behind it.
bool Topic::publish_one(Publish& request, Now now) {
  if (const Code code = shared_.access.check(name_, now.wall); code != Code::ok) {  // I-11: also after a wait
    RQ_SOMETIMES(true, "access: a publish that waited is refused");
    refuse_publish(request, {code, {}});
    return true;
  }
  MessageId first_id = 0;
  if (memory_ != nullptr) {
    if (!take_ids(request, first_id)) return !waiting_for_ids_;
    publish_in_memory(request, first_id, now);
    return true;
  }
  if (!has_place(request) || !shared_.metadata.admit(*this, request.bodies.size())) return false;
  if (!take_ids(request, first_id)) return !waiting_for_ids_;
  account(request, append(request, first_id, now), now);
  return true;
}

// In the group that is being appended, and in the active segment.
bool Topic::has_place(const Publish& request) {
  const storage::Committer& committer = shared_.committer;
  const storage::Committer::LogId log = disk_->active_log();
  if (committer.barrier_started(log) == committer.appended(log) || !shared_.durable_mode()) {
    if (group_requests_ > 0) {
      ++shared_.metrics.publish_commits;
      shared_.metrics.publish_group_max = std::max<std::uint64_t>(shared_.metrics.publish_group_max, group_requests_);
    }
    group_requests_ = 0;
    group_bytes_ = 0;
  }
  if (group_requests_ > 0 && (group_requests_ >= kGroupRequestsMax || group_bytes_ + request.bytes > kGroupBytesMax)) {
    RQ_SOMETIMES(group_requests_ >= kGroupRequestsMax, "publish: a group of 64 requests is full");
    RQ_SOMETIMES(group_requests_ < kGroupRequestsMax, "publish: a group of 8 MiB is full");
    return false;
  }
  if (!disk_->needs_rotation(request.bytes)) return true;
  rotate_when_idle();
  return false;
}

storage::TopicLog::Appended Topic::append(const Publish& request, MessageId first_id, Now now) {
  RQ_CHECK(manifest_.unrouted_from || durable_lanes() > 0);  // I-36
  look_for_readers(request, now);
  const storage::TopicLog::Appended appended = disk_->append(request.bodies, first_id, request.delay_ms, now);
  note_tail();
  shared_.metadata.after_append(*this);
  schedule_first_discard();
  drop_newest(appended.first, request.bodies.size());
  return appended;
}

// Who is answered when, and what the barrier over it may wait for.
void Topic::account(Publish& request, const storage::TopicLog::Appended& appended, Now now) {
  storage::Committer& committer = shared_.committer;
  const storage::Committer::LogId log = disk_->active_log();
  const auto count = static_cast<std::uint32_t>(request.bodies.size());
  std::uint64_t body_bytes = 0;
  for (const Slice& body : request.bodies) body_bytes += body.size();
  published_bytes_ += body_bytes;
  ++group_requests_;
  group_bytes_ += request.bytes;
  committer.note_publishers(1);
  ++shared_.metrics.publish_requests;
  shared_.metrics.publish_wait_us.add_us(static_cast<std::uint64_t>(std::max<std::int64_t>(0, now.mono - request.since)) / 1'000);
  if (io::planted(shared_.host, shared_.durable_mode() ? "acknowledge_before_barrier" : "answer_before_write")) {
    shared_.events.published.push_back({request.waiter, {}});
    request.waiter = WaiterId::none;
  }
  unanswered_.push_back({appended.end_offset, request.waiter, count, body_bytes, request.since});
  if (request.dead_letter) dead_letter_end_ = appended.end_offset;
  if (request.dead_letter || shared_.durable_mode()) committer.want_barrier(log);
  if (shared_.durable_mode()) return;
  schedule_sync();
  sync_if_due(now);
}

// Bodies stay in memory while a Channel may come to them before they are dropped: one whose backlog fits into the cache; once
// none does, into half of it. Without a Channel nobody comes; the first one will begin with the oldest message. Looked at anew
// after 1 MiB, a second or a new Channel.
void Topic::look_for_readers(const Publish& request, Now now) {
  constexpr std::uint64_t kLookBytes = 1 << 20;
  if (request.bytes <= readers_look_.bytes_left && now.mono < readers_look_.again) {
    readers_look_.bytes_left -= request.bytes;
    return;
  }
  readers_look_ = {kLookBytes, now.mono + kSecond};
  const std::uint64_t each = request.bytes / request.bodies.size() + storage::BodyCache::kOverheadPerMessage;
  const std::uint64_t reach = shared_.bodies.budget() / (disk_->keeps_bodies() ? 1 : 2) / each;
  const Position next = disk_->next_position();
  const bool readers = std::any_of(lanes_.begin(), lanes_.end(), [&](const auto& entry) {
    return !entry.second->removing && next - std::min(next, entry.second->channel().cursor()) <= reach;
  });
  disk_->keep_bodies(readers);
}

// False: there are none yet (waiting_for_ids_), or none any more, and the request was answered.
bool Topic::take_ids(Publish& request, MessageId& first_id) {
  switch (shared_.meta->take(request.bodies.size(), first_id)) {
    case storage::MetaStore::Ids::ok:
      return true;
    case storage::MetaStore::Ids::wait:
      waiting_for_ids_ = true;
      if (!std::exchange(waits_for_ids, true)) shared_.waiting_for_ids.push_back(this);
      return false;
    case storage::MetaStore::Ids::exhausted:
      refuse_publish(request, {Code::sequence_exhausted, "message id space is used up"});
      return false;
  }
  return false;
}

void Topic::refuse_publish(const Publish& request, const Outcome& outcome) {
  if (request.dead_letter) return shared_.dead_letters->on_published(outcome);
  shared_.events.published.push_back({request.waiter, outcome});
}

void Topic::on_advance(Now now) {
  const storage::Committer::LogId log = disk_->active_log();
  if (dead_letter_end_ > 0 && shared_.committer.durable(log) >= dead_letter_end_) {
    dead_letter_end_ = 0;
    shared_.dead_letters->on_published({});
  }
  const std::uint64_t reached = shared_.durable_mode() ? shared_.committer.durable(log) : shared_.committer.written(log);
  while (!unanswered_.empty() && unanswered_.front().end_offset <= reached) {
    const Unanswered& entry = unanswered_.front();
    shared_.metrics.published_messages += entry.messages;
    shared_.metrics.published_bytes += entry.bytes;
    shared_.metrics.publish_ack_us.add_us(static_cast<std::uint64_t>(std::max<std::int64_t>(0, now.mono - entry.since)) / 1'000);
    if (entry.waiter != WaiterId::none) shared_.events.published.push_back({entry.waiter, {}});
    if (shared_.durable_mode()) ++answered;  // a barrier may be held for them
    unanswered_.pop_front();
  }
  if (disk_->on_advance()) {
    retry_discard();
    mark_all_lanes();
  }
  mark();
}

Instant Topic::sync_deadline() const {
  if (shared_.durable_mode() || disk_ == nullptr) return Instant::never();
  return disk_->uncovered().oldest + shared_.options.relaxed_sync_interval_ms * kMillisecond;
}

void Topic::sync_if_due(Now now) {
  if (shared_.durable_mode() || disk_ == nullptr) return;
  const storage::TopicLog::Uncovered waiting = disk_->uncovered();
  if (waiting.messages == 0) return;
  if (waiting.messages >= shared_.options.relaxed_sync_messages || waiting.bytes >= shared_.options.relaxed_sync_bytes ||
      now.mono >= waiting.oldest + shared_.options.relaxed_sync_interval_ms * kMillisecond)
    shared_.committer.want_barrier(disk_->active_log());
}

void Topic::schedule_sync() {
  if (sync_scheduled_) return;
  sync_scheduled_ = true;
  sync_at_ = sync_deadline().ns;
  shared_.syncs.insert({sync_at_, owner_});
}

void Topic::on_sync_deadline(Now now) {
  shared_.syncs.erase({sync_at_, owner_});
  sync_scheduled_ = false;
  sync_if_due(now);
  const Instant next = sync_deadline();  // of what came after a barrier for other reasons
  if (next > now.mono && next != Instant::never()) schedule_sync();
}

// A rotation needs everything written to be durable, and the Topic's one script. Until then nothing more is appended.
void Topic::rotate_when_idle() {
  const storage::Committer::LogId log = disk_->active_log();
  if (!shared_.committer.idle(log) || !unanswered_.empty()) return shared_.committer.want_barrier(log);
  rotation_due_ = script_ != nullptr;
  if (!rotation_due_) start_rotation();
}

void Topic::note_tail() { shared_.metadata.set_active(*this, disk_ != nullptr ? disk_->active_messages() : 0); }

void Topic::start_rotation() {
  rotating_ = true;
  rotation_due_ = false;
  begin_script(&Topic::on_rotated);
  disk_->add_rotation(*script_);
  script_->start();
}

void Topic::on_rotated(void* self, storage::Script& script) {
  Topic& topic = *static_cast<Topic*>(self);
  topic.finished_ = std::move(topic.script_);
  topic.rotating_ = false;
  topic.mark();
  if (script.failed()) return topic.shared_.set_fault(script.fault());
  topic.disk_->finish_rotation();
  topic.note_tail();
  topic.group_requests_ = 0;
  topic.group_bytes_ = 0;
}

}  // namespace rq::queue
