// The expired prefix of a TopicLog, found by segment summaries and a binary search over one segment's metadata (page 30 section
// 9.2).
#include <algorithm>
#include <limits>

#include "core/storage/topic_log.h"

namespace rq::storage {
namespace {
constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
}  // namespace

bool TopicLog::expired_prefix(Position after, std::int64_t cutoff_ns, std::uint64_t limit, Prefix& out) {
  out = {after, 0, kNever};
  const auto take = [&](const SegmentInfo& segment, Position stored_last) {
    const Position first = std::max(segment.first_position, after + 1);
    if (segment.message_count == 0 || first > segment.last_position) return Lookup::found;
    out.next_timestamp_ns = segment.first_timestamp_ns;
    if (segment.first_timestamp_ns > cutoff_ns || out.count == limit || first > stored_last) return Lookup::absent;
    const Position last = std::min(stored_last, first + (limit - out.count - 1));
    Position through = last;
    if (segment.last_timestamp_ns > cutoff_ns) {
      if (!search(first, last, cutoff_ns)) return Lookup::loading;
      through = search_->low;
      if (search_->high <= last) out.next_timestamp_ns = search_->high_timestamp_ns;
      search_.reset();
    }
    if (through >= first) {
      out.count += through - first + 1;
      out.through = through;
    }
    if (through < segment.last_position) return Lookup::absent;
    out.next_timestamp_ns = kNever;
    return Lookup::found;
  };
  for (const SegmentInfo& segment : sealed_) {
    const Lookup lookup = take(segment, segment.last_position);
    if (lookup != Lookup::found) return lookup == Lookup::absent;
  }
  return take(active_, std::min(active_.last_position, durable_)) != Lookup::loading;
}

bool TopicLog::search(Position first, Position last, std::int64_t cutoff_ns) {
  if (!search_ || search_->first != first || search_->last != last || search_->cutoff_ns != cutoff_ns)
    search_ = Search{first, last, first - 1, last + 1, cutoff_ns, 0};
  Search& s = *search_;
  while (s.high - s.low > 1) {
    const Position middle = s.low + (s.high - s.low) / 2;
    MessageMeta meta;
    if (find(middle, meta) == Lookup::loading) return false;
    if (meta.timestamp_ns <= cutoff_ns) {
      s.low = middle;
    } else {
      s.high = middle;
      s.high_timestamp_ns = meta.timestamp_ns;
    }
  }
  return true;
}

std::int64_t TopicLog::oldest_timestamp_after(Position after) const {
  for (const SegmentInfo& segment : sealed_)
    if (segment.message_count > 0 && segment.last_position > after) return segment.first_timestamp_ns;
  return active_.message_count > 0 && active_.last_position > after ? active_.first_timestamp_ns : kNever;
}

std::uint64_t TopicLog::stored_after(Position after) const {
  const auto behind = [after](const SegmentInfo& segment) -> std::uint64_t {
    if (segment.message_count == 0 || segment.last_position <= after) return 0;
    return segment.last_position - std::max(segment.first_position - 1, after);
  };
  std::uint64_t sum = behind(active_);
  for (const SegmentInfo& segment : sealed_) sum += behind(segment);
  return sum;
}

}  // namespace rq::storage
