// One consumer: bytes in, bytes out, no socket. It finishes every message and tells ours from others by what the body says.
//
//  I1 stop() sends CLS behind the FINs so far; messages that arrive before CLOSE_WAIT are finished too.
//  I2 After CLOSE_WAIT the owner ends its side of the connection and waits for the server's end: then every FIN was taken.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "bench/load/body.h"
#include "bench/load/frames.h"
#include "bench/load/id_ranges.h"

namespace rq::load {

// What all consumers of a run received.
struct Deliveries {
  IdRanges unique;
  std::uint64_t total = 0;
  bool counting = true;  // false: messages are finished and not counted
};

class Consumer {
 public:
  static constexpr std::uint32_t kReady = 2'500, kRefillAt = 625;

  Consumer(const Body& body, Deliveries& deliveries) : body_(body), deliveries_(deliveries) {}

  void subscribe(std::string_view topic, std::string_view channel, std::string& out);
  void on_bytes(ConstBuf bytes, std::string& out);
  void stop(std::string& out);

  bool subscribed() const { return state_ != State::subscribing; }
  bool close_wait() const { return state_ == State::close_wait; }
  const std::string& error() const { return error_; }

 private:
  enum class State : std::uint8_t { subscribing, consuming, stopping, close_wait };
  void on_frame(const Frame& frame, std::string& out);
  void on_response(std::string_view payload, std::string& out);
  void on_message(ConstBuf payload, std::string& out);
  void fail(std::string why);

  const Body& body_;
  Deliveries& deliveries_;
  Frames frames_;
  State state_ = State::subscribing;
  std::uint32_t credit_ = 0;  // of the last RDY
  std::string error_;
};

}  // namespace rq::load
