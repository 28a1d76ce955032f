// The messages of an ephemeral Topic: nothing on disk, every body in memory (D-21). A message stays until every Channel that took
// it has let go of it.
//
//  I1 A stored message has at least one holder, but for those that came while there was no Channel.
//  I2 used() of the budget is the sum of what the stored messages of all logs cost.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>

#include "core/storage/message_log.h"

namespace rq::storage {

// limits.node_ephemeral_bytes, shared by all ephemeral Topics.
struct MemoryBudget {
  std::uint64_t limit_bytes = 0;
  std::uint64_t used_bytes = 0;
};

class MemoryLog final : public MessageLog {
 public:
  static constexpr std::uint64_t kOverheadBytes = 192;  // per message, beside its body

  explicit MemoryLog(MemoryBudget& budget) : budget_(budget) {}
  ~MemoryLog() override { clear(); }
  MemoryLog(const MemoryLog&) = delete;
  MemoryLog& operator=(const MemoryLog&) = delete;

  // --- publishing, one request at a time
  // True if the budget of all ephemeral Topics has room for it.
  bool has_room(const Slice& body) const {
    return cost(body) <= budget_.limit_bytes - std::min(budget_.limit_bytes, budget_.used_bytes);
  }
  // Time of a request: timestamps do not decrease along positions.
  std::int64_t stamp(Now now) { return last_timestamp_ns_ = std::max(now.wall.ns, last_timestamp_ns_); }
  // Takes the next position. `meta` has id and times; a delay ends at the earlier of its wall and its steady time (D-28).
  void append(const Slice& body, MessageMeta meta, Instant due, std::uint32_t holders);
  Position skip() { return next_position_++; }  // of a message that nobody takes

  // --- Channels
  void hold(Position position);        // one more holder
  void release(Position position);     // one holder less; the last one removes the message. No effect if it is not stored.
  void let_stay(Position position);    // one holder less; it stays, also without one
  void drop_unheld(Position through);  // those without a holder up to there
  void clear();
  // Ascending positions of all stored messages.
  template <class F>
  void for_each(F&& f) const {
    for (auto at = entries_.begin(); at != entries_.end();) f((at++)->first);  // f may release it
  }

  // --- MessageLog
  Position next_position() const override { return next_position_; }
  Position durable_position() const override { return written(); }
  std::uint64_t stored_messages() const override { return entries_.size(); }
  std::uint64_t segment_count() const override { return 0; }
  std::uint64_t segment_bytes() const override { return 0; }
  std::uint64_t unsynced_messages() const override { return 0; }
  std::uint64_t unsynced_bytes() const override { return 0; }
  Instant oldest_unsynced() const override { return Instant::never(); }
  bool expired_prefix(Position after, std::int64_t cutoff_ns, std::uint64_t limit, Prefix& out) override;
  std::int64_t oldest_timestamp_after(Position after) const override;
  std::uint64_t stored_after(Position after) const override;
  Slice cached_body(Position position) const override;
  std::vector<Range> maybe_delayed(std::int64_t now_ms) const override;

  // --- MessageView
  Lookup find(Position position, MessageMeta& out) override;
  Position deliverable() const override { return next_position_ - 1; }
  Position next_present(Position from) const override;
  // None: each Channel is told of what it does not get.
  std::uint64_t absent_count(Position, Position) const override { return 0; }
  Due due(const MessageMeta& message) const override;

 private:
  struct Entry {
    MessageMeta meta;
    Slice body;
    Instant due;
    std::uint32_t holders = 0;
  };
  static std::uint64_t cost(const Slice& body) { return kOverheadBytes + body.size(); }
  void erase(std::map<Position, Entry>::iterator at);

  MemoryBudget& budget_;
  std::map<Position, Entry> entries_;
  Position next_position_ = 1;
  std::int64_t last_timestamp_ns_ = 0;
};

}  // namespace rq::storage
