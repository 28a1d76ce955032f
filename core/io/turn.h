// The turn: the only place where machines run (docs/architecture.md).
//
//   collect   ports put finished Ops into the inbox
//   deliver   each Op goes to its machine (Op::done), at depth 0; `now` is frozen
//   expire    machines whose deadline has come
//   settle    effects are coalesced and the ports are called
#pragma once

#include "core/io/ports.h"

namespace rq::io {

// The logic of one shard: a Broker, or a simulated client process.
struct Shard {
  virtual void expire(Now) = 0;  // deadlines that have come
  virtual void settle(Now) = 0;  // submit appends, barriers, writes
  virtual Instant next_deadline() const = 0;

 protected:
  ~Shard() = default;
};

class Turn {
 public:
  Turn(Clock& clock, Waker& waker) : clock_(clock), waker_(waker) {}

  // Called by ports, in any phase: the Op is delivered by the next run(), never inline.
  void complete(Op& op, Error error, std::uint64_t value = 0);

  bool pending() const { return head_ != nullptr; }
  const Now& now() const { return now_; }  // frozen while run() is active

  // The shard is going away without another turn (a simulated crash): Ops that wait for delivery are never delivered.
  void abandon();

  // One turn. Ops completed during it wait for the next one.
  void run(Shard& shard);

  std::uint64_t turns() const { return turns_; }
  std::uint64_t delivered() const { return delivered_; }

 private:
  Clock& clock_;
  Waker& waker_;
  Op* head_ = nullptr;
  Op** tail_ = &head_;
  Now now_{};
  bool running_ = false;
  std::uint64_t turns_ = 0;
  std::uint64_t delivered_ = 0;
};

// Marks an Op as submitted; ports call it first. An Op that is still in flight must not be submitted again.
inline void submit(Op& op) {
  RQ_CHECK(!op.in_flight && op.done != nullptr);
  op.in_flight = true;
  op.next = nullptr;
  op.error = {};
  op.value = 0;
}

}  // namespace rq::io
