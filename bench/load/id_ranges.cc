#include "bench/load/id_ranges.h"

#include <iterator>

namespace rq::load {

bool IdRanges::insert(std::uint64_t id) {
  auto after = ranges_.upper_bound(id);
  const bool before_it = after != ranges_.begin();
  auto before = before_it ? std::prev(after) : ranges_.end();
  if (before_it && id <= before->second) return false;
  ++count_;
  const bool joins_before = before_it && before->second + 1 == id;
  const bool joins_after = after != ranges_.end() && id + 1 == after->first;
  if (joins_before && joins_after) {
    before->second = after->second;
    ranges_.erase(after);
  } else if (joins_before) {
    before->second = id;
  } else if (joins_after) {
    const std::uint64_t last = after->second;
    ranges_.emplace_hint(ranges_.erase(after), id, last);
  } else {
    ranges_.emplace_hint(after, id, id);
  }
  return true;
}

}  // namespace rq::load
