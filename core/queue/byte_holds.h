// The node's budget for bodies on their way to consumers (page 30 section 7.3): twice the bytes of what is handed over, taken
// before it is read and given back when it has left the delivery path. Who finds no room waits in the order of asking.
//
//  I1 in_use() <= limit(), and whoever asks while somebody waits, waits behind.
//  I2 A waiter is granted once, or takes itself back; nothing is held for it before.
#pragma once

#include <cstdint>
#include <deque>

#include "core/base/check.h"

namespace rq::queue {

class ByteHolds {
 public:
  struct Waiter {
    std::uint64_t bytes = 0;  // asked for
    bool granted = false;     // they are held now
    void (*grant)(Waiter&) = nullptr;
    void* self = nullptr;
  };

  // `limit` in bytes, at least 1.
  explicit ByteHolds(std::uint64_t limit) : limit_(limit) {}

  std::uint64_t limit() const { return limit_; }
  std::uint64_t in_use() const { return in_use_; }
  std::uint64_t waiting() const { return waiting_.size(); }
  std::uint64_t waited() const { return waited_; }  // ever

  // True: held. Never waits; false while anybody does, unless nothing is asked for.
  bool take(std::uint64_t bytes);
  // Holds at once or joins the waiters. `waiter.bytes` <= limit(); it stays alive until it is granted or withdrawn.
  void ask(Waiter& waiter);
  void withdraw(Waiter& waiter);  // gives back what it holds, or leaves the queue
  void give_back(std::uint64_t bytes);
  void close() { waiting_.clear(); }  // nobody is granted any more

 private:
  void serve();

  std::uint64_t limit_;
  std::uint64_t in_use_ = 0, waited_ = 0;
  std::deque<Waiter*> waiting_;
};

}  // namespace rq::queue
