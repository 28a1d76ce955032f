// A listening TCP port: binds, then accepts one connection after another once it is enabled. A failed accept pauses and is
// tried again; it never ends the process and never spins (D-37).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/io/ports.h"

namespace rq::broker {

class Listener {
 public:
  static constexpr std::int64_t kRetryNs = 100 * kMillisecond;

  explicit Listener(io::Host& host);

  void listen(std::string_view address);
  bool listening() const { return stream_ != io::StreamId::none; }
  bool failed() const { return failed_; }
  const std::string& failure() const { return failure_; }
  std::uint16_t port() const { return port_; }

  void enable() { enabled_ = true; }
  std::vector<io::StreamId> take_accepted() { return std::move(accepted_); }
  void settle(Now now);  // submits the next accept when it is time
  Instant next_deadline() const { return retry_ ? retry_at_ : Instant::never(); }
  void close();  // accepted streams that nobody took are closed too

 private:
  void on_listen(io::Op& op);
  void on_accept(io::Op& op);

  io::Host& host_;
  io::Op listen_, accept_;
  io::StreamId stream_ = io::StreamId::none;
  std::string address_, failure_;
  std::uint16_t port_ = 0;
  bool failed_ = false, enabled_ = false, closed_ = false;
  bool failing_ = false;  // since the last connection
  bool retry_ = false, retry_new_ = false;
  Instant retry_at_;
  std::vector<io::StreamId> accepted_;
};

}  // namespace rq::broker
