// Absent positions that a Channel has met between its floor and its cursor: ascending, disjoint, never touching ranges. They
// count as finished without a WAL command and do not use up the ack window (page 30 sections 3.3 and 15). Few: one per lost tail,
// or for an ephemeral Channel that is full at most one per message in its queue (D-21).
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/base/check.h"
#include "core/storage/types.h"

namespace rq::queue {

using storage::Position;

class GapList {
 public:
  bool empty() const { return ranges_.empty(); }
  // Number of positions in it that are below `position`. Costs as much as there are ranges on the shorter side of it.
  std::uint64_t positions_below(Position position) const {
    const auto after = std::lower_bound(ranges_.begin(), ranges_.end(), position,
                                        [](const storage::Range& range, Position p) { return range.last < p; });
    const std::uint64_t cut = after != ranges_.end() && after->first < position ? position - after->first : 0;
    std::uint64_t count = 0;
    if (after - ranges_.begin() <= ranges_.end() - after) {
      for (auto at = ranges_.begin(); at != after; ++at) count += at->last - at->first + 1;
      return count + cut;
    }
    for (auto at = after; at != ranges_.end(); ++at) count += at->last - at->first + 1;
    return positions_ - count + cut;
  }
  // Smallest position >= from that is not in it.
  Position next_clear(Position from) const {
    const auto at = std::lower_bound(ranges_.begin(), ranges_.end(), from,
                                     [](const storage::Range& range, Position p) { return range.last < p; });
    return at != ranges_.end() && at->first <= from ? at->last + 1 : from;
  }
  const std::vector<storage::Range>& ranges() const { return ranges_; }

  // Adds [first, last], joining it with what it touches or overlaps.
  void add(Position first, Position last) {
    RQ_CHECK(0 < first && first <= last);
    auto from = std::lower_bound(ranges_.begin(), ranges_.end(), first - 1,
                                 [](const storage::Range& range, Position position) { return range.last < position; });
    auto to = from;
    for (; to != ranges_.end() && to->first - 1 <= last; ++to) {
      first = std::min(first, to->first);
      last = std::max(last, to->last);
      positions_ -= to->last - to->first + 1;
    }
    positions_ += last - first + 1;
    if (from == to) {
      ranges_.insert(from, storage::Range{first, last});
      return;
    }
    *from = storage::Range{first, last};
    ranges_.erase(from + 1, to);
  }

  bool contains(Position position) const {
    const auto at = std::lower_bound(ranges_.begin(), ranges_.end(), position,
                                     [](const storage::Range& range, Position p) { return range.last < p; });
    return at != ranges_.end() && at->first <= position;
  }

  // Forgets every position <= through.
  void erase_through(Position through) {
    auto at = ranges_.begin();
    for (; at != ranges_.end() && at->last <= through; ++at) positions_ -= at->last - at->first + 1;
    if (at != ranges_.end() && at->first <= through) {
      positions_ -= through - at->first + 1;
      at->first = through + 1;
    }
    ranges_.erase(ranges_.begin(), at);
  }

 private:
  std::vector<storage::Range> ranges_;
  std::uint64_t positions_ = 0;
};

}  // namespace rq::queue
