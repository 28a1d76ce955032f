// One request after another to HTTP servers, each on a connection of its own: what a question of the Broker to AUTH or nsqlookupd
// has in common. The class derived from it says what to ask and judges the answer.
//
//   nothing -> connecting -> (shaking hands) -> writing -> reading -> nothing, with an answer or a failure
//
//  I1 Connecting has its limit, everything another one; an answer has at most kHeadBytesMax and body_bytes_max bytes, checked as
//     they come.
//  I2 on_answer() or on_failure() is called once for each start(), unless stop() came first. Neither is called inside start(),
//     settle() or stop().
//  I3 It lives until no Op of it is in flight; idle() says when. Only then start() may be called again.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/slice.h"
#include "core/http/response_parser.h"
#include "core/io/ports.h"

namespace rq::http {

struct FetchTarget {
  std::string address;      // "host:port"
  bool tls = false;         // the server's certificate is checked against the host of `address`
  std::string request;      // all of it, with "Connection: close"
  std::int64_t connect_ns;  // limits from start() on
  std::int64_t limit_ns;
};

class Fetch {
 public:
  static constexpr std::size_t kHeadBytesMax = 16 * 1024;

  Fetch(const Fetch&) = delete;
  void expire(Now now);
  Instant next_deadline() const { return deadline_; }

 protected:
  Fetch(io::Host& host, ChunkPool& pool, std::uint64_t body_bytes_max);
  ~Fetch() = default;

  void start(FetchTarget target, Now now);
  void settle(Now now);  // starts what can be started
  void stop();           // closes; nothing more is called
  bool running() const { return step_ != Step::none; }
  bool idle() const { return !op_.in_flight && !read_.in_flight; }
  const std::string& address() const { return target_.address; }

  virtual void on_answer(int status, const std::string& body) = 0;
  virtual void on_failure(std::string_view why) = 0;

  io::Host& host_;

 private:
  enum class Step : std::uint8_t { none, connecting, shaking, writing, reading };
  void on_op(io::Op& op);
  void on_read(io::ReadOp& op);
  void fail(std::string_view why);

  ChunkPool& pool_;
  const std::uint64_t body_bytes_max_;
  FetchTarget target_;
  io::Op op_;  // connect, handshake, writes
  io::ReadOp read_;
  io::StreamId stream_ = io::StreamId::none;
  Step step_ = Step::none;
  bool connect_op_ = false;  // op_ is a connect
  std::size_t request_done_ = 0;
  ResponseParser response_;
  Instant deadline_ = Instant::never();
};

}  // namespace rq::http
