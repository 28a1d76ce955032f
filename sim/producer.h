// A producer: PUB, MPUB and DPUB with several outstanding on one connection, answers matched in order (D-17). What is unanswered
// when the connection ends is ambiguous; the three definite refusals are recorded as such.
#pragma once

#include <deque>

#include "sim/actor.h"

namespace rq::sim {

class Producer final : public Actor {
 public:
  Producer(Stage& stage, io::Host& host, std::string address, std::uint32_t number);
  bool idle() const { return outstanding_.empty(); }
  std::uint64_t sent() const { return sent_; }

 private:
  void on_connected(Now now) override;
  void on_frame(Frame& frame, Now now) override;
  void on_closed(Now now) override;
  void on_time(Now now) override;
  Instant next_time() const override;
  bool wants_connection() const override { return more() || !idle(); }
  std::int64_t silence_ns() const override;
  bool more() const;
  void publish(Now now);
  std::string body();

  std::uint32_t number_;
  std::uint64_t sent_ = 0, bodies_ = 0;
  std::deque<ledger::PublishRef> outstanding_;
  Instant next_publish_{};
};

}  // namespace rq::sim
