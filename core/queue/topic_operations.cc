// Structural operations on a Topic, one after the other: create, delete, empty, pause, and the Channel side of SUB (page 30
// sections 1.2, 1.3, 3.9, 5 and 11).
#include <algorithm>

#include "core/base/probe.h"
#include "core/queue/fetch.h"
#include "core/queue/topic.h"
#include "core/storage/checkpoint.h"
#include "core/storage/names.h"

namespace rq::queue {

void Topic::operate(Operation operation) {
  operations_.push_back(std::move(operation));
  mark();
}

void Topic::pump_operations(Now now) {
  while (!operations_.empty() && !script_ && !discard_first() && phase_ != Phase::creating && phase_ != Phase::gone) {
    if (rotation_due_ && phase_ == Phase::live && !operation_running_) return;
    if (!run_operation(operations_.front(), now)) return;
    operations_.pop_front();
  }
  if (open_wanted_ && operations_.empty()) end_opening();
}

void Topic::answer(Operation& operation, Code code, std::string detail) {
  if (operation.waiter == WaiterId::none) return;
  if (operation.subscribe) {
    shared_.events.subscribed.push_back({operation.waiter, {code, std::move(detail)}, ConsumerId::none});
  } else {
    shared_.events.admin.push_back({operation.waiter, {code, std::move(detail)}});
  }
}

void Topic::answer_early(Operation& operation) {
  answer(operation, Code::ok);
  operation.waiter = WaiterId::none;
}

bool Topic::run_operation(Operation& operation, Now now) {
  if (refuse_operation(operation, now)) return true;
  switch (operation.action) {
    case Admin::create_topic:
      answer(operation, Code::ok);
      return true;
    case Admin::delete_topic:
      return delete_topic(operation, now);
    case Admin::empty_topic:
      return empty_topic(operation);
    case Admin::pause_topic:
      return set_topic_paused(operation, true);
    case Admin::unpause_topic:
      return set_topic_paused(operation, false);
    case Admin::configure_topic:
      return configure(operation, now);
    case Admin::create_channel:
      return create_channel(operation, now);
    case Admin::delete_channel:
      return delete_channel(operation, now);
    case Admin::empty_channel:
      return empty_channel(operation, now);
    case Admin::pause_channel:
      return pause_channel(operation, true, now);
    case Admin::unpause_channel:
      return pause_channel(operation, false, now);
  }
  return true;
}

// The script of the operation at the front has ended.
void Topic::on_operated(void* self, storage::Script& script) {
  Topic& topic = *static_cast<Topic*>(self);
  topic.finished_ = std::move(topic.script_);
  topic.mark();
  if (script.failed()) topic.shared_.set_fault(script.fault());
}

storage::Position Topic::channel_start(bool ephemeral, Now now) const {
  Position start = log_->written();
  if (memory_ != nullptr) return opening_ ? 0 : manifest_.unrouted_from ? *manifest_.unrouted_from - 1 : start;
  if (!ephemeral) {
    if (manifest_.unrouted_from) {
      start = *manifest_.unrouted_from - 1;
    } else if (!io::planted(shared_.host, "late_channel_starts_empty")) {
      start = bootstrap_start(now) - 1;
    }
  }
  return std::max(start, manifest_.expired_through);
}

bool Topic::create_channel(Operation& operation, Now now) {
  ChannelLane* existing = lane(operation.channel);
  if (existing != nullptr) {
    if (operation_running_) {  // just created: its files are durable
      operation_running_ = false;
      manifest_.unrouted_from.reset();
      stored_next_position_ = std::max(stored_next_position_, manifest_.next_position);
      existing->removing = false;
      shared_.meta->bump_revision();
      mark_dispatch(*existing);
    }
    if (operation.subscribe) {
      attach(operation, *existing);
    } else {
      answer(operation, Code::ok);
    }
    return true;
  }
  if (lanes_.size() >= storage::kChannelsMax) {
    answer(operation, Code::channel_limit, "the Topic has 1024 Channels");
    return true;
  }
  const bool ephemeral = storage::ephemeral_name(operation.channel);
  const bool in_memory = ephemeral || memory_ != nullptr;
  storage::ChannelImage image;
  image.name = operation.channel;
  image.barrier = image.ack_floor = image.message_count_origin = channel_start(ephemeral, now);
  if (!in_memory) {
    // WAL first, empty and durable; only the checkpoint makes the Channel exist (page 20 section 6.3).
    begin_script(&Topic::on_operated);
    const std::string wal = shared_.paths.wal(name_, operation.channel);
    script_->write_new(wal, {});
    script_->sync_dir(storage::parent_of(wal));
    script_->replace_file(shared_.paths.checkpoint(name_, operation.channel), storage::encode_checkpoint(image));
    if (manifest_.unrouted_from) {
      storage::Manifest manifest = manifest_;
      manifest.unrouted_from.reset();
      manifest.next_position = manifest_.next_position = log_->next_position();
      script_->replace_file(shared_.paths.manifest(name_), storage::encode_manifest(manifest));
    }
  }
  auto created = std::make_unique<ChannelLane>(shared_, *this, std::move(image), in_memory);
  ChannelLane& lane_ref = *created;
  lanes_.emplace(operation.channel, std::move(created));
  readers_look_ = {};
  operation_running_ = !in_memory;
  if (in_memory) {
    if (memory_ != nullptr) hold_all(lane_ref);
    shared_.meta->bump_revision();
    return create_channel(operation, now);
  }
  lane_ref.removing = true;  // not usable before it is durable
  script_->start();
  return false;
}

void Topic::attach(Operation& operation, ChannelLane& lane_ref) {
  const std::uint64_t limit = shared_.options.max_channel_consumers;
  if (limit > 0 && lane_ref.consumers.size() >= limit) return answer(operation, Code::consumer_limit, std::to_string(limit));
  Consumer& consumer = shared_.consumers.add();
  consumer.topic = this;
  consumer.lane = &lane_ref;
  consumer.options = operation.options;
  lane_ref.consumers.push_back(consumer.id);
  shared_.events.subscribed.push_back({operation.waiter, {}, consumer.id});
}

bool Topic::delete_channel(Operation& operation, Now now) {
  ChannelLane* found = lane(operation.channel);
  if (found == nullptr) {
    answer(operation, Code::channel_not_found);
    return true;
  }
  if (operation_running_) {  // its files are gone
    operation_running_ = false;
    remove_lane(operation.channel, {});
    shared_.meta->bump_revision();
    answer(operation, Code::ok);
    return true;
  }
  found->removing = true;
  close_consumers(*found, {});
  if (found->in_memory()) {
    remove_lane(operation.channel, {});
    shared_.meta->bump_revision();
    answer(operation, Code::ok);
    return true;
  }
  if (!found->idle()) {
    found->pump(now);
    if (!found->idle()) return false;  // its last commands first; their barrier marks the Topic
  }
  begin_script(&Topic::on_operated);
  if (durable_lanes() == 1) {
    manifest_.unrouted_from = log_->next_position();
    store_manifest(manifest_with(false));
    stored_next_position_ = log_->next_position();
  }
  // A checkpoint before the WAL goes, so that a crash in between brings the Channel back exactly as it was (O-16).
  found->add_checkpoint(*script_);
  const std::string wal = shared_.paths.wal(name_, operation.channel);
  script_->unlink(wal);
  script_->unlink(shared_.paths.checkpoint(name_, operation.channel));
  script_->sync_dir(storage::parent_of(wal));
  operation_running_ = true;
  script_->start();
  return false;
}

bool Topic::delete_topic(Operation& operation, Now now) {
  if (operation_running_) {
    operation_running_ = false;
    phase_ = Phase::gone;
    dispatch_.clear();
    held_.clear();
    lanes_.clear();
    log_.reset();
    disk_ = nullptr;
    memory_ = nullptr;
    note_tail();
    shared_.meta->bump_revision();
    answer(operation, Code::ok);
    return true;
  }
  if (operation.if_unused && !lanes_.empty()) return true;
  if (phase_ == Phase::live) {
    if (operation.if_unused && memory_ != nullptr) {
      pump_publishes(now);  // they go with the Topic, as those before them
      if (!queue_.empty()) return false;
    }
    phase_ = Phase::deleting;
    end_opening();
    for (const Publish& request : queue_) refuse_publish(request, {Code::exiting, "exiting"});
    queue_.clear();
    shared_.metadata.leave(*this);
    for (const auto& [name, entry] : lanes_) {
      entry->removing = true;
      close_consumers(*entry, {});
      drop_fetches(*entry);
      mark_dispatch(*entry);
    }
  }
  if (!unanswered_.empty()) shared_.committer.want_barrier(disk_->active_log());
  if (!idle_on_disk() || (disk_ != nullptr && disk_->leased() != nullptr)) return false;
  RQ_SOMETIMES(true, "topic: deleted");
  if (memory_ != nullptr) {
    operation_running_ = true;
    return delete_topic(operation, now);
  }
  begin_script(&Topic::on_operated);
  const std::string segments = shared_.paths.segments(name_);
  const std::string channels = shared_.paths.channels(name_);
  const std::string manifest = shared_.paths.manifest(name_);
  script_->replace_file(manifest, manifest_with(true));
  script_->remove_files(segments);
  script_->remove_files(channels);
  script_->remove_dir(segments);
  script_->remove_dir(channels);
  script_->sync_dir(shared_.paths.topic(name_));
  script_->remove_files(shared_.paths.topic(name_));  // the manifest, and what --salvage has set aside beside it
  script_->remove_dir(shared_.paths.topic(name_));
  script_->sync_dir(shared_.paths.topics());
  operation_running_ = true;
  script_->start();
  return false;
}

bool Topic::set_topic_paused(Operation& operation, bool paused) {
  if (operation_running_) {
    operation_running_ = false;
    if (!paused) mark_all_lanes();
    answer(operation, Code::ok);
    return true;
  }
  if (manifest_.paused == paused) {
    answer(operation, Code::ok);
    return true;
  }
  manifest_.paused = paused;
  paused_at_ = log_->written();
  begin_script(&Topic::on_operated);
  store_manifest(manifest_with(false));
  stored_next_position_ = log_->next_position();
  operation_running_ = true;
  script_->start();
  return false;
}

bool Topic::empty_topic(Operation& operation) {
  if (operation_running_ || !manifest_.unrouted_from) {  // D-23: with a durable Channel nothing changes
    operation_running_ = false;
    answer(operation, Code::ok);
    return true;
  }
  manifest_.unrouted_from = log_->next_position();
  if (memory_ != nullptr) {
    end_opening();
    memory_->clear();
  }
  begin_script(&Topic::on_operated);
  store_manifest(manifest_with(false));
  stored_next_position_ = log_->next_position();
  operation_running_ = true;
  script_->start();
  return false;
}

bool Topic::empty_channel(Operation& operation, Now now) {
  ChannelLane* found = lane(operation.channel);
  if (found == nullptr) {
    answer(operation, Code::channel_not_found);
    return true;
  }
  std::vector<Channel::Released> released;
  if (memory_ != nullptr) let_go(*found, log_->written());
  const std::optional<storage::WalCommand> command =
      found->channel().empty_through(log_->written() + (io::planted(shared_.host, "empty_takes_the_next") ? 1 : 0), released);
  for (const Channel::Released& entry : released) {
    Consumer* consumer = shared_.consumers.find(entry.owner);
    if (consumer == nullptr) continue;
    shared_.give_back_slot(*consumer);
    shared_.events.timed_out.push_back({entry.owner, entry.id});
  }
  if (io::planted(shared_.host, "answer_empty_early")) answer_early(operation);
  found->commit(command, {.waiter = operation.waiter}, now);
  mark_dispatch(*found);
  return true;
}

bool Topic::pause_channel(Operation& operation, bool paused, Now now) {
  ChannelLane* found = lane(operation.channel);
  if (found == nullptr) {
    answer(operation, Code::channel_not_found);
    return true;
  }
  const std::optional<storage::WalCommand> command = found->channel().set_paused(paused);
  if (io::planted(shared_.host, "answer_pause_early")) answer_early(operation);
  found->commit(command, {.waiter = operation.waiter}, now);
  mark_dispatch(*found);
  return true;
}

}  // namespace rq::queue
