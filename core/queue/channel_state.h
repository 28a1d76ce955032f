// The state of a Channel and the small steps that its commands (channel.cc), its selection (channel_select.cc) and its audit
// (channel_audit.cc) share. Included by those files only.
#pragma once

#include "core/queue/ack_set.h"
#include "core/queue/channel.h"
#include "core/queue/deferred_scan.h"
#include "core/queue/gap_list.h"
#include "core/queue/outstanding.h"

namespace rq::queue {

struct Channel::State {
  State(const ChannelSettings& given, Token& process_tokens)
      : settings(given), tokens(process_tokens), deferred(given.deferred_near) {}

  std::string name;
  bool ephemeral = false;
  bool paused = false;
  ChannelSettings settings;
  Token& tokens;

  Position barrier = 0;
  Position origin = 0;  // base of message_count
  Position floor = 0;
  Position cursor = 1;
  AckSet acks;
  GapList gaps;
  Outstanding outstanding;
  DeferredScan deferred;

  std::uint64_t requeue_count = 0;
  std::uint64_t timeout_count = 0;
  Position checked_floor = 0;              // by check_invariants
  std::uint64_t stored_timeout_count = 0;  // what a crash cannot take back at feature level 1
  bool reports_finished = false;
  std::vector<Position> finished;

  bool records() const { return !ephemeral; }
  bool counted() const { return settings.feature_level >= 2; }
  bool is_finished(Position position) const { return position <= floor || acks.contains(position) || gaps.contains(position); }
  bool is_fresh(Position position) const { return !is_finished(position) && !outstanding.contains(position); }

  // `position` has no entry (any more) and is finished from now on.
  void acknowledge(Position position);
  // Raises the floor over finished and absent positions, and the cursor above it.
  void advance();
  // [first, last] is absent and holds no acknowledged position and no entry.
  void add_gap(Position first, Position last);
  // Everything <= through is finished; what was in flight there goes to `released`.
  void finish_through(Position through, std::vector<Released>& released);

  // Selection (page 30 section 3.3).
  bool window_full() const { return cursor - floor - gaps.positions_below(cursor) > settings.max_ack_gap; }
  Reserve take_ready(MessageView& view, Now now, ConsumerId owner, std::int64_t lease_ns, Reservation& out);
  Reserve take_ripe(MessageView& view, Now now, ConsumerId owner, std::int64_t lease_ns, Reservation& out);
  Reserve take_fresh(MessageView& view, Now now, ConsumerId owner, std::int64_t lease_ns, Reservation& out);
  void reserve_fresh(const MessageMeta& meta, Now now, ConsumerId owner, std::int64_t lease_ns, Reservation& out);
  void skip_absent(const MessageView& view);
};

}  // namespace rq::queue
