// The positions of one Channel that carry delivery state: in flight at a consumer, ready to be offered again, or waiting for a
// time before that (page 30 section 3.2: IN_FLIGHT, REDELIVER, REQUEUED). Everything a position needs is one entry in a slab; the
// containers are links inside it, so that taking, finishing and releasing a message allocates nothing once the slab is warm.
//
//  I1 A position has at most one entry, and an entry is in exactly one of the three states.
//  I2 An entry in flight has an owner, a token and an armed deadline and is found by its id; no other entry has any of them.
#pragma once

#include <boost/intrusive/set.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "core/base/deadline_lanes.h"
#include "core/base/time.h"
#include "core/queue/channel.h"
#include "core/queue/view.h"

namespace rq::queue {

namespace intrusive = boost::intrusive;

class Outstanding {
 public:
  enum class State : std::uint8_t { free, in_flight, ready, waiting };
  using Link = intrusive::set_member_hook<intrusive::link_mode<intrusive::normal_link>, intrusive::optimize_size<true>>;

  struct Entry;
  struct Owner {
    ConsumerId id = ConsumerId::none;
    Entry* first = nullptr;  // in the order of delivery
    Entry* last = nullptr;
    std::uint64_t count = 0;
  };

  struct Entry : DeadlineNode {
    Position position() const { return meta.position; }

    MessageMeta meta;  // complete while in flight; otherwise only the position is certain
    Token token = 0;   // in flight
    Owner* owner = nullptr;
    Instant delivered;     // when it was taken
    MessageView::Due due;  // waiting
    // Explicit REQ target; stays until the next reservation, also when it has been reached.
    std::optional<std::int64_t> target_ms;
    std::uint16_t attempts = 0;    // 0: none recorded
    bool attempts_capped = false;  // the last reservation could not count
    State state = State::free;

   private:
    friend class Outstanding;
    Link by_position_, by_wall_, by_mono_;
    Entry* owner_before_ = nullptr;
    Entry* owner_after_ = nullptr;
    Entry* chain_ = nullptr;  // next in its id bucket, or next free
  };

  Outstanding();
  ~Outstanding();
  Outstanding(const Outstanding&) = delete;
  Outstanding& operator=(const Outstanding&) = delete;

  // --- numbers
  std::uint64_t in_flight() const { return in_flight_.size(); }
  std::uint64_t ready() const { return ready_.size(); }
  std::uint64_t waiting() const { return waiting_.size(); }
  std::uint64_t waiting_at(Now now) const;  // without those that wake() would move
  std::uint64_t held_by(ConsumerId owner) const;

  // --- lookup
  Entry* in_flight_by_id(MessageId id);
  Entry* at(Position position);
  bool contains(Position position) const { return const_cast<Outstanding*>(this)->at(position) != nullptr; }
  // Smallest position >= from with an entry.
  std::optional<Position> next_position(Position from) const;
  Entry* lowest_ready() { return ready_.empty() ? nullptr : &*ready_.begin(); }
  Entry* lowest_in_flight() { return in_flight_.empty() ? nullptr : &*in_flight_.begin(); }
  Entry* first_held_by(ConsumerId owner);
  Entry* earliest_in_flight() { return lanes_.first(); }
  Entry* lowest();  // of all states

  // --- transitions
  // A new entry in state ready. The position has none yet.
  Entry& add(Position position);
  // ready -> in_flight.
  void take(Entry& entry, const MessageMeta& meta, Token token, ConsumerId owner, Instant now, Instant deadline,
            std::int64_t lease_ns);
  // A position without an entry -> in_flight, attempts 1.
  Entry& take_fresh(const MessageMeta& meta, Token token, ConsumerId owner, Instant now, Instant deadline, std::int64_t lease_ns);
  void renew(Entry& entry, Instant deadline, std::int64_t timeout_ns);
  // in_flight at another owner, with the same token and without a deadline.
  void hand_to(Entry& entry, ConsumerId owner);
  // any -> ready / waiting / gone.
  void offer(Entry& entry);
  void wait(Entry& entry, const MessageView::Due& due);
  void erase(Entry& entry);
  // waiting -> ready for all that are due.
  void wake(Now now);

  // --- time
  Instant earliest_deadline() const { return lanes_.earliest(); }
  // Earliest instant after `now` at which wake() finds more.
  Instant next_wake(Now now) const;

  // Ascending by position, all states.
  template <class F>
  void for_each(F&& f) const {
    auto a = in_flight_.begin();
    auto b = ready_.begin();
    auto c = waiting_.begin();
    while (true) {
      const Entry* least = a != in_flight_.end() ? &*a : nullptr;
      if (b != ready_.end() && (least == nullptr || b->position() < least->position())) least = &*b;
      if (c != waiting_.end() && (least == nullptr || c->position() < least->position())) least = &*c;
      if (least == nullptr) return;
      if (least->state == State::in_flight) ++a;
      if (least->state == State::ready) ++b;
      if (least->state == State::waiting) ++c;
      f(*least);
    }
  }

  void check_invariants() const;

 private:
  struct PositionLess {
    bool operator()(const Entry& a, const Entry& b) const { return a.position() < b.position(); }
    bool operator()(const Entry& a, Position b) const { return a.position() < b; }
    bool operator()(Position a, const Entry& b) const { return a < b.position(); }
  };
  struct WallLess {
    bool operator()(WallTime a, const Entry& b) const { return a < b.due.wall; }
    bool operator()(const Entry& a, const Entry& b) const {
      return a.due.wall != b.due.wall ? a.due.wall < b.due.wall : a.position() < b.position();
    }
  };
  struct MonoLess {
    bool operator()(Instant a, const Entry& b) const { return a < b.due.mono; }
    bool operator()(const Entry& a, const Entry& b) const {
      return a.due.mono != b.due.mono ? a.due.mono < b.due.mono : a.position() < b.position();
    }
  };
  template <Link Entry::*Hook, class Less>
  using Tree = intrusive::set<Entry, intrusive::member_hook<Entry, Link, Hook>, intrusive::compare<Less>>;
  using Positions = Tree<&Entry::by_position_, PositionLess>;

  Entry& allocate(Position position);
  void free(Entry& entry);
  void trim();
  Owner& owner(ConsumerId id);
  void enter_flight(Entry& entry, const MessageMeta& meta, Token token, ConsumerId owner, Instant now, Instant deadline,
                    std::int64_t lease_ns);
  void enter_holding(Entry& entry, ConsumerId owner);
  void leave_holding(Entry& entry);
  void leave(Entry& entry);  // out of the containers of its state
  static void insert(Positions& into, Entry& entry) { into.insert(into.end(), entry); }
  static Entry* find(Positions& in, Position position);
  void index(Entry& entry);
  void unindex(Entry& entry);
  void grow_index();
  std::size_t bucket(MessageId id) const;

  static constexpr std::size_t kChunkEntries = 64;
  static constexpr std::size_t kChunksKept = 16;
  std::vector<std::unique_ptr<Entry[]>> chunks_;
  Entry* free_ = nullptr;
  std::vector<Entry*> buckets_;  // a power of two; chains through Entry::chain_
  std::map<ConsumerId, Owner> owners_;
  std::size_t idle_owners_ = 0;
  Positions in_flight_, ready_, waiting_;
  Tree<&Entry::by_wall_, WallLess> by_wall_;  // waiting
  Tree<&Entry::by_mono_, MonoLess> by_mono_;  // waiting, with a steady time
  DeadlineLanes<Entry> lanes_;                // in flight
};

}  // namespace rq::queue
