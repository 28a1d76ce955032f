// The part of the opener that handles Topics: eight at a time are read, then repaired.
#include <algorithm>

#include "core/base/probe.h"
#include "core/storage/opener_impl.h"
#include "core/storage/recovery.h"

namespace rq::storage {

void Opener::Impl::take_topic_list() {
  if (op_.error && op_.error.code != io::Errc::not_found) {
    add_fault({paths_.topics(), std::nullopt, describe(op_.error)});
    return go_on(Phase::topics);
  }
  for (const io::DirEntry& entry : entries_)
    if (entry.kind == io::FileKind::directory) topic_dirs_.push_back(paths_.topics() + "/" + entry.name);
  entries_ = {};
  topics_total_ = topic_dirs_.size();
  plans_.resize(topic_dirs_.size());
  readable_.resize(topic_dirs_.size());
  enter(Phase::topics);
}

void Opener::Impl::make_lanes(std::size_t count) {
  next_ = 0;
  lanes_.clear();
  for (std::size_t i = 0; i < count; ++i) {
    auto lane = std::make_unique<Lane>();
    lane->impl = this;
    lane->op.tag = i;
    io::bind<&Impl::on_lane>(lane->op, this);
    lanes_.push_back(std::move(lane));
  }
}

// Gives every idle lane its next piece of work; when there is none and all are idle, the phase is over.
void Opener::Impl::pump() {
  for (const auto& lane : lanes_)
    while (!lane->busy && give_work(*lane)) {
    }
  if (std::any_of(lanes_.begin(), lanes_.end(), [](const auto& lane) { return lane->busy; })) return;
  switch (phase_) {
    case Phase::topics:
      return check_topic_count();
    case Phase::tails:
      return go_on(Phase::topic_repairs);
    case Phase::topic_repairs:
      return go_on(Phase::finish);
    default:
      RQ_CHECK(false);
  }
}

// False when there is nothing left to give.
bool Opener::Impl::give_work(Lane& lane) {
  if (!faults_.empty() && !options_.read_only) return false;
  switch (phase_) {
    case Phase::topics:
      if (next_ == topic_dirs_.size()) return false;
      lane.plan = next_++;
      lane.recovery = std::make_unique<TopicRecovery>(topic_dirs_[lane.plan]);
      lane.busy = true;
      RQ_CHECK(!lane.recovery->poll({host_.disk, lane.op}));
      return true;
    case Phase::tails:
      if (next_ == tails_.size() || lane.retired) return false;
      lane.tail = std::make_unique<TailSync>(tails_, next_);
      lane.busy = true;
      RQ_CHECK(!lane.tail->poll({host_.disk, lane.op}));
      return true;
    case Phase::topic_repairs:
      for (; next_ < plans_.size(); ++next_)
        if (plans_[next_].kind == TopicPlan::Kind::open && (!clean_ || needs_repair(plans_[next_]))) break;
      if (next_ == plans_.size()) return false;
      lane.repair = std::make_unique<TopicRepair>(host_, plans_[next_++], !clean_, &lane, &Impl::on_repair);
      lane.busy = true;
      lane.repair->start();
      return true;
    default:
      return false;
  }
}

void Opener::Impl::on_lane(io::Op& op) {
  Lane& lane = *lanes_[op.tag];
  if (lane.recovery) {
    if (!lane.recovery->poll({host_.disk, op})) return;
    end_recovery(lane);
  } else {
    if (!lane.tail->poll({host_.disk, op})) return;
    if (lane.tail->fault()) add_fault(*lane.tail->fault());
    if (lane.tail->starved()) retire(lane);
    lane.tail.reset();
  }
  lane.busy = false;
  pump();
}

// The lanes that hold the file handles go on with its share.
void Opener::Impl::retire(Lane& lane) {
  lane.retired = true;
  const auto others = std::count_if(lanes_.begin(), lanes_.end(), [](const auto& each) { return each->busy; }) - 1;
  if (others == 0) add_fault(*lane.tail->starved());
}

void Opener::Impl::end_recovery(Lane& lane) {
  if (lane.recovery->fault()) {
    add_fault(*lane.recovery->fault());
  } else {
    plans_[lane.plan] = std::move(lane.recovery->plan());
    readable_[lane.plan] = true;
  }
  lane.recovery.reset();
  ++topics_done_;
}

void Opener::Impl::on_repair(void* self) {
  Lane& lane = *static_cast<Lane*>(self);
  Impl& impl = *lane.impl;
  if (lane.repair->fault()) impl.add_fault(*lane.repair->fault());
  lane.busy = false;  // the repair goes away with the next one, not inside its own callback
  impl.pump();
}

void Opener::Impl::check_topic_count() {
  std::uint64_t topics = 0;
  for (std::size_t i = 0; i < plans_.size(); ++i) {
    if (!readable_[i]) plans_[i].kind = TopicPlan::Kind::ignore;
    if (plans_[i].kind == TopicPlan::Kind::open) ++topics;
    if (plans_[i].kind == TopicPlan::Kind::ignore) continue;
    for (const RepairLine& line : repair_lines(plans_[i])) {
      std::string path = paths_.relative(plans_[i].dir);
      if (!line.what.empty()) path += "/" + line.what;
      repairs_.push_back(path + ": " + line.why);
    }
  }
  if (topics > options_.max_topics && !options_.read_only)
    add_fault({paths_.topics(), std::nullopt,
               std::to_string(topics) + " Topics, configured are at most " + std::to_string(options_.max_topics)});
  check_ids();
  if (options_.read_only || !faults_.empty()) return go_on(Phase::done);
  RQ_SOMETIMES(clean_, "opener: the last stop was clean");
  RQ_SOMETIMES(!clean_ && topics > 0, "opener: the last stop was not clean");
  for (const std::string& line : repairs_) host_.log.log(io::Level::info, "storage_repair", line);
  enter(Phase::root_files);
}

// Ids rise within a Topic: behind those of a higher node, which a lost broker.meta or a copied Topic leaves, no id of this one
// can follow, and the next start would refuse what was written.
void Opener::Impl::check_ids() {
  if (meta_missing_ && options_.read_only) return;
  for (const TopicPlan& plan : plans_) {
    if (plan.kind != TopicPlan::Kind::open) continue;
    const SegmentInfo& active = plan.image.active.info;
    const bool in_active = active.message_count > 0;
    if (!in_active && plan.image.sealed.empty()) continue;
    const SegmentInfo& last = in_active ? active : plan.image.sealed.back();
    if (last.last_id >> 48 > meta_.node_id)
      add_fault({plan.dir + "/segments/" + segment_file_name(last.base), std::nullopt,
                 "holds messages of node " + std::to_string(last.last_id >> 48) + ", this is node " +
                     std::to_string(meta_.node_id) + ": its ids cannot follow"});
  }
}

void Opener::Impl::next_removal() {
  for (; removal_plan_ < plans_.size(); ++removal_plan_) {
    const TopicPlan& plan = plans_[removal_plan_];
    if (plan.kind != TopicPlan::Kind::remove) continue;
    if (!std::exchange(removing_, true)) removal_.begin(plan.dir);
    if (!removal_.poll(call())) return;
    removing_ = false;
    if (removal_.error()) return refuse(removal_.error_path(), std::nullopt, describe(removal_.error()));
  }
  enter(Phase::tails);
}

void Opener::Impl::make_tails() {
  tails_.clear();
  for (const TopicPlan& plan : plans_) {
    if (plan.kind != TopicPlan::Kind::open) continue;
    const bool cut = plan.cut_active.has_value();
    if (plan.tail_base != 0 && (cut || (!clean_ && plan.tail_bytes > 0))) {
      LogTail tail{plan.dir + "/segments/" + segment_file_name(plan.tail_base), plan.tail_bytes, cut, plan.tail_bytes, {}};
      const std::uint64_t last_bytes = plan.tail_bytes - std::min(plan.tail_bytes, kTailBytes);
      if (!clean_ && !io::planted(host_, "skip_tail_rewrite")) tail.rewrite_from = std::min(last_bytes, plan.tail_records_offset);
      tails_.push_back(std::move(tail));
    }
    for (const TopicPlan::ChannelRepair& channel : plan.channels) {
      if (channel.remove || channel.create_wal) continue;
      if (!channel.cut_wal && !channel.evict && (clean_ || channel.wal_bytes == 0)) continue;
      LogTail tail{plan.dir + "/channels/" + channel.stem + ".wal",
                   channel.wal_bytes,
                   channel.cut_wal,
                   clean_ ? channel.wal_bytes : 0,
                   {}};
      if (channel.evict) tail.added = evict_frame(plan.image.expired_through);
      tails_.push_back(std::move(tail));
    }
  }
}

// Directories after an unclean stop, then broker.meta, which makes the opening count.
void Opener::Impl::finish_directory() {
  script_ = std::make_unique<Script>(host_, this, &Impl::on_script);
  const auto removed = [](const TopicPlan& plan) { return plan.kind == TopicPlan::Kind::remove; };
  if (!clean_ || std::any_of(plans_.begin(), plans_.end(), removed)) script_->sync_dir(paths_.topics());
  if (!clean_) {
    for (const std::string& dir : {paths_.root(), paths_.outbox(), paths_.audit()}) script_->sync_dir(dir);
  }
  // No id that a stored message carries is ever issued again, also when broker.meta was lost (page 20 section 2.4).
  for (const TopicPlan& plan : plans_) {
    if (plan.kind != TopicPlan::Kind::open) continue;
    const auto reserve = [this](const SegmentInfo& segment) {
      if (segment.message_count > 0 && segment.last_id >> 48 == meta_.node_id)
        meta_.next_sequence = std::max(meta_.next_sequence, (segment.last_id & (kSequenceEnd - 1)) + 1);
    };
    for (const SegmentInfo& segment : plan.image.sealed) reserve(segment);
    reserve(plan.image.active.info);
  }
  RQ_SOMETIMES(meta_missing_ && meta_.next_sequence > 1, "opener: broker.meta was lost beside messages");
  if (meta_.registry_revision != UINT64_MAX) ++meta_.registry_revision;
  script_->replace_file(paths_.broker_meta(), encode_broker_meta(meta_));
  run_script();
}

void Opener::Impl::make_image(BrokerImage& image) {
  image.node_id = meta_.node_id;
  image.next_sequence = meta_.next_sequence;
  image.registry_revision = meta_.registry_revision;
  image.outbox = std::move(outbox_);
  image.active_writer_level = compatibility_.active_writer_level;
  image.minimum_reader_level = compatibility_.minimum_reader_level;
  image.generation = compatibility_.generation;
  image.fences = std::move(fences_);
  image.operations = std::move(operations_);
  image.topics.clear();
  for (TopicPlan& plan : plans_)
    if (plan.kind == TopicPlan::Kind::open) image.topics.push_back(std::move(plan.image));
}

}  // namespace rq::storage
