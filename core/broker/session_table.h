// All NSQ connections of a Broker (core/broker/slot_table.h), and the routes of the engine's answers to them.
#pragma once

#include "core/broker/session.h"
#include "core/broker/slot_table.h"

namespace rq::broker {

class SessionTable {
 public:
  explicit SessionTable(SessionEnv& env) : env_(env) {}

  void add(io::StreamId stream, Now now);
  std::size_t size() const { return table_.size(); }
  Session* at(std::uint32_t slot) { return table_.at(slot); }

  // Routes one batch of engine events. Answers for sessions that are gone are impossible (I1); deliveries for them are dropped.
  void route(queue::Events& events, Now now);
  void on_auth(AuthAnswer answer, Now now);
  // Lets sessions with work take it; false when none had any.
  bool resume(Now now) { return table_.resume(env_.dirty, now); }
  // End of the turn: writes, reads, deaths, new deadlines.
  void flush(Now now) {
    table_.flush(now, [](const Session&) {});
  }
  void expire(Now now) { table_.expire(now); }
  Instant next_deadline() const { return table_.next_deadline(); }

  template <class F>
  void for_each(F&& f) {
    table_.for_each(f);
  }
  template <class F>
  void for_each(F&& f) const {
    table_.for_each(f);
  }

 private:
  SessionEnv& env_;
  SlotTable<Session> table_;
};

}  // namespace rq::broker
