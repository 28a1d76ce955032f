// The arrivals of a fixed-rate run: command n is due at n * batch / rate seconds after the start, whatever became of the earlier
// ones. Command n belongs to producer n mod producers.
#pragma once

#include <cstdint>

#include "core/base/time.h"

namespace rq::load {

class Schedule {
 public:
  // rate: messages per second, over all producers; batch: messages per command. Both above 0.
  Schedule(std::uint64_t rate, std::uint64_t batch) : rate_(rate), batch_(batch) {}

  // Nanoseconds after the start. Exact: the error does not grow with n.
  std::int64_t due_ns(std::uint64_t n) const {
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::int64_t>(static_cast<Wide>(n) * batch_ * kSecond / rate_);
  }
  // How many commands are due strictly before `seconds` after the start.
  std::uint64_t commands_within(std::uint64_t seconds) const { return (seconds * rate_ + batch_ - 1) / batch_; }

 private:
  std::uint64_t rate_, batch_;
};

}  // namespace rq::load
