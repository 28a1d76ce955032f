#include "core/nsq/command_parser.h"

#include <algorithm>
#include <cstring>

#include "core/base/check.h"

namespace rq::nsq {

Command split_line(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  Command command;
  std::size_t space = line.find(' ');
  command.name = line.substr(0, space);
  while (space != std::string_view::npos) {
    line.remove_prefix(space + 1);
    space = line.find(' ');
    if (command.param_count < command.params.size()) command.params[command.param_count] = line.substr(0, space);
    ++command.param_count;
  }
  return command;
}

void CommandParser::push(Slice data) {
  if (data.empty() || state_ == State::stuck) return;
  if (front_.empty()) {
    front_ = std::move(data);
    return;
  }
  more_.push_back(std::move(data));
}

std::vector<Slice> CommandParser::take_rest() {
  std::vector<Slice> rest;
  if (!front_.empty()) rest.push_back(std::move(front_));
  for (Slice& slice : more_) rest.push_back(std::move(slice));
  front_ = {};
  more_.clear();
  return rest;
}

void CommandParser::clear() {
  front_ = {};
  more_.clear();
  gathered_ = {};
  body_ = {};
  fill_ = nullptr;
  state_ = State::stuck;
}

void CommandParser::consume(std::uint32_t bytes) {
  front_ = front_.sub(bytes, front_.size() - bytes);
  if (!front_.empty() || more_.empty()) return;
  front_ = std::move(more_.front());
  more_.erase(more_.begin());
}

bool CommandParser::take_prefix(std::string& out, std::size_t bytes) {
  while (out.size() < bytes && !front_.empty()) {
    const auto part = std::min(static_cast<std::uint32_t>(bytes - out.size()), front_.size());
    put_bytes(out, front_.bytes().first(part));
    consume(part);
  }
  return out.size() == bytes;
}

CommandParser::Step CommandParser::next() {
  switch (state_) {
    case State::line:
      return next_line();
    case State::size:
      return next_size();
    case State::body:
      return next_body();
    case State::skip:
      return next_skip();
    case State::stuck:
      break;
  }
  return Step::need_more;
}

CommandParser::Step CommandParser::next_line() {
  if (line_done_) {
    line_done_ = false;
    line_.clear();
  }
  while (!front_.empty()) {
    const auto room = kLineBytesMax - static_cast<std::uint32_t>(line_.size());
    const std::uint32_t looked = std::min(room, front_.size());
    const auto* begin = reinterpret_cast<const char*>(front_.data());
    const auto* feed = static_cast<const char*>(std::memchr(begin, '\n', looked));
    line_.append(begin, feed != nullptr ? static_cast<std::size_t>(feed - begin) : looked);
    if (feed != nullptr) {
      consume(static_cast<std::uint32_t>(feed - begin) + 1);
      command_ = split_line(line_);
      line_done_ = true;
      return Step::line;
    }
    if (line_.size() == kLineBytesMax) {
      clear();
      return Step::line_too_long;
    }
    consume(looked);
  }
  return Step::need_more;
}

void CommandParser::expect_size() {
  RQ_CHECK(state_ == State::line && line_done_);
  state_ = State::size;
  size_filled_ = 0;
}

CommandParser::Step CommandParser::next_size() {
  while (size_filled_ < 4 && !front_.empty()) {
    const std::uint32_t part = std::min(4 - size_filled_, front_.size());
    std::memcpy(size_bytes_.data() + size_filled_, front_.data(), part);
    size_filled_ += part;
    consume(part);
  }
  if (size_filled_ < 4) return Step::need_more;
  size_ = static_cast<std::int32_t>(load32(size_bytes_.data()));
  state_ = State::stuck;  // until the user decides
  return Step::size;
}

void CommandParser::take_body(std::uint32_t room) {
  RQ_CHECK(size_filled_ == 4 && size_ > 0 && room > 0 && room <= static_cast<std::uint32_t>(size_));
  state_ = State::body;
  left_ = static_cast<std::uint32_t>(size_);
  room_ = room;
}

std::uint32_t CommandParser::room_wanted() const {
  const std::uint64_t doubled = 2 * (std::uint64_t{filled()} + front_.size());
  return static_cast<std::uint32_t>(std::min(doubled, static_cast<std::uint64_t>(size_)));
}

void CommandParser::more_room(std::uint32_t room) {
  RQ_CHECK(state_ == State::body && room > room_ && room <= static_cast<std::uint32_t>(size_));
  room_ = room;
  if (fill_ != nullptr) gather();
}

void CommandParser::gather() {
  Chunk* chunk = new_chunk(room_);
  if (filled() > 0) std::memcpy(chunk->data(), gathered_.data(), filled());
  gathered_ = Slice(chunk, chunk->data(), room_);
  fill_ = chunk->data() + filled();
}

void CommandParser::skip_body() {
  RQ_CHECK(size_filled_ == 4 && size_ > 0);
  state_ = State::skip;
  left_ = static_cast<std::uint32_t>(size_);
}

CommandParser::Step CommandParser::next_body() {
  const auto total = static_cast<std::uint32_t>(size_);
  if (room_ < total && std::uint64_t{filled()} + front_.size() > room_) return Step::room;
  if (fill_ == nullptr && front_.size() >= total) {
    body_ = front_.sub(0, total);
    left_ = 0;
    consume(total);
  } else if (fill_ == nullptr && !front_.empty()) {
    gather();
  }
  while (left_ > 0 && !front_.empty()) {
    const std::uint32_t part = std::min(left_, front_.size());
    std::memcpy(fill_, front_.data(), part);
    fill_ += part;
    left_ -= part;
    consume(part);
    if (room_ < total && std::uint64_t{filled()} + front_.size() > room_) return Step::room;
  }
  if (left_ > 0) return Step::need_more;
  if (fill_ != nullptr) body_ = std::move(gathered_);
  gathered_ = {};
  fill_ = nullptr;
  state_ = State::line;
  return Step::body;
}

ConstBuf CommandParser::arrived() const {
  if (state_ != State::body || fill_ == nullptr) return {};
  return gathered_.bytes().first(filled());
}

CommandParser::Step CommandParser::next_skip() {
  while (left_ > 0 && !front_.empty()) {
    const std::uint32_t part = std::min(left_, front_.size());
    left_ -= part;
    consume(part);
  }
  if (left_ > 0) return Step::need_more;
  state_ = State::line;
  return Step::skipped;
}

}  // namespace rq::nsq
