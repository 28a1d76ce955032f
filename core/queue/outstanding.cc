#include "core/queue/outstanding.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/base/hash.h"
#include "core/queue/deferred_scan.h"  // instant_of

namespace rq::queue {

Outstanding::Outstanding() = default;
Outstanding::~Outstanding() = default;

// --- the slab

Outstanding::Entry& Outstanding::allocate(Position position) {
  if (free_ == nullptr) {
    chunks_.push_back(std::make_unique<Entry[]>(kChunkEntries));
    for (std::size_t i = kChunkEntries; i-- > 0;) {
      chunks_.back()[i].chain_ = free_;
      free_ = &chunks_.back()[i];
    }
  }
  Entry& entry = *free_;
  free_ = entry.chain_;
  entry.chain_ = nullptr;
  entry.meta.position = position;
  entry.attempts = 0;
  entry.attempts_capped = false;
  entry.target_ms.reset();
  return entry;
}

void Outstanding::free(Entry& entry) {
  entry.state = State::free;
  entry.chain_ = free_;
  free_ = &entry;
  if (chunks_.size() > kChunksKept && in_flight_.empty() && ready_.empty() && waiting_.empty()) trim();
}

// A Channel that once held much and holds nothing now gives the memory back.
void Outstanding::trim() {
  chunks_.resize(1);
  chunks_.shrink_to_fit();
  free_ = nullptr;
  for (std::size_t i = kChunkEntries; i-- > 0;) {
    chunks_.front()[i].chain_ = free_;
    free_ = &chunks_.front()[i];
  }
  buckets_.assign(kChunkEntries, nullptr);
  buckets_.shrink_to_fit();
}

// --- by id

std::size_t Outstanding::bucket(MessageId id) const { return mix64(id) & (buckets_.size() - 1); }

void Outstanding::grow_index() {
  buckets_.assign(std::max<std::size_t>(kChunkEntries, buckets_.size() * 2), nullptr);
  for (Entry& entry : in_flight_) {
    Entry*& head = buckets_[bucket(entry.meta.id)];
    entry.chain_ = head;
    head = &entry;
  }
}

void Outstanding::index(Entry& entry) {
  if (in_flight_.size() >= buckets_.size()) grow_index();  // before `entry` is among them
  Entry*& head = buckets_[bucket(entry.meta.id)];
  entry.chain_ = head;
  head = &entry;
}

void Outstanding::unindex(Entry& entry) {
  Entry** at = &buckets_[bucket(entry.meta.id)];
  while (*at != &entry) at = &(*at)->chain_;
  *at = entry.chain_;
  entry.chain_ = nullptr;
}

Outstanding::Entry* Outstanding::in_flight_by_id(MessageId id) {
  if (in_flight_.empty()) return nullptr;
  Entry* entry = buckets_[bucket(id)];
  while (entry != nullptr && entry->meta.id != id) entry = entry->chain_;
  return entry;
}

// --- by position

Outstanding::Entry* Outstanding::find(Positions& in, Position position) {
  if (in.empty() || in.rbegin()->position() < position) return nullptr;
  const auto at = in.lower_bound(position, PositionLess{});
  return at->position() == position ? &*at : nullptr;
}

Outstanding::Entry* Outstanding::at(Position position) {
  for (Positions* positions : {&in_flight_, &ready_, &waiting_})
    if (Entry* entry = find(*positions, position)) return entry;
  return nullptr;
}

std::optional<Position> Outstanding::next_position(Position from) const {
  std::optional<Position> next;
  for (const Positions* positions : {&in_flight_, &ready_, &waiting_}) {
    const auto at = positions->lower_bound(from, PositionLess{});
    if (at != positions->end() && (!next || at->position() < *next)) next = at->position();
  }
  return next;
}

Outstanding::Entry* Outstanding::lowest() {
  Entry* least = nullptr;
  for (Positions* positions : {&in_flight_, &ready_, &waiting_})
    if (!positions->empty() && (least == nullptr || positions->begin()->position() < least->position()))
      least = &*positions->begin();
  return least;
}

// --- by owner

Outstanding::Owner& Outstanding::owner(ConsumerId id) {
  const auto found = owners_.find(id);
  if (found != owners_.end()) return found->second;
  // Owners stay while they hold nothing, so that a window of one message allocates nothing; those that went away are swept here.
  if (idle_owners_ > 64 && idle_owners_ * 2 > owners_.size()) {
    std::erase_if(owners_, [](const auto& item) { return item.second.count == 0; });
    idle_owners_ = 0;
  }
  ++idle_owners_;
  Owner& fresh = owners_[id];
  fresh.id = id;
  return fresh;
}

std::uint64_t Outstanding::held_by(ConsumerId id) const {
  const auto found = owners_.find(id);
  return found == owners_.end() ? 0 : found->second.count;
}

Outstanding::Entry* Outstanding::first_held_by(ConsumerId id) {
  const auto found = owners_.find(id);
  return found == owners_.end() ? nullptr : found->second.first;
}

// --- transitions

Outstanding::Entry& Outstanding::add(Position position) {
  Entry& entry = allocate(position);
  entry.state = State::ready;
  insert(ready_, entry);
  return entry;
}

void Outstanding::enter_flight(Entry& entry, const MessageMeta& meta, Token token, ConsumerId id, Instant now, Instant deadline,
                               std::int64_t lease_ns) {
  entry.meta = meta;
  entry.token = token;
  entry.delivered = now;
  entry.target_ms.reset();
  index(entry);
  entry.state = State::in_flight;
  insert(in_flight_, entry);
  enter_holding(entry, id);
  lanes_.arm(entry, deadline, lease_ns);
}

void Outstanding::enter_holding(Entry& entry, ConsumerId id) {
  Owner& holder = owner(id);
  entry.owner = &holder;
  entry.owner_before_ = holder.last;
  entry.owner_after_ = nullptr;
  (holder.last != nullptr ? holder.last->owner_after_ : holder.first) = &entry;
  holder.last = &entry;
  if (holder.count++ == 0) --idle_owners_;
}

void Outstanding::leave_holding(Entry& entry) {
  Owner& holder = *entry.owner;
  (entry.owner_before_ != nullptr ? entry.owner_before_->owner_after_ : holder.first) = entry.owner_after_;
  (entry.owner_after_ != nullptr ? entry.owner_after_->owner_before_ : holder.last) = entry.owner_before_;
  if (--holder.count == 0) ++idle_owners_;
  entry.owner = nullptr;
}

void Outstanding::hand_to(Entry& entry, ConsumerId id) {
  constexpr std::int64_t kNoLease = -2;  // a lane of their own: never before any tail
  RQ_CHECK(entry.state == State::in_flight);
  leave_holding(entry);
  enter_holding(entry, id);
  renew(entry, Instant::never(), kNoLease);
}

void Outstanding::take(Entry& entry, const MessageMeta& meta, Token token, ConsumerId owner, Instant now, Instant deadline,
                       std::int64_t lease_ns) {
  RQ_CHECK(entry.state == State::ready && entry.position() == meta.position);
  entry.attempts_capped = entry.attempts == 0xffff;
  if (!entry.attempts_capped) ++entry.attempts;
  leave(entry);
  enter_flight(entry, meta, token, owner, now, deadline, lease_ns);
}

Outstanding::Entry& Outstanding::take_fresh(const MessageMeta& meta, Token token, ConsumerId owner, Instant now, Instant deadline,
                                            std::int64_t lease_ns) {
  Entry& entry = allocate(meta.position);
  entry.attempts = 1;
  enter_flight(entry, meta, token, owner, now, deadline, lease_ns);
  return entry;
}

void Outstanding::renew(Entry& entry, Instant deadline, std::int64_t timeout_ns) {
  lanes_.disarm(entry);
  lanes_.arm(entry, deadline, timeout_ns);
}

void Outstanding::leave(Entry& entry) {
  switch (entry.state) {
    case State::in_flight: {
      in_flight_.erase(in_flight_.iterator_to(entry));
      unindex(entry);
      lanes_.disarm(entry);
      leave_holding(entry);
      entry.token = 0;
      return;
    }
    case State::ready:
      ready_.erase(ready_.iterator_to(entry));
      return;
    case State::waiting:
      waiting_.erase(waiting_.iterator_to(entry));
      by_wall_.erase(by_wall_.iterator_to(entry));
      if (entry.due.mono != Instant::never()) by_mono_.erase(by_mono_.iterator_to(entry));
      return;
    case State::free:
      RQ_CHECK(entry.state != State::free);
  }
}

void Outstanding::offer(Entry& entry) {
  leave(entry);
  entry.state = State::ready;
  insert(ready_, entry);
}

void Outstanding::wait(Entry& entry, const MessageView::Due& due) {
  leave(entry);
  entry.state = State::waiting;
  entry.due = due;
  insert(waiting_, entry);
  by_wall_.insert(by_wall_.end(), entry);
  if (due.mono != Instant::never()) by_mono_.insert(by_mono_.end(), entry);
}

void Outstanding::erase(Entry& entry) {
  leave(entry);
  free(entry);
}

void Outstanding::wake(Now now) {
  while (!by_wall_.empty() && by_wall_.begin()->due.wall <= now.wall) offer(*by_wall_.begin());
  while (!by_mono_.empty() && by_mono_.begin()->due.mono <= now.mono) offer(*by_mono_.begin());
}

std::uint64_t Outstanding::waiting_at(Now now) const {
  std::uint64_t due = 0;
  for (const Entry& entry : by_wall_) {
    if (entry.due.wall > now.wall) break;
    ++due;
  }
  for (const Entry& entry : by_mono_) {
    if (entry.due.mono > now.mono) break;
    if (entry.due.wall > now.wall) ++due;
  }
  return waiting_.size() - due;
}

Instant Outstanding::next_wake(Now now) const {
  Instant at = Instant::never();
  // What is due already is woken by the next reservation, not by time.
  const auto by_wall = by_wall_.upper_bound(now.wall, WallLess{});
  if (by_wall != by_wall_.end()) at = instant_of({by_wall->due.wall, Instant::never()}, now);
  const auto by_mono = by_mono_.upper_bound(now.mono, MonoLess{});
  if (by_mono != by_mono_.end()) at = std::min(at, by_mono->due.mono);
  return at;
}

void Outstanding::check_invariants() const {
  std::size_t held = 0;
  for (const auto& [id, holder] : owners_) {
    std::uint64_t count = 0;
    for (const Entry* entry = holder.first; entry != nullptr; entry = entry->owner_after_, ++count)
      RQ_CHECK(entry->owner == &holder && entry->state == State::in_flight);
    RQ_CHECK(count == holder.count);
    held += count;
  }
  RQ_CHECK(held == in_flight_.size() && lanes_.size() == held && by_wall_.size() == waiting_.size());
  lanes_.check_invariants();
  Position before = 0;
  for_each([&](const Entry& entry) {
    RQ_CHECK(before < entry.position());
    before = entry.position();
    RQ_CHECK(entry.armed() == (entry.state == State::in_flight));
    RQ_CHECK((entry.owner != nullptr) == (entry.state == State::in_flight));
    if (entry.state == State::in_flight) RQ_CHECK(const_cast<Outstanding*>(this)->in_flight_by_id(entry.meta.id) == &entry);
  });
}

}  // namespace rq::queue
