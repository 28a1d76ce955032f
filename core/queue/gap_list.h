// Absent positions that a Channel has met between its floor and its cursor: ascending, disjoint, never touching ranges. They
// count as finished without a WAL command and do not use up the ack window (page 30 sections 3.3 and 15). Few: one per lost tail.
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
  // Number of positions in it that are below `position`.
  std::uint64_t positions_below(Position position) const {
    if (ranges_.empty()) return 0;
    std::uint64_t count = positions_;
    for (auto at = ranges_.rbegin(); at != ranges_.rend() && at->last >= position; ++at)
      count -= at->last - std::max(at->first, position) + 1;
    return count;
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
