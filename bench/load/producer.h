// One producer: bytes in, bytes out, no socket. One command is on its way at a time; its OK is one latency sample.
#pragma once

#include <cstdint>
#include <string>

#include "bench/load/body.h"
#include "bench/load/frames.h"
#include "core/base/time.h"

namespace rq::load {

class Producer {
 public:
  Producer(std::string_view topic, const Body& body, std::uint32_t batch_size) : command_(topic, body, batch_size) {}

  bool waiting() const { return count_ > 0; }
  // The next command; the bytes stay valid until it is answered. `since`: where its latency starts.
  ConstBuf publish(std::uint64_t first, std::uint32_t count, Instant since);

  struct Answered {
    std::uint32_t messages = 0;  // 0: nothing was answered
    Instant since{};
  };
  // Heartbeats are answered into `out`. An answer other than OK sets error().
  Answered on_bytes(ConstBuf bytes, std::string& out);
  const std::string& error() const { return error_; }

 private:
  void on_frame(const Frame& frame, std::string& out, Answered& answered);

  Command command_;
  Frames frames_;
  std::uint32_t count_ = 0;  // of the command on its way
  Instant since_{};
  std::string error_;
};

}  // namespace rq::load
