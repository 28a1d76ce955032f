#include "core/queue/lane_turns.h"

#include <algorithm>
#include <utility>

#include "core/base/check.h"
#include "core/queue/channel_lane.h"

namespace rq::queue {

void LaneTurns::wait(ChannelLane& lane) {
  if (!std::exchange(lane.*waits_, true)) waiting_.push_back(&lane);
}

ChannelLane& LaneTurns::serve_next() {
  RQ_CHECK(!waiting_.empty() && served_ == nullptr);
  ChannelLane& lane = *waiting_.front();
  waiting_.pop_front();
  lane.*waits_ = false;
  served_ = &lane;
  return lane;
}

void LaneTurns::forget(ChannelLane& lane) {
  if (served_ == &lane) served_ = nullptr;
  if (std::exchange(lane.*waits_, false)) std::erase(waiting_, &lane);
}

}  // namespace rq::queue
