// What a Channel shows: numbers, its state as a checkpoint, its digest and its invariants (page 30 sections 3.2 and 3.10).
#include <algorithm>

#include "core/base/check.h"
#include "core/queue/channel_state.h"

namespace rq::queue {

Position Channel::ack_floor() const { return state_->floor; }
Position Channel::cursor() const { return state_->cursor; }

std::optional<Position> Channel::lowest_in_flight() const {
  const Outstanding::Entry* entry = state_->outstanding.lowest_in_flight();
  if (entry == nullptr) return std::nullopt;
  return entry->position();
}

std::uint64_t Channel::ack_gap() const { return state_->acks.size(); }

std::uint64_t Channel::depth(const MessageView& view) const { return depth_to(view, view.deliverable()); }

std::uint64_t Channel::depth_to(const MessageView& view, Position last) const {
  const State& s = *state_;
  if (last <= s.floor) return 0;
  // What the log knows to be absent, or what this Channel met or was told: each may know more than the other.
  const std::uint64_t absent = std::max(view.absent_count(s.floor + 1, last), s.gaps.positions_below(last + 1));
  const std::uint64_t gone = absent + s.acks.size();
  const std::uint64_t span = last - s.floor;
  return span > gone ? span - gone : 0;
}

std::uint64_t Channel::in_flight_count() const { return state_->outstanding.in_flight(); }

std::uint64_t Channel::requeued_future_count(Now now) const { return state_->outstanding.waiting_at(now); }
bool Channel::is_fresh(Position position) const { return state_->is_fresh(position); }

bool Channel::is_finished(Position position) const { return state_->is_finished(position); }

std::uint64_t Channel::message_count(const MessageView& view) const {
  const Position last = view.deliverable();
  return last > state_->origin ? last - state_->origin : 0;
}

std::uint64_t Channel::requeue_count() const { return state_->requeue_count; }
std::uint64_t Channel::timeout_count() const { return state_->timeout_count; }

// --- persistence

storage::ChannelImage Channel::image() const {
  const State& s = *state_;
  storage::ChannelImage image;
  image.name = s.name;
  image.barrier = s.barrier;
  image.ack_floor = s.floor;
  image.acknowledged.reserve(s.acks.size());
  s.acks.for_each([&](Position position) { image.acknowledged.push_back(position); });
  s.outstanding.for_each([&](const Outstanding::Entry& entry) {
    if (entry.target_ms) image.requeued_until_ms.emplace_hint(image.requeued_until_ms.end(), entry.position(), *entry.target_ms);
    if (entry.attempts != 0) image.attempts.emplace_hint(image.attempts.end(), entry.position(), entry.attempts);
  });
  image.message_count_origin = s.origin;
  image.requeue_count = s.requeue_count;
  image.timeout_count = s.timeout_count;
  image.paused = s.paused;
  return image;
}

bool Channel::counters_dirty() const {
  return state_->records() && !state_->counted() && state_->timeout_count != state_->stored_timeout_count;
}

void Channel::counters_stored() { counters_stored(state_->timeout_count); }

void Channel::counters_stored(std::uint64_t timeout_count) {
  state_->stored_timeout_count = std::max(state_->stored_timeout_count, timeout_count);
}

std::uint64_t Channel::stored_timeout_count() const {
  return state_->records() && !state_->counted() ? state_->stored_timeout_count : state_->timeout_count;
}

// --- audit

void Channel::digest(Hasher& hasher) const {
  const State& s = *state_;
  hasher.add(s.name);
  for (std::uint64_t value : {s.barrier, s.origin, s.floor, s.cursor, s.requeue_count, s.timeout_count, s.stored_timeout_count,
                              static_cast<std::uint64_t>(s.paused), s.acks.size()})
    hasher.add(value);
  s.acks.for_each([&](Position position) { hasher.add(position); });
  for (const storage::Range& range : s.gaps.ranges()) {
    hasher.add(range.first);
    hasher.add(range.last);
  }
  s.outstanding.for_each([&](const Outstanding::Entry& entry) {
    hasher.add(entry.position());
    hasher.add(static_cast<std::uint64_t>(entry.state));
    hasher.add(entry.attempts);
    hasher.add(static_cast<std::uint64_t>(entry.target_ms.value_or(0)));
    if (entry.state == Outstanding::State::in_flight) {
      hasher.add(entry.token);
      hasher.add(static_cast<std::uint64_t>(entry.owner->id));
      hasher.add(static_cast<std::uint64_t>(entry.deadline().ns));
    }
  });
  s.deferred.digest(hasher);
}

void Channel::check_invariants(const MessageView& view) const {
  State& s = *state_;
  s.acks.check_invariants();
  s.outstanding.check_invariants();

  // I-18: the floor is below everything, the cursor above it, the sets are disjoint. I-19: the floor does not go back.
  RQ_CHECK(s.floor >= s.barrier && s.cursor > s.floor && s.floor >= s.checked_floor);
  s.checked_floor = s.floor;
  RQ_CHECK(!s.acks.contains(s.floor + 1));
  RQ_CHECK(s.acks.empty() || s.acks.next_set(0).value() > s.floor);
  RQ_CHECK(s.gaps.empty() || s.gaps.ranges().front().first > s.floor + 1);
  for (const storage::Range& range : s.gaps.ranges()) {
    RQ_CHECK(s.acks.next_set(range.first).value_or(range.last + 1) > range.last);
    RQ_CHECK(s.outstanding.next_position(range.first).value_or(range.last + 1) > range.last);
  }
  s.outstanding.for_each([&](const Outstanding::Entry& entry) {
    RQ_CHECK(entry.position() > s.floor && !s.acks.contains(entry.position()));
    RQ_CHECK(entry.state != Outstanding::State::in_flight || (entry.token != 0 && entry.token <= s.tokens));
  });

  // I-20: nothing unfinished is lost between the sets. Below the cursor and fresh means delayed and remembered.
  const Position last = std::min(s.cursor - 1, view.deliverable());
  for (Position position = view.next_present(s.floor + 1); position <= last; position = view.next_present(position + 1)) {
    if (!s.is_fresh(position)) continue;
    RQ_CHECK(s.deferred.remembers(position));
  }
}

}  // namespace rq::queue
