// Channels that found none left of what all Topics share (message slots, reads), in the order in which they did. What comes back
// is offered to them first, one after the other: whoever gave it back stands behind them.
//
//  I1 While somebody waits nobody takes, except the one whose turn it is.
//  I2 A Channel waits at most once, and not after its turn has come.
#pragma once

#include <deque>

namespace rq::queue {

class ChannelLane;

class LaneTurns {
 public:
  // `waits` is the Channel's mark for this queue.
  explicit LaneTurns(bool ChannelLane::*waits) : waits_(waits) {}

  bool empty() const { return waiting_.empty(); }
  bool may_take(const ChannelLane& lane) const { return waiting_.empty() || &lane == served_; }
  void wait(ChannelLane& lane);
  ChannelLane& serve_next();  // not empty; until served()
  void served() { served_ = nullptr; }
  void forget(ChannelLane& lane);

 private:
  bool ChannelLane::*waits_;
  std::deque<ChannelLane*> waiting_;
  const ChannelLane* served_ = nullptr;
};

}  // namespace rq::queue
