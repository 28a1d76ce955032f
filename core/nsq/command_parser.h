// Splits a received NSQ V2 stream into command lines, body sizes and bodies (page 10 section 1.5). What a line means, and whether
// a body follows it, its user decides: the parser is told after each line.
//
//   next() == line   command() is valid until the next call; then expect_size() if a body follows
//   next() == size   size() is the signed 32-bit size; then take_body() or skip_body()
//   next() == room   more of the body is there than may be held: more_room(), or clear()
//   next() == body   take() hands the body over
//
//  I1 Any split of a stream into slices gives the same steps.
//  I2 Memory: one line, what push() brought and is not consumed yet, and one body of what take_body() and more_room() allowed.
//  I3 A body that lies within one received slice is a part of it, otherwise it is copied into a chunk of the size that is
//     allowed; once, when all of it is.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/slice.h"

namespace rq::nsq {

inline constexpr std::uint32_t kLineBytesMax = 1'024;  // D-01, the line feed included

// Views into the parser's line.
struct Command {
  std::string_view name;
  std::array<std::string_view, 2> params;  // the first ones; more are tolerated and ignored
  std::uint32_t param_count = 0;
};

// `line` without its line feed; one carriage return at its end is removed.
Command split_line(std::string_view line);

class CommandParser {
 public:
  enum class Step : std::uint8_t { need_more, line, line_too_long, size, room, body, skipped };

  void push(Slice data);
  Step next();  // after line_too_long nothing more is parsed
  // Moves input to `out` until it has `bytes` of them; for the magic before the first line.
  bool take_prefix(std::string& out, std::size_t bytes);

  const Command& command() const { return command_; }
  void expect_size();
  std::int32_t size() const { return size_; }
  void take_body() { take_body(static_cast<std::uint32_t>(size_)); }
  void take_body(std::uint32_t room);  // size() > 0; at most `room` bytes of it are held until more_room()
  // After next() == room: how many bytes would do, at most size() and twice of what is there; then `room` of them may be held.
  std::uint32_t room_wanted() const;
  void more_room(std::uint32_t room);
  void skip_body();  // size() > 0; the bytes are dropped as they come
  Slice take() { return std::move(body_); }

  // While a body arrives: its first bytes, in one piece.
  ConstBuf arrived() const;

  // True when a command has begun: part of a line, or a line whose body is not complete.
  bool inside_command() const { return state_ != State::line || (!line_done_ && !line_.empty()); }
  // The name of the command whose body is awaited; empty while the line is not complete.
  std::string_view awaited() const { return state_ == State::line ? std::string_view() : command_.name; }
  bool awaiting_size() const { return state_ == State::size; }
  bool awaiting_body() const { return state_ == State::body; }
  bool has_input() const { return !front_.empty(); }
  std::vector<Slice> take_rest();  // input behind the command that next() brought last; it leaves the parser
  void clear();                    // drops all input

 private:
  enum class State : std::uint8_t { line, size, body, skip, stuck };
  Step next_line();
  Step next_size();
  Step next_body();
  Step next_skip();
  void consume(std::uint32_t bytes);  // from front_
  std::uint32_t filled() const { return static_cast<std::uint32_t>(size_) - left_; }
  void gather();  // a chunk for the room there is, with what was gathered before

  State state_ = State::line;
  Slice front_;              // not empty while there is input
  std::vector<Slice> more_;  // behind it
  std::string line_;
  bool line_done_ = false;  // line_ was handed out
  Command command_;
  std::array<std::byte, 4> size_bytes_{};
  std::uint32_t size_filled_ = 0;
  std::int32_t size_ = 0;
  std::uint32_t left_ = 0;  // of the body
  std::uint32_t room_ = 0;  // of its bytes that may be held
  Slice gathered_;          // body that straddles slices, filled up to filled()
  std::byte* fill_ = nullptr;
  Slice body_;
};

}  // namespace rq::nsq
