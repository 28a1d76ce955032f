// Ephemeral Topics, whose messages are in memory alone, and the bound of ephemeral Channels: the newest message is dropped, and
// the publish succeeds (D-21).
#include <algorithm>

#include "core/base/probe.h"
#include "core/queue/topic.h"
#include "core/storage/names.h"

namespace rq::queue {

void Topic::start_in_memory() {
  auto log = std::make_unique<storage::MemoryLog>(shared_.ephemeral);
  memory_ = log.get();
  log_ = std::move(log);
  phase_ = Phase::live;
  opening_ = shared_.keep_for_channels;
  shared_.meta->bump_revision();
}

void Topic::store_manifest(std::string content) {
  if (disk_ != nullptr) script_->replace_file(shared_.paths.manifest(name_), std::move(content));
}

// What is at a consumer does not count, as in nsqd: its queue has given it away.
bool Topic::has_queue_room(const ChannelLane& lane) const {
  const std::uint64_t depth = lane.channel().depth_to(*log_, log_->written());
  return depth < shared_.options.ephemeral_queue_messages + lane.channel().in_flight_count();
}

void Topic::publish_in_memory(Publish& request, MessageId first_id, Now now) {
  const std::int64_t timestamp = memory_->stamp(now);
  MessageMeta meta;
  meta.timestamp_ns = timestamp;
  meta.available_at_ms = request.delay_ms == 0 ? now.wall.ms() : timestamp / kMillisecond + request.delay_ms;
  const Instant due = request.delay_ms == 0 ? Instant::never() : now.mono + request.delay_ms * kMillisecond;
  std::uint64_t bytes = 0;
  std::vector<ChannelLane*> without;
  for (std::size_t i = 0; i < request.bodies.size(); ++i) {
    const Slice& body = request.bodies[i];
    const bool room = memory_->has_room(body);
    meta.id = first_id + i;
    bytes += body.size();
    without.clear();
    for (const auto& [name, lane] : lanes_)
      if (!room || !has_queue_room(*lane)) without.push_back(lane.get());
    const bool waits = opening_ && room && opening_held_.size() < shared_.options.ephemeral_queue_messages;
    const auto holders = static_cast<std::uint32_t>(lanes_.size() - without.size() + (waits ? 1 : 0));
    const bool kept =
        holders > 0 || (lanes_.empty() && room && memory_->stored_messages() < shared_.options.ephemeral_queue_messages);
    const Position position = log_->next_position();
    if (waits) opening_held_.push_back(position);
    if (kept) {
      memory_->append(body, meta, due, holders);
    } else {
      memory_->skip();
    }
    for (ChannelLane* lane : without) lane->channel().drop(position, position);
    RQ_SOMETIMES(!without.empty() || !kept, "ephemeral: the newest message is dropped");
  }
  published_bytes_ += bytes;
  ++shared_.metrics.publish_requests;
  shared_.metrics.published_messages += request.bodies.size();
  shared_.metrics.published_bytes += bytes;
  shared_.events.published.push_back({request.waiter, {}});
  schedule_first_discard();
  mark_all_lanes();
}

// Ephemeral Channels of a Topic with files are cursors over its log, with the same bound.
void Topic::drop_newest(Position first, std::uint64_t count) {
  const Position last = first + count - 1;
  for (const auto& [name, lane] : lanes_) {
    if (!lane->ephemeral()) continue;
    const Channel& channel = lane->channel();
    const std::uint64_t before = channel.depth_to(*log_, first - 1);
    const std::uint64_t queue = before - std::min(before, channel.in_flight_count());
    const std::uint64_t room =
        shared_.options.ephemeral_queue_messages - std::min(queue, shared_.options.ephemeral_queue_messages);
    if (room >= count) continue;
    RQ_SOMETIMES(true, "ephemeral: a Channel over files drops the newest message");
    lane->channel().drop(first + room, last);
  }
}

// A new Channel: the first one gets what the Topic has kept for it, every one while it is opening.
void Topic::hold_all(ChannelLane& lane) {
  lane.channel().report_finished();
  if (!manifest_.unrouted_from && !opening_) return;
  RQ_SOMETIMES(opening_ && !manifest_.unrouted_from && !opening_held_.empty(), "ephemeral: a later Channel of an opening Topic");
  Position expected = channel_start(true, {}) + 1;
  const auto take = [&](Position position) {
    memory_->hold(position);
    if (position > expected) lane.channel().drop(expected, position - 1);
    expected = position + 1;
  };
  if (manifest_.unrouted_from) {
    memory_->for_each(take);
  } else {
    for (const Position position : opening_held_) take(position);
  }
  if (expected < log_->next_position()) lane.channel().drop(expected, log_->written());
  manifest_.unrouted_from.reset();
}

void Topic::open() {
  if (!opening_) return;
  open_wanted_ = true;
  mark();
}

void Topic::end_opening() {
  for (const Position position : opening_held_) {
    if (lanes_.empty()) {
      memory_->let_stay(position);
    } else {
      memory_->release(position);
    }
  }
  opening_held_ = {};
  opening_ = open_wanted_ = false;
}

// What the Channel has not finished up to there is dropped.
void Topic::let_go(ChannelLane& lane, Position through) {
  let_go_of_finished(lane);
  memory_->for_each([&](Position position) {
    if (position <= through && !lane.channel().is_finished(position)) memory_->release(position);
  });
}

void Topic::let_go_of_finished(ChannelLane& lane) {
  for (const Position position : lane.channel().take_finished()) memory_->release(position);
}

// The last Channel went, or is about to: a SUB that is queued already keeps the Topic (page 30 section 11).
void Topic::retire_if_unused() {
  if (!storage::ephemeral_name(name_) || !lanes_.empty()) return;
  if (memory_ != nullptr) manifest_.unrouted_from = log_->next_position();
  RQ_SOMETIMES(true, "ephemeral: a Topic goes with its last Channel");
  operate({.action = Admin::delete_topic,
           .subscribe = false,
           .channel = {},
           .waiter = WaiterId::none,
           .options = {},
           .policy = {},
           .create_missing = false,
           .created = false,
           .if_unused = true});
}

}  // namespace rq::queue
