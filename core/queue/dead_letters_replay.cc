// Intents that an earlier process left (page 20 section 7.1): each is published once more unless its source is finished already.
#include "core/base/probe.h"
#include "core/queue/dead_letters.h"
#include "core/queue/topic.h"

namespace rq::queue {

bool DeadLetters::load_next() {
  step_ = Step::loading;
  move_ = Move{};
  move_.file = files_.front();
  files_.pop_front();
  load_.begin(path_of(move_.file), storage::kOutboxBytesMax);
  arrived_ = load_.poll({shared_.host.disk, load_op_});
  return true;
}

void DeadLetters::on_load(io::Op& op) noexcept {
  DeadLetters& letters = *static_cast<DeadLetters*>(op.self);
  letters.arrived_ = letters.load_.poll({letters.shared_.host.disk, letters.load_op_});
}

bool DeadLetters::take_file(Now now) {
  const std::string path = shared_.paths.relative(path_of(move_.file));
  if (load_.result() != storage::FileRead::Result::ok) {
    shared_.set_fault({path, std::nullopt, storage::describe(load_.error())});
    return false;
  }
  storage::Decoded<storage::OutboxEntry> entry = storage::decode_outbox(bytes_of(load_.content()));
  load_ = {};
  if (!entry) {
    shared_.set_fault({path, std::nullopt, entry.error()});
    return false;
  }
  move_.body = Slice::copy_of(bytes_of(entry->body));
  entry->body = {};
  move_.entry = std::move(*entry);
  move_.message.id = move_.entry.source_id;
  Topic* topic = topics_.source_topic(move_.entry.source_topic);
  if (topic == nullptr) return located(now);
  move_.topic = topic->owner();
  if (topic->policy().ttl_discard) return clear();  // I-49
  ChannelLane* lane = topic->lane(move_.entry.source_channel);
  if (lane == nullptr) return located(now);
  move_.lane = lane->serial();
  const std::optional<storage::Range> range = topic->disk()->range_of(move_.message.id);
  if (!range) return located(now);
  low_ = range->first;
  high_ = range->last;
  step_ = Step::locating;
  return true;
}

// Ids rise with positions: a binary search, one metadata page at a time.
bool DeadLetters::locate(Now now) {
  storage::TopicLog& log = *source()->topic().disk();
  while (low_ <= high_) {
    const storage::Position middle = low_ + (high_ - low_) / 2;
    MessageMeta meta;
    const storage::Lookup lookup = log.find(middle, meta);
    if (lookup == storage::Lookup::loading) return false;
    if (lookup == storage::Lookup::absent) break;
    if (meta.id == move_.message.id) {
      move_.message = meta;
      break;
    }
    if (meta.id < move_.message.id) {
      low_ = middle + 1;
    } else {
      high_ = middle - 1;
    }
  }
  return located(now);
}

bool DeadLetters::located(Now now) {
  const storage::Position position = move_.message.position;
  ChannelLane* lane = source();
  if (position != 0 && lane->channel().is_finished(position)) {
    RQ_SOMETIMES(true, "dead letters: the source of an intent is finished");
    return clear();
  }
  if (move_.body.size() > dead_letter_body_max(shared_.options.feature_level)) {
    shared_.set_fault({shared_.paths.relative(path_of(move_.file)), std::nullopt, "the message is too large for a dead letter"});
    return false;
  }
  if (move_.topic != 0) keep(move_.file, move_.topic, position != 0 ? position : UINT64_MAX);
  return publish(now);
}

}  // namespace rq::queue
