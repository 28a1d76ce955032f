// One client connection of a simulated process: connects, keeps one read and one write running, and collects what arrives.
// A machine like any other: the owner calls submit() in every settle.
//
//  I1 A Link is opened once. To connect again its owner waits for idle() and makes a new one.
//  I2 Bytes leave in the order of send(); one write carries at most one piece.
#pragma once

#include <deque>
#include <string>
#include <string_view>

#include "core/io/ports.h"

namespace rq::sim {

class Link {
 public:
  explicit Link(io::Host& host);
  Link(const Link&) = delete;

  void open(std::string_view address, Instant deadline);
  void send(std::string_view bytes);        // joined with what waits
  void send_piece(std::string_view bytes);  // a write of its own
  void shutdown_write();                    // after everything sent so far
  void close();
  void submit();  // starts what can be started

  bool opened() const { return opened_; }        // open() was called
  bool connected() const { return connected_; }  // and the connection stood; stays true after its end
  bool ended() const { return ended_; }          // refused, closed by either side, or reset
  bool was_reset() const { return reset_; }
  bool idle() const { return !connect_.in_flight && !read_.in_flight && !write_.in_flight; }
  io::StreamId stream() const { return stream_; }
  std::size_t unsent() const { return pieces_.size(); }

  bool reading = true;
  std::string inbox;  // received and not yet consumed by the owner

 private:
  void on_connect(io::Op& op);
  void on_read(io::ReadOp& op);
  void on_write(io::Op& op);
  void end(bool reset);

  io::Host& host_;
  ChunkPool pool_{16 * 1024, 2};
  io::Op connect_;
  io::ReadOp read_;
  io::Op write_;
  io::StreamId stream_ = io::StreamId::none;
  std::deque<std::string> pieces_;
  std::size_t written_ = 0;  // of pieces_.front()
  bool opened_ = false, connected_ = false, ended_ = false, reset_ = false;
  bool joinable_ = false;  // send() may add to pieces_.back()
  bool half_close_ = false, half_closed_ = false, peer_done_ = false;
};

}  // namespace rq::sim
