#include "core/queue/deferred_scan.h"

#include <algorithm>
#include <functional>

namespace rq::queue {
namespace {

void lower(DeferredScan::Due& a, const DeferredScan::Due& b) {
  a.wall = std::min(a.wall, b.wall);
  a.mono = std::min(a.mono, b.mono);
}

}  // namespace

Instant instant_of(const MessageView::Due& due, Now now) {
  if (due.reached(now)) return now.mono;
  std::int64_t left = 0;
  const bool too_far = __builtin_sub_overflow(due.wall.ns, now.wall.ns, &left);
  return std::min(due.mono, too_far ? Instant::never() : now.mono + left);
}

void DeferredScan::fold(const Item& item) {
  if (!far_) {
    far_ = item;
    return;
  }
  far_->position = std::min(far_->position, item.position);
  lower(far_->due, item.due);
}

void DeferredScan::remeasure() {
  if (near_.empty()) return;
  earliest_ = near_.front().due;
  for (const Item& item : near_) lower(earliest_, item.due);
}

void DeferredScan::add(Position position, const Due& due) {
  const Item item{position, due};
  if (near_.size() >= near_max_) {
    if (near_.empty() || !Later{}(item, near_.front())) return fold(item);
    std::pop_heap(near_.begin(), near_.end(), Later{});
    fold(near_.back());
    near_.pop_back();
  }
  if (near_.empty()) earliest_ = due;
  lower(earliest_, due);
  near_.push_back(item);
  std::push_heap(near_.begin(), near_.end(), Later{});
}

std::optional<Position> DeferredScan::rewind(Now now) {
  if (!far_ || !far_->due.reached(now)) return std::nullopt;
  const Position from = far_->position;
  far_.reset();
  near_.erase(std::remove_if(near_.begin(), near_.end(), [from](const Item& item) { return item.position >= from; }),
              near_.end());
  std::make_heap(near_.begin(), near_.end(), Later{});
  remeasure();
  ripe_.erase(ripe_.begin(), std::partition_point(ripe_.begin(), ripe_.end(), [from](Position p) { return p >= from; }));
  return from;
}

std::optional<Position> DeferredScan::ripe(Now now) {
  if (!near_.empty() && earliest_.reached(now)) {
    const auto due = std::partition(near_.begin(), near_.end(), [now](const Item& item) { return !item.due.reached(now); });
    for (auto at = due; at != near_.end(); ++at) ripe_.push_back(at->position);
    std::sort(ripe_.begin(), ripe_.end(), std::greater<>());
    near_.erase(due, near_.end());
    std::make_heap(near_.begin(), near_.end(), Later{});
    remeasure();
  }
  if (ripe_.empty()) return std::nullopt;
  return ripe_.back();
}

void DeferredScan::take_ripe() { ripe_.pop_back(); }

void DeferredScan::erase_through(Position through) {
  near_.erase(std::remove_if(near_.begin(), near_.end(), [through](const Item& item) { return item.position <= through; }),
              near_.end());
  std::make_heap(near_.begin(), near_.end(), Later{});
  remeasure();
  ripe_.erase(std::partition_point(ripe_.begin(), ripe_.end(), [through](Position p) { return p > through; }), ripe_.end());
  if (far_ && far_->position <= through) far_->position = through + 1;
}

Instant DeferredScan::next_deadline(Now now) const {
  Instant at = Instant::never();
  if (far_ && !far_->due.reached(now)) at = instant_of(far_->due, now);
  if (near_.empty()) return at;
  if (!earliest_.reached(now)) return std::min(at, instant_of(earliest_, now));
  for (const Item& item : near_)
    if (!item.due.reached(now)) at = std::min(at, instant_of(item.due, now));
  return at;
}

bool DeferredScan::remembers(Position position) const {
  if (far_ && far_->position <= position) return true;
  if (std::binary_search(ripe_.begin(), ripe_.end(), position, std::greater<>())) return true;
  return std::any_of(near_.begin(), near_.end(), [position](const Item& item) { return item.position == position; });
}

void DeferredScan::digest(Hasher& hasher) const {
  hasher.add(near_.size());
  for (const Item& item : near_) {
    hasher.add(item.position);
    hasher.add(static_cast<std::uint64_t>(item.due.wall.ns));
  }
  for (Position position : ripe_) hasher.add(position);
  if (far_) {
    hasher.add(far_->position);
    hasher.add(static_cast<std::uint64_t>(far_->due.wall.ns));
  }
}

}  // namespace rq::queue
