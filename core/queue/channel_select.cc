// Selection: what a Channel hands out next (page 30 section 3.3). Redelivered positions go before fresh ones, lower positions
// first within each class (I-22); fresh ones stay within the ack window (I-23).
#include <algorithm>

#include "core/base/check.h"
#include "core/base/probe.h"
#include "core/queue/channel_state.h"

namespace rq::queue {

Reserve Channel::reserve(MessageView& view, Now now, ConsumerId owner, std::int64_t lease_ns, Reservation& out) {
  State& s = *state_;
  if (s.paused) return Reserve::none;
  s.outstanding.wake(now);
  if (const std::optional<Position> from = s.deferred.rewind(now)) s.cursor = std::min(s.cursor, std::max(*from, s.floor + 1));
  Reserve result = s.take_ready(view, now, owner, lease_ns, out);
  if (result == Reserve::none) result = s.take_ripe(view, now, owner, lease_ns, out);
  if (result == Reserve::none) result = s.take_fresh(view, now, owner, lease_ns, out);
  return result;
}

Reserve Channel::State::take_ready(MessageView& view, Now now, ConsumerId owner, std::int64_t lease_ns, Reservation& out) {
  while (Outstanding::Entry* entry = outstanding.lowest_ready()) {
    MessageMeta meta;
    const Position position = entry->position();
    switch (view.find(position, meta)) {
      case Lookup::loading:
        return Reserve::loading;
      case Lookup::absent:
        outstanding.erase(*entry);
        add_gap(position, position);
        continue;
      case Lookup::found:
        break;
    }
    if (const MessageView::Due due = view.due(meta); !due.reached(now)) {
      outstanding.wait(*entry, due);
      continue;
    }
    outstanding.take(*entry, meta, ++tokens, owner, now.mono, now.mono + lease_ns, lease_ns);
    out = Reservation{meta, entry->token, entry->attempts};
    return Reserve::reserved;
  }
  return Reserve::none;
}

void Channel::State::reserve_fresh(const MessageMeta& meta, Now now, ConsumerId owner, std::int64_t lease_ns, Reservation& out) {
  const Token token = ++tokens;
  outstanding.take_fresh(meta, token, owner, now.mono, now.mono + lease_ns, lease_ns);
  out = Reservation{meta, token, 1};
}

// Delayed messages below the cursor whose time has come.
Reserve Channel::State::take_ripe(MessageView& view, Now now, ConsumerId owner, std::int64_t lease_ns, Reservation& out) {
  while (const std::optional<Position> position = deferred.ripe(now)) {
    MessageMeta meta;
    const Lookup lookup = is_fresh(*position) ? view.find(*position, meta) : Lookup::found;
    if (lookup == Lookup::loading) return Reserve::loading;
    deferred.take_ripe();
    if (lookup == Lookup::absent) {
      add_gap(*position, *position);
    } else if (meta.position == 0) {
      continue;  // finished meanwhile
    } else if (const MessageView::Due due = view.due(meta); !due.reached(now)) {
      deferred.add(*position, due);  // the wall clock was set back
    } else {
      RQ_SOMETIMES(true, "channel: a delayed message came due");
      reserve_fresh(meta, now, owner, lease_ns, out);
      return Reserve::reserved;
    }
  }
  return Reserve::none;
}

Reserve Channel::State::take_fresh(MessageView& view, Now now, ConsumerId owner, std::int64_t lease_ns, Reservation& out) {
  const Position limit = view.deliverable();
  while (cursor <= limit) {
    if (window_full()) {
      RQ_SOMETIMES(true, "channel: the ack window stopped fresh messages");
      return Reserve::none;
    }
    if (const Position clear = acks.next_clear(cursor); clear != cursor) {
      cursor = clear;
      continue;
    }
    if (const Position clear = gaps.next_clear(cursor); clear != cursor) {
      cursor = clear;
      continue;
    }
    if (outstanding.contains(cursor)) {
      ++cursor;
      continue;
    }
    MessageMeta meta;
    switch (view.find(cursor, meta)) {
      case Lookup::loading:
        return Reserve::loading;
      case Lookup::absent:
        skip_absent(view);
        continue;
      case Lookup::found:
        break;
    }
    if (const MessageView::Due due = view.due(meta); !due.reached(now)) {
      deferred.add(cursor, due);
      ++cursor;
      continue;
    }
    reserve_fresh(meta, now, owner, lease_ns, out);
    ++cursor;
    return Reserve::reserved;
  }
  return Reserve::none;
}

// The cursor stands on an absent position: it jumps to the next one that is present, acknowledged or has an entry.
void Channel::State::skip_absent(const MessageView& view) {
  Position next = view.next_present(cursor);
  RQ_CHECK(next > cursor);
  if (const std::optional<Position> acked = acks.next_set(cursor)) next = std::min(next, *acked);
  if (const std::optional<Position> held = outstanding.next_position(cursor)) next = std::min(next, *held);
  const Position first = cursor;
  cursor = next;
  add_gap(first, next - 1);
}

bool Channel::blocked_by_ack_window(const MessageView& view) const {
  const State& s = *state_;
  return s.window_full() && view.next_present(s.cursor) <= view.deliverable();
}

}  // namespace rq::queue
