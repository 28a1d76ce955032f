// A Topic's log as a Channel sees it, kept in a map: for tests of the Channel alone.
#pragma once

#include <algorithm>
#include <map>
#include <set>

#include "core/queue/view.h"

namespace rq::queue::test {

class VectorView final : public MessageView {
 public:
  static constexpr MessageId kIdBase = MessageId{1} << 48;

  // Appends one message and makes it visible. The id follows from the position.
  Position publish(Now now, std::int64_t delay_ms = 0) {
    const Position position = next_++;
    MessageMeta meta;
    meta.position = position;
    meta.id = id(position);
    meta.timestamp_ns = std::max(now.wall.ns, last_timestamp_ns_);
    meta.available_at_ms = now.wall.ms() + delay_ms;
    meta.body_bytes = 1;
    last_timestamp_ns_ = meta.timestamp_ns;
    messages_.emplace_hint(messages_.end(), position, meta);
    if (delay_ms > 0) steady_[position] = now.mono + delay_ms * kMillisecond;
    deliverable_ = position;
    return position;
  }
  static MessageId id(Position position) { return kIdBase + position; }
  // Positions that were given out but whose messages were lost.
  void lose(std::uint64_t count) {
    next_ += count;
    deliverable_ = next_ - 1;
  }
  // Collected, or never there.
  void remove(Position first, Position last) { messages_.erase(messages_.lower_bound(first), messages_.upper_bound(last)); }
  // A new process: the steady times of delays are forgotten.
  void restart() { steady_.clear(); }
  void set_loading(Position position, bool loading) {
    if (loading)
      loading_.insert(position);
    else
      loading_.erase(position);
  }
  bool present(Position position) const { return messages_.count(position) != 0; }
  const MessageMeta& at(Position position) const { return messages_.at(position); }
  const std::map<Position, MessageMeta>& messages() const { return messages_; }
  std::uint64_t finds() const { return finds_; }

  Lookup find(Position position, MessageMeta& out) override {
    ++finds_;
    if (loading_.count(position) != 0) return Lookup::loading;
    const auto found = messages_.find(position);
    if (found == messages_.end()) return Lookup::absent;
    out = found->second;
    return Lookup::found;
  }
  Position deliverable() const override { return deliverable_; }
  Position next_present(Position from) const override {
    const auto at = messages_.lower_bound(from);
    return at == messages_.end() ? deliverable_ + 1 : at->first;
  }
  std::uint64_t absent_count(Position first, Position last) const override {
    if (first > last) return 0;
    const auto present = std::distance(messages_.lower_bound(first), messages_.upper_bound(last));
    return last - first + 1 - static_cast<std::uint64_t>(present);
  }
  Due due(const MessageMeta& message) const override {
    if (message.available_at_ms <= message.timestamp_ns / kMillisecond) return {WallTime{0}, Instant::never()};
    const auto steady = steady_.find(message.position);
    return {WallTime{message.available_at_ms * kMillisecond}, steady == steady_.end() ? Instant::never() : steady->second};
  }

 private:
  std::map<Position, MessageMeta> messages_;
  std::map<Position, Instant> steady_;
  std::set<Position> loading_;
  Position next_ = 1;
  Position deliverable_ = 0;
  std::int64_t last_timestamp_ns_ = 0;
  std::uint64_t finds_ = 0;
};

}  // namespace rq::queue::test
