#include "core/queue/byte_holds.h"

#include <algorithm>

#include "core/base/probe.h"

namespace rq::queue {

bool ByteHolds::take(std::uint64_t bytes) {
  if (bytes == 0) return true;
  if (!waiting_.empty() || bytes > limit_ - in_use_) return false;
  in_use_ += bytes;
  return true;
}

void ByteHolds::ask(Waiter& waiter) {
  RQ_CHECK(waiter.bytes <= limit_ && !waiter.granted);
  if (take(waiter.bytes)) {
    waiter.granted = true;
    return waiter.grant(waiter);
  }
  RQ_SOMETIMES(true, "delivery: a batch waits for the node's byte budget");
  ++waited_;
  waiting_.push_back(&waiter);
}

void ByteHolds::withdraw(Waiter& waiter) {
  if (waiter.granted) {
    waiter.granted = false;
    return give_back(waiter.bytes);
  }
  const auto found = std::find(waiting_.begin(), waiting_.end(), &waiter);
  if (found == waiting_.end()) return;
  waiting_.erase(found);
  serve();  // it may have been the one that did not fit
}

void ByteHolds::give_back(std::uint64_t bytes) {
  RQ_CHECK(bytes <= in_use_);
  in_use_ -= bytes;
  serve();
}

void ByteHolds::serve() {
  while (!waiting_.empty() && waiting_.front()->bytes <= limit_ - in_use_) {
    Waiter& first = *waiting_.front();
    waiting_.pop_front();
    in_use_ += first.bytes;
    first.granted = true;
    first.grant(first);
  }
}

}  // namespace rq::queue
