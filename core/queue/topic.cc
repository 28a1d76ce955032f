#include "core/queue/topic.h"

#include <algorithm>
#include <utility>

#include "core/base/probe.h"
#include "core/queue/dead_letters.h"
#include "core/queue/fetch.h"
#include "core/storage/names.h"

namespace rq::queue {

Topic::Topic(Shared& shared, storage::TopicImage image) : shared_(shared), owner_(shared.next_serial++), name_(image.name) {
  manifest_.name = name_;
  manifest_.paused = image.paused;
  manifest_.next_position = image.next_position;
  manifest_.unrouted_from = image.unrouted_from;
  manifest_.ttl_discard = image.ttl_discard;
  manifest_.message_ttl_seconds = image.message_ttl_seconds;
  manifest_.expired_through = image.expired_through;
  manifest_.ttl_discarded_messages = image.ttl_discarded_messages;
  stored_next_position_ = image.next_position;
  paused_at_ = image.next_position - 1;
  std::vector<storage::ChannelImage> channels = std::move(image.channels);
  use_disk(image);
  for (storage::ChannelImage& channel : channels) {
    std::string channel_name = channel.name;
    lanes_.emplace(std::move(channel_name), std::make_unique<ChannelLane>(shared_, *this, std::move(channel), false));
  }
  note_tail();
  schedule_discard(log_->oldest_timestamp_after(manifest_.expired_through));
  mark_all_lanes();
}

Topic::Topic(Shared& shared, std::string name)
    : shared_(shared), owner_(shared.next_serial++), name_(std::move(name)), phase_(Phase::creating) {
  manifest_.name = name_;
  manifest_.unrouted_from = 1;
  if (storage::ephemeral_name(name_)) {
    start_in_memory();
  } else {
    start_creation();
  }
}

Topic::~Topic() {
  shared_.expiries.erase({discard_at_, owner_});
  shared_.dead_letters->topic_gone(*this);
  std::erase(shared_.dirty, this);
  if (waits_for_ids) std::erase(shared_.waiting_for_ids, this);
  if (sync_scheduled_) shared_.syncs.erase({sync_at_, owner_});
  shared_.metadata.leave(*this);
  shared_.metadata.set_active(*this, 0);
}

void Topic::begin_script(void (*done)(void*, storage::Script&)) {
  RQ_CHECK(!script_);
  script_ = std::make_unique<storage::Script>(shared_.host, this, done, &shared_.retries);
}

void Topic::start_creation() {
  begin_script(&Topic::on_created);
  const std::string segments = shared_.paths.segments(name_);
  script_->make_dir(shared_.paths.topic(name_));
  script_->make_dir(segments);
  script_->make_dir(shared_.paths.channels(name_));
  // A directory without manifest holds remains of a deletion at most (page 20 section 1.3): nothing of it may come back.
  script_->remove_files(segments);
  script_->remove_files(shared_.paths.channels(name_));
  script_->sync_dir(shared_.paths.channels(name_));
  script_->sync_dir(shared_.paths.topic(name_));
  script_->write_new(shared_.paths.segment(name_, 1), {});
  script_->sync_dir(segments);
  script_->replace_file(shared_.paths.manifest(name_), manifest_with(false));
  script_->sync_dir(shared_.paths.topics());
  script_->start();
}

void Topic::on_created(void* self, storage::Script& script) {
  Topic& topic = *static_cast<Topic*>(self);
  topic.finished_ = std::move(topic.script_);
  topic.mark();
  if (script.failed()) return topic.shared_.set_fault(script.fault());
  topic.phase_ = Phase::live;
  storage::TopicImage image;
  image.name = topic.name_;
  image.active.info.base = 1;
  topic.use_disk(image);
  topic.shared_.meta->bump_revision();
}

void Topic::use_disk(storage::TopicImage& image) {
  auto log = std::make_unique<storage::TopicLog>(shared_.logs, owner_, image, this, &Topic::on_page);
  disk_ = log.get();
  log_ = std::move(log);
  disk_->set_visible_when_written(shared_.options.ack_mode == AckMode::nsq_relaxed);
  if (!shared_.durable_mode()) disk_->set_reports_writes();
}

void Topic::on_page(void* self) { static_cast<Topic*>(self)->mark_all_lanes(); }

void Topic::mark() {
  if (marked) return;
  marked = true;
  shared_.dirty.push_back(this);
}

ChannelLane* Topic::lane(std::string_view channel) {
  const auto found = lanes_.find(channel);
  return found == lanes_.end() ? nullptr : found->second.get();
}

std::size_t Topic::durable_lanes() const {
  if (memory_ != nullptr) return lanes_.size();
  return static_cast<std::size_t>(
      std::count_if(lanes_.begin(), lanes_.end(), [](const auto& entry) { return !entry.second->ephemeral(); }));
}

std::string Topic::manifest_with(bool deleted) const {
  storage::Manifest manifest = manifest_;
  manifest.deleted = deleted;
  if (log_) manifest.next_position = log_->next_position();  // rule 0.1-9
  return storage::encode_manifest(manifest);
}

Position Topic::routed_through() const {
  if (manifest_.unrouted_from) return *manifest_.unrouted_from - 1;
  return paused() ? std::max(paused_at_, manifest_.expired_through) : log_->deliverable();
}

std::uint64_t Topic::unrouted_depth() const {
  if (!log_) return 0;
  if (memory_ != nullptr && manifest_.unrouted_from) return memory_->stored_messages();
  const Position deliverable = log_->deliverable(), after = routed_through();
  if (after >= deliverable) return 0;
  return deliverable - after - log_->absent_count(after + 1, deliverable);
}

void Topic::advance(Now now) {
  finished_.reset();
  more_ = false;
  marked = false;
  if (shared_.fault) return;
  if (shared_.logs.fault) return shared_.set_fault(*shared_.logs.fault);
  for (std::size_t i = 0; i < fetches_.size();) {
    if (!fetches_[i]->complete()) {
      ++i;
      continue;
    }
    const std::unique_ptr<Fetch> fetch = std::move(fetches_[i]);
    fetches_.erase(fetches_.begin() + static_cast<std::ptrdiff_t>(i));
    fetch_done(*fetch, now);
  }
  pump_eviction(now);
  pump_discard(now);
  pump_operations(now);
  if (phase_ == Phase::gone) return;
  pump_discard(now);
  pump_publishes(now);
  for (ChannelLane* lane : std::exchange(held_, {})) {  // the end of a checkpoint or a barrier marks only the Topic
    if (!std::exchange(lane->dispatch_marked, true)) dispatch_.push_back(lane);
  }
  std::vector<ChannelLane*> lanes;
  lanes.swap(dispatch_);
  for (ChannelLane* lane : lanes) {
    lane->dispatch_marked = false;
    lane->pump(now);
    dispatch(*lane, now);
    if (lane->wants_pump()) held_.push_back(lane);
  }
  more_ = more_ || !held_.empty();
}

void Topic::remove_lane(std::string_view channel, std::string_view reason) {
  const auto found = lanes_.find(channel);
  RQ_CHECK(found != lanes_.end());
  ChannelLane& lane = *found->second;
  lane.removing = true;
  close_consumers(lane, reason);
  drop_fetches(lane);
  end_opening();
  if (memory_ != nullptr) let_go(lane, log_->written());
  std::erase(dispatch_, &lane);
  std::erase(held_, &lane);
  lanes_.erase(found);
  if (phase_ == Phase::live) retire_if_unused();
}

// Subscribers are told to close; what they held dies with the Channel.
void Topic::close_consumers(ChannelLane& lane, std::string_view frame) {
  for (ConsumerId id : lane.consumers) {
    Consumer* consumer = shared_.consumers.find(id);
    RQ_CHECK(consumer != nullptr);
    for (const auto& fetch : fetches_)
      if (fetch->consumer == id) {
        fetch->consumer = ConsumerId::none;
        fetch->give_up();
      }
    shared_.give_back_bytes(*consumer, consumer->held_bytes);
    lane.channel().release_all(id);
    shared_.slots_in_use -= consumer->outstanding;
    shared_.events.closed.push_back({id, std::string(frame)});
    shared_.consumers.remove(id);
  }
  lane.consumers.clear();
}

void Topic::fail_all(const Outcome& outcome) {
  for (const Publish& request : queue_)
    if (!request.dead_letter) shared_.events.published.push_back({request.waiter, outcome});
  queue_.clear();
  for (const Unanswered& entry : unanswered_)
    if (entry.waiter != WaiterId::none) shared_.events.published.push_back({entry.waiter, outcome});
  unanswered_.clear();
  for (const Operation& operation : operations_) {
    if (operation.waiter == WaiterId::none) continue;
    if (operation.subscribe) {
      shared_.events.subscribed.push_back({operation.waiter, outcome, ConsumerId::none});
    } else {
      shared_.events.admin.push_back({operation.waiter, outcome});
    }
  }
  operations_.clear();
  for (const auto& [name, lane] : lanes_) lane->fail_waiting(outcome);
}

bool Topic::idle_on_disk() const {
  if (script_ || exclusive() || !fetches_.empty()) return false;
  if (disk_ != nullptr && (disk_->pages_loading() || !shared_.committer.idle(disk_->active_log()))) return false;
  return std::all_of(lanes_.begin(), lanes_.end(), [](const auto& entry) { return entry.second->idle(); });
}

bool Topic::quiet() const { return queue_.empty() && unanswered_.empty() && operations_.empty() && idle_on_disk(); }

void Topic::add_final_flush(storage::Script& script) {
  if (phase_ != Phase::live || disk_ == nullptr) return;
  for (const auto& [name, lane] : lanes_) lane->add_checkpoint(script);
  if (log_->next_position() != stored_next_position_) script.replace_file(shared_.paths.manifest(name_), manifest_with(false));
}

void Topic::digest(Hasher& hasher) const {
  hasher.add(name_);
  hasher.add(static_cast<std::uint64_t>(manifest_.paused));
  hasher.add(manifest_.unrouted_from.value_or(0));
  if (log_) {
    hasher.add(log_->next_position());
    hasher.add(log_->stored_messages());
  }
  hasher.add(opening_held_.size());
  for (const auto& [name, lane] : lanes_) lane->channel().digest(hasher);
}

void Topic::check_invariants() const {
  if (!log_) return;
  RQ_CHECK(log_->durable_position() <= log_->deliverable() && log_->deliverable() <= log_->written());  // I-13
  if (phase_ == Phase::live && !script_ && !operation_running_)
    RQ_CHECK(manifest_.unrouted_from.has_value() == (durable_lanes() == 0));  // I3
  RQ_CHECK(opening_ || opening_held_.empty());                                // I6
  RQ_CHECK(!opening_ || !manifest_.unrouted_from || *manifest_.unrouted_from == 1);
  for (const auto& [name, lane] : lanes_) lane->channel().check_invariants(*log_);
}

}  // namespace rq::queue
