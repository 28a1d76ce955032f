// All NSQ connections of a Broker: by slot, by consumer, and by their earliest deadline.
//
//  I1 A slot is given to the next connection only after its session has no Op in flight and is owed no answer, so a late answer
//  always finds the session that asked. I2 Nothing here is proportional to the number of idle connections per turn.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/broker/deadline_heap.h"
#include "core/broker/session.h"

namespace rq::broker {

class SessionTable {
 public:
  explicit SessionTable(SessionEnv& env) : env_(env) {}

  void add(io::StreamId stream, Now now);
  std::size_t size() const { return count_; }
  Session* at(std::uint32_t slot) { return slot < slots_.size() ? slots_[slot].get() : nullptr; }

  // Routes one batch of engine events. Answers for sessions that are gone are impossible (I1); deliveries for them are dropped.
  void route(queue::Events& events, Now now);
  void on_auth(AuthAnswer answer, Now now);
  // Lets sessions with work take it; false when none had any.
  bool resume(Now now);
  // End of the turn: writes, reads, deaths, new deadlines.
  void flush(Now now);
  void expire(Now now);
  Instant next_deadline() const { return deadlines_.earliest(); }

  template <class F>
  void for_each(F&& f) {
    for (auto& session : slots_) {
      if (session != nullptr) f(*session);
    }
  }
  template <class F>
  void for_each(F&& f) const {
    for (const auto& session : slots_) {
      if (session != nullptr) f(static_cast<const Session&>(*session));
    }
  }

 private:
  Session* of_consumer(queue::ConsumerId consumer);
  void touch(std::uint32_t slot);

  SessionEnv& env_;
  std::vector<std::unique_ptr<Session>> slots_;
  std::vector<queue::ConsumerId> consumer_of_;  // by slot: what consumers_ holds for it
  std::vector<std::uint32_t> free_;
  std::size_t count_ = 0;
  boost::unordered_flat_map<std::uint64_t, std::uint32_t> consumers_;
  DeadlineHeap deadlines_;
  std::vector<std::uint32_t> touched_, work_;
};

}  // namespace rq::broker
