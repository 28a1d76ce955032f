#include "core/storage/memory_log.h"

#include <iterator>
#include <limits>

#include "core/base/check.h"

namespace rq::storage {

void MemoryLog::append(const Slice& body, MessageMeta meta, Instant due, std::uint32_t holders) {
  meta.position = next_position_++;
  meta.body_bytes = body.size();
  budget_.used_bytes += cost(body);
  // A small body does not hold on to the chunk that it was received in.
  const bool keeps_chunk = body.size() >= body.pinned_bytes() / 4 * 3;
  entries_.emplace_hint(entries_.end(), meta.position,
                        Entry{meta, keeps_chunk ? body : Slice::copy_of(body.bytes()), due, holders});
}

void MemoryLog::hold(Position position) {
  const auto found = entries_.find(position);
  RQ_CHECK(found != entries_.end());
  ++found->second.holders;
}

void MemoryLog::release(Position position) {
  const auto found = entries_.find(position);
  if (found == entries_.end()) return;
  RQ_CHECK(found->second.holders > 0);
  if (--found->second.holders == 0) erase(found);
}

void MemoryLog::let_stay(Position position) {
  const auto found = entries_.find(position);
  RQ_CHECK(found != entries_.end() && found->second.holders > 0);
  --found->second.holders;
}

void MemoryLog::erase(std::map<Position, Entry>::iterator at) {
  budget_.used_bytes -= cost(at->second.body);
  entries_.erase(at);
}

void MemoryLog::clear() {
  while (!entries_.empty()) erase(entries_.begin());
}

void MemoryLog::drop_unheld(Position through) {
  for (auto at = entries_.begin(); at != entries_.end() && at->first <= through;) {
    const auto entry = at++;
    if (entry->second.holders == 0) erase(entry);
  }
}

bool MemoryLog::expired_prefix(Position after, std::int64_t cutoff_ns, std::uint64_t limit, Prefix& out) {
  out = {after, 0, std::numeric_limits<std::int64_t>::max()};
  for (auto at = entries_.upper_bound(after); at != entries_.end(); ++at) {
    if (out.count == limit || at->second.meta.timestamp_ns > cutoff_ns) {
      out.next_timestamp_ns = at->second.meta.timestamp_ns;
      break;
    }
    out.through = at->first;
    ++out.count;
  }
  return true;
}

std::int64_t MemoryLog::oldest_timestamp_after(Position after) const {
  const auto found = entries_.upper_bound(after);
  return found == entries_.end() ? std::numeric_limits<std::int64_t>::max() : found->second.meta.timestamp_ns;
}

std::uint64_t MemoryLog::stored_after(Position after) const {
  return static_cast<std::uint64_t>(std::distance(entries_.upper_bound(after), entries_.end()));
}

Slice MemoryLog::cached_body(Position position) const {
  const auto found = entries_.find(position);
  return found == entries_.end() ? Slice() : found->second.body;
}

std::vector<Range> MemoryLog::maybe_delayed(std::int64_t now_ms) const {
  std::vector<Range> ranges;
  for (const auto& [position, entry] : entries_)
    if (entry.meta.available_at_ms > now_ms) ranges.push_back({position, position});
  return ranges;
}

Lookup MemoryLog::find(Position position, MessageMeta& out) {
  const auto found = entries_.find(position);
  if (found == entries_.end()) return Lookup::absent;
  out = found->second.meta;
  return Lookup::found;
}

Position MemoryLog::next_present(Position from) const {
  const auto found = entries_.lower_bound(from);
  return found == entries_.end() ? next_position_ : found->first;
}

MessageView::Due MemoryLog::due(const MessageMeta& message) const {
  if (message.available_at_ms <= message.timestamp_ns / kMillisecond) return {WallTime{std::numeric_limits<std::int64_t>::min()}};
  std::int64_t wall_ns = 0;
  if (__builtin_mul_overflow(message.available_at_ms, kMillisecond, &wall_ns)) wall_ns = std::numeric_limits<std::int64_t>::max();
  const auto found = entries_.find(message.position);
  return {WallTime{wall_ns}, found == entries_.end() ? Instant::never() : found->second.due};
}

}  // namespace rq::storage
