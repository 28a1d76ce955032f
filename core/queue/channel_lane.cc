#include "core/queue/channel_lane.h"

#include <algorithm>
#include <cstring>

#include "core/base/probe.h"
#include "core/queue/dead_letters.h"
#include "core/queue/topic.h"
#include "core/storage/checkpoint.h"
#include "core/storage/names.h"
#include "core/storage/paths.h"

namespace rq::queue {

ChannelLane::ChannelLane(Shared& shared, Topic& topic, storage::ChannelImage image, bool in_memory)
    : shared_(shared),
      topic_(topic),
      serial_(shared.next_serial++),
      channel_(image, in_memory, shared.channel_settings, shared.tokens),
      ephemeral_(storage::ephemeral_name(image.name)) {
  commands_ = image.wal_commands;
  changes_ = image.wal_commands;
  kept_ = now_kept();
  if (!in_memory)
    wal_ = shared_.committer.add(shared_.paths.wal(topic.name(), channel_.name()), image.wal_bytes, storage::Committer::Role::wal,
                                 topic.owner(), serial_);
  shared_.lanes[serial_] = this;
}

ChannelLane::~ChannelLane() {
  if (wal_ != storage::Committer::kNoLog) shared_.committer.close(wal_);
  if (is_scheduled_) shared_.deadlines.erase({scheduled_, serial_});
  shared_.slot_turns.forget(*this);
  shared_.read_turns.forget(*this);
  shared_.lanes.erase(serial_);
}

void ChannelLane::Kept::raise(const Kept& other) {
  floor = std::max(floor, other.floor);
  requeues = std::max(requeues, other.requeues);
  timeouts = std::max(timeouts, other.timeouts);
}

ChannelLane::Kept ChannelLane::now_kept() const {
  return {channel_.ack_floor(), channel_.requeue_count(), channel_.timeout_count()};
}

bool ChannelLane::idle() const {
  if (script_ || !backlog_.empty() || checkpoint_pending_) return false;
  return wal_ == storage::Committer::kNoLog || (shared_.committer.idle(wal_) && waiting_.empty());
}

void ChannelLane::commit(const std::optional<storage::WalCommand>& command, const Done& done, Now now) {
  ++changes_;
  if (wal_ == storage::Committer::kNoLog) return report(done, now.mono, now);
  if (!command && backlog_.empty()) return answer_behind(done, now.mono, now);
  if (shared_.committer.barrier_started(wal_) == shared_.committer.appended(wal_)) group_ = 0;
  if (checkpoint_pending_ || !backlog_.empty() || group_ >= kGroupMax || commands_ >= kCommandsMax) {
    RQ_SOMETIMES(checkpoint_pending_, "channel: commands wait for a checkpoint");
    backlog_.push_back({command, done, now.mono, now_kept()});
    return;
  }
  if (io::planted(shared_.host, "credit_before_barrier") && done.waiter == WaiterId::none) {
    append(*command, {}, now.mono, now_kept());
    return report(done, now.mono, now);
  }
  shared_.metrics.channel_wait_us.add_us(0);
  append(*command, done, now.mono, now_kept());
}

void ChannelLane::append(const storage::WalCommand& command, const Done& done, Instant since, const Kept& kept) {
  std::byte* at = nullptr;
  Slice bytes = shared_.arena.take(storage::wal_frame_bytes(command), at);
  storage::encode_wal_frame(at, command);
  shared_.committer.append(wal_, std::move(bytes));
  waiting_.push_back({shared_.committer.appended(wal_), since, done, kept});
  ++group_;
  ++commands_;
  if (Consumer* consumer = finishing(done)) ++consumer->finishing;
  shared_.committer.want_barrier(wal_, may_wait(done) ? answered_ + kHoldNs : Instant{});
}

// Everything before it is appended: its answer comes when that is durable.
void ChannelLane::answer_behind(const Done& done, Instant since, Now now) {
  if (waiting_.empty()) return report(done, since, now);
  RQ_SOMETIMES(true, "channel: an answer without a command waits for those before it");
  waiting_.push_back({shared_.committer.appended(wal_), since, done, {}});
  shared_.committer.want_barrier(wal_);
}

Consumer* ChannelLane::finishing(const Done& done) const {
  return done.id == 0 ? nullptr : shared_.consumers.find(done.consumer);
}

// Right after a barrier the next one is held for as long as it holds nobody up (D-16): a FIN or REQ does so to its consumer only
// where RDY does, and not before half of what it has is on the way to the disk.
bool ChannelLane::may_wait(const Done& done) const {
  if (done.id == 0 || group_ >= kGroupMax) return false;
  const Consumer* consumer = finishing(done);
  return consumer == nullptr || consumer->outstanding < consumer->rdy || 2 * consumer->finishing < consumer->outstanding;
}

bool ChannelLane::checkpoint_due(Now now) const {
  if (script_ || removing) return false;
  return commands_ >= storage::kWalCheckpointCommands ||
         (commands_ > 0 && io::buggify(shared_.host, "channel: an early checkpoint", 16)) ||
         (channel_.counters_dirty() && now.mono >= last_checkpoint_ + kCounterCheckpointNs);
}

void ChannelLane::pump(Now now) {
  finished_.reset();
  if (shared_.fault || wal_ == storage::Committer::kNoLog) return;
  if (!checkpoint_pending_) {
    if (shared_.committer.barrier_started(wal_) == shared_.committer.appended(wal_)) group_ = 0;
    while (!backlog_.empty() && group_ < kGroupMax && commands_ < kCommandsMax) {
      const Held held = backlog_.front();
      backlog_.pop_front();
      shared_.metrics.channel_wait_us.add_us(static_cast<std::uint64_t>(std::max<std::int64_t>(0, now.mono - held.since)) /
                                             1'000);
      if (held.command)
        append(*held.command, held.done, held.since, held.kept);
      else
        answer_behind(held.done, held.since, now);
    }
  }
  if (checkpoint_due(now)) prepare_checkpoint(now);
  // Not beside a barrier: what came meanwhile would need another one before the file counts, with the Channel at a stand.
  if (script_ && script_->held() && !checkpoint_pending_ && !shared_.committer.in_barrier(wal_)) begin_checkpoint();
  if (checkpoint_pending_ && shared_.committer.idle(wal_) && waiting_.empty()) script_->release(2);
}

void ChannelLane::prepare_checkpoint(Now now) {
  RQ_SOMETIMES(true, "channel: a checkpoint is due");
  last_checkpoint_ = now.mono;
  const std::string wal = shared_.committer.path(wal_);
  const std::string path = shared_.paths.checkpoint(topic_.name(), channel_.name());
  script_ = std::make_unique<storage::Script>(shared_.host, this, &ChannelLane::on_checkpoint, &shared_.retries);
  if (io::planted(shared_.host, "truncate_wal_before_checkpoint")) script_->truncate(wal, 0);
  script_->write_new_later(storage::temporary_of(path));
  // The temporary file is written beside the last barrier of the WAL, and becomes the checkpoint only after it (I2).
  script_->hold();
  script_->rename(storage::temporary_of(path), path);
  script_->sync_dir(storage::parent_of(path));
  script_->truncate(wal, 0);  // its name was durable before and stays
  script_->when_held(&ChannelLane::on_held);
  script_->start();
}

void ChannelLane::on_held(void* self, storage::Script&) {
  ChannelLane& lane = *static_cast<ChannelLane*>(self);
  lane.topic_.mark_dispatch(lane);
}

void ChannelLane::begin_checkpoint() {
  // Everything applied so far is appended, or waits in the backlog and will be appended again over the new checkpoint, which
  // is idempotent (I-21).
  storage::ChannelImage image = channel_.image();
  image_changes_ = changes_;
  checkpoint_kept_ = {image.ack_floor, image.requeue_count, image.timeout_count};
  checkpoint_pending_ = true;
  if (!shared_.committer.idle(wal_)) shared_.committer.want_barrier(wal_);
  script_->supply(storage::encode_checkpoint(image));
  script_->release(1);
}

void ChannelLane::on_checkpoint(void* self, storage::Script& script) {
  ChannelLane& lane = *static_cast<ChannelLane*>(self);
  if (script.failed()) {
    lane.shared_.set_fault(script.fault());
  } else {
    lane.shared_.committer.reset(lane.wal_);
    lane.commands_ = 0;
    lane.group_ = 0;
    lane.channel_.counters_stored(lane.checkpoint_kept_.timeouts);
    lane.checkpointed_changes_ = lane.image_changes_;
    lane.kept_.raise(lane.checkpoint_kept_);
  }
  lane.checkpoint_pending_ = false;
  lane.finished_ = std::move(lane.script_);
  lane.topic_.mark_dispatch(lane);  // what waited behind the checkpoint goes on
}

void ChannelLane::on_durable(Now now) {
  const std::uint64_t durable = shared_.committer.durable(wal_);
  std::uint32_t count = 0;
  while (!waiting_.empty() && waiting_.front().end_offset <= durable) {
    const Waiting waiting = waiting_.front();
    waiting_.pop_front();
    kept_.raise(waiting.kept);
    ++count;
    if (Consumer* consumer = finishing(waiting.done)) --consumer->finishing;
    report(waiting.done, waiting.since, now);
  }
  if (count > 0) {
    answered_ = now.mono;
    ++shared_.metrics.channel_commits;
    shared_.metrics.channel_requests += count;
    shared_.metrics.channel_group_max = std::max<std::uint64_t>(shared_.metrics.channel_group_max, count);
  }
  topic_.mark_dispatch(*this);
}

void ChannelLane::report(const Done& done, Instant since, Now now) {
  if (done.waiter != WaiterId::none) shared_.events.admin.push_back({done.waiter, {}});
  if (done.dead_letter) shared_.dead_letters->on_finished();
  if (done.id == 0) return;
  Consumer* consumer = shared_.consumers.find(done.consumer);
  if (consumer == nullptr) return;
  shared_.give_back_slot(*consumer);
  topic_.mark_dispatch(*this);
  if (done.silent) return;
  shared_.metrics.channel_ack_us.add_us(static_cast<std::uint64_t>(std::max<std::int64_t>(0, now.mono - since)) / 1'000);
  ++(done.requeue ? shared_.metrics.requeued_messages : shared_.metrics.finished_messages);
  shared_.events.commands.push_back({done.consumer, done.id, done.requeue, {}});
}

void ChannelLane::fail_waiting(const Outcome& outcome) {
  const auto fail = [&](const Done& done) {
    if (done.waiter != WaiterId::none) shared_.events.admin.push_back({done.waiter, outcome});
    if (done.id == 0) return;
    Consumer* consumer = shared_.consumers.find(done.consumer);
    if (consumer == nullptr) return;
    shared_.give_back_slot(*consumer);
    if (!done.silent) shared_.events.commands.push_back({done.consumer, done.id, done.requeue, outcome});
  };
  for (const Waiting& waiting : waiting_) {
    if (Consumer* consumer = finishing(waiting.done)) --consumer->finishing;
    fail(waiting.done);
  }
  for (const Held& held : backlog_) fail(held.done);
  waiting_.clear();
  backlog_.clear();
}

void ChannelLane::add_checkpoint(storage::Script& script) {
  if (in_memory() || (!changed() && !channel_.counters_dirty())) return;
  RQ_CHECK(idle());
  const std::string wal = shared_.committer.path(wal_);
  storage::ChannelImage image = channel_.image();
  if (io::planted(shared_.host, "forget_attempts_at_stop")) image.attempts.clear();
  script.replace_file(shared_.paths.checkpoint(topic_.name(), channel_.name()), storage::encode_checkpoint(image));
  script.truncate(wal, 0);
  script.sync_dir(storage::parent_of(wal));
}

bool ChannelLane::can_go_on() const {
  return !backlog_.empty() && !checkpoint_pending_ && commands_ < kCommandsMax &&
         shared_.committer.barrier_started(wal_) == shared_.committer.appended(wal_);
}

void ChannelLane::unschedule() {
  if (is_scheduled_) shared_.deadlines.erase({scheduled_, serial_});
  is_scheduled_ = false;
}

void ChannelLane::reschedule(Now now) {
  Instant next = removing ? Instant::never() : channel_.next_deadline(now);
  if (!removing && !in_memory() && !script_ && !shared_.committer.in_barrier(wal_) && channel_.counters_dirty())
    next = std::min(next, last_checkpoint_ + kCounterCheckpointNs);
  const bool wanted = next != Instant::never();
  if (is_scheduled_ && wanted && scheduled_ == next.ns) return;
  if (is_scheduled_) shared_.deadlines.erase({scheduled_, serial_});
  is_scheduled_ = wanted;
  scheduled_ = next.ns;
  if (wanted) shared_.deadlines.insert({next.ns, serial_});
}

}  // namespace rq::queue
