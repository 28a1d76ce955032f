// What one live feed has to write: control bytes (the 101, texts, pings, closes) and at most one message, one write at a time.
//
//  I1 A message that was begun is finished before anything else; nothing is put inside it.
//  I2 Its body is written from its chunk.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/slice.h"
#include "core/io/ports.h"
#include "core/ws/frame.h"

namespace rq::broker {

class LiveOutput {
 public:
  std::string& controls() { return staged_; }  // appended here they leave in order
  std::size_t unsent_controls() const { return staged_.size(); }
  void message(std::string header, Slice body);  // there is none
  void drop_message();                           // not begun
  bool has_message() const { return has_message_; }
  bool in_message() const { return in_message_; }  // begun and not finished
  bool in_controls() const { return !sending_.empty(); }
  bool empty() const { return staged_.empty() && sending_.empty() && !has_message_; }

  // Starts the next write unless one is on its way. True when the write is the first of its batch or message.
  bool submit(io::Net& net, io::StreamId stream, io::Op& op);
  // So many bytes were taken. True when the message is complete.
  bool advance(std::uint64_t bytes);

 private:
  std::string staged_, sending_;
  bool has_message_ = false, in_message_ = false;
  std::string header_;
  Slice body_;
  std::size_t done_ = 0;  // of what is being written
};

}  // namespace rq::broker
