// A reader of live feeds among the actors: upgrades on one Topic again and again, reads, stops reading for a while, hangs up. It
// holds the Broker to the form of frames and codes, and to sending nothing twice on a connection.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "sim/actor.h"

namespace rq::sim {

class FeedReader final : public Actor {
 public:
  FeedReader(Stage& stage, io::Host& host, std::string address, std::string topic);

 private:
  enum class Step : std::uint8_t { head, frames, done };
  void on_connected(Now now) override;
  void on_bytes(Now now) override;
  void on_frame(Frame&, Now) override {}
  void on_closed(Now now) override;
  void on_time(Now now) override;
  Instant next_time() const override;
  bool wants_connection() const override { return !stage_.calm; }
  std::int64_t silence_ns() const override;
  bool take_head();
  bool take_frame(Now now);
  void on_text(std::string_view text);
  void on_message(std::string_view frame);

  std::string topic_;
  Step step_ = Step::head;
  bool ready_ = false;
  std::string code_;             // of the error control, whose close frame comes next
  std::set<std::uint64_t> ids_;  // of this connection
  Instant moody_at_{};           // when it stops or starts reading, or hangs up
};

}  // namespace rq::sim
