// One connection of the load generator over the ports: connects, keeps one read and one write running.
//
//  I1 A Link that has something for its owner, or something to submit, stands once in the list of active Links; the owner goes
//     through that list in every settle and calls take() and submit().
//  I2 Bytes leave in the order text, then command; a command lies with the producer until command_pending() is false.
//  I3 It may be destroyed when idle().
#pragma once

#include <string>
#include <vector>

#include "core/io/ports.h"

namespace rq::load {

class Link {
 public:
  Link(io::Host& host, ChunkPool& pool, std::vector<Link*>& active, std::uint32_t index);
  Link(const Link&) = delete;

  void open(std::string_view address, Instant deadline);
  std::string& text() {  // commands to be written; the caller appends
    mark();
    return text_;
  }
  void send_command(ConstBuf command);
  bool command_pending() const { return !command_.empty() || busy_command_ > 0; }
  void shutdown_write();  // after everything sent so far
  void close();
  void submit();  // starts what can be started

  Slice take() { return std::move(received_); }  // empty: nothing new
  std::uint32_t index() const { return index_; }
  bool connected() const { return connected_; }
  bool ended() const { return ended_; }  // refused, closed by either side, or reset
  io::Error why() const { return why_; }
  bool idle() const { return !connect_.in_flight && !read_.in_flight && !write_.in_flight; }
  void unmark() { marked_ = false; }

 private:
  void mark();
  void end(io::Error why);
  void on_connect(io::Op& op);
  void on_read(io::ReadOp& op);
  void on_write(io::Op& op);

  io::Host& host_;
  ChunkPool& pool_;
  std::vector<Link*>& active_;
  std::uint32_t index_;
  io::Op connect_;
  io::ReadOp read_;
  io::Op write_;
  io::StreamId stream_ = io::StreamId::none;
  std::string text_, busy_text_;  // waiting; being written
  ConstBuf command_;
  std::size_t busy_command_ = 0;  // bytes of the command in the write under way
  ConstBuf busy_command_bytes_;
  std::size_t written_ = 0;  // of busy_text_ and the command behind it
  Slice received_;
  io::Error why_{};
  bool marked_ = false, connected_ = false, ended_ = false, half_close_ = false, half_closed_ = false;
};

}  // namespace rq::load
