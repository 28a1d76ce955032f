// One nsqlookupd server that this Broker is registered with (page 10 section 7.6, D-19a).
//
//   waiting -> connecting -> greeting (magic, IDENTIFY) -> registered
//      ^________________________|______________________________|   after any failure, with a back-off
//
//  I1 After a connection is made everything is registered again by a walk over the names; changes follow it in their order. While
//     there is no connection nothing is kept for it.
//  I2 At most kBatch commands and a PING are unanswered, at most kWaitingMax wait; when more would, the connection starts over,
//     which is a walk again. An answer has at most kAnswerBytesMax bytes, checked before it is taken.
//  I3 Connecting, a write and an answer each have kLimitNs. Anything but the expected answer ends the connection.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/slice.h"
#include "core/broker/lookup_names.h"
#include "core/io/ports.h"

namespace rq::broker {

inline constexpr std::size_t kHostBytesMax = 255;
// "host:port": a name or an address, IPv6 in brackets, and a port from 1 on.
bool is_host_port(std::string_view text);

class LookupPeer {
 public:
  static constexpr std::int64_t kLimitNs = kSecond;
  static constexpr std::int64_t kPingNs = 15 * kSecond;
  static constexpr std::int64_t kRetryNsMin = kSecond, kRetryNsMax = 15 * kSecond;
  static constexpr std::size_t kBatch = 64, kWaitingMax = 16'384, kToAskMax = 1'024;
  static constexpr std::size_t kAnswerBytesMax = 64 * 1024;

  // `identity`: the JSON that IDENTIFY sends.
  LookupPeer(io::Host& host, ChunkPool& pool, std::string address, std::string identity);
  LookupPeer(const LookupPeer&) = delete;

  const std::string& address() const { return address_; }
  // The server has been told every name, changes on their way aside.
  bool registered() const { return step_ == Step::registered && walked_; }

  // "host:port" of its HTTP side, as it said after IDENTIFY; empty when it has not said a usable one.
  const std::string& http_address() const { return http_address_; }

  // Topics whose Channels it is to be asked for. They wait until it has said where, at most kToAskMax: what does not fit is not
  // asked, and the answer is false.
  bool ask(const std::vector<std::string>& topics);
  bool can_be_asked() const { return !to_ask_.empty() && !http_address_.empty(); }
  std::string take_question();  // the oldest Topic

  void send(const LookupNames::Commands& commands);  // of a change
  void settle(Now now, const LookupNames& names);    // starts what can be started
  void expire(Now now);
  Instant next_deadline() const;
  void end();
  bool over() const { return step_ == Step::ended && !op_.in_flight && !read_.in_flight; }

 private:
  enum class Step : std::uint8_t { waiting, connecting, greeting, registered, ended };
  void on_op(io::Op& op);
  void on_read(io::ReadOp& op);
  void take_answers();
  bool take_answer(std::string_view answer);
  bool take_identity(std::string_view answer);
  void fill(Now now, const LookupNames& names);
  void lose(std::string_view why);
  void close();

  io::Host& host_;
  ChunkPool& pool_;
  std::string address_, identity_, http_address_;
  Random random_;
  io::Op op_;  // connect, then writes
  io::ReadOp read_;
  io::StreamId stream_ = io::StreamId::none;
  Step step_ = Step::waiting;
  std::string output_, input_;
  std::size_t output_done_ = 0;
  std::size_t unanswered_ = 0;  // commands
  LookupNames::Walk walk_;
  bool walked_ = false;
  std::deque<std::string> waiting_;
  std::deque<std::string> to_ask_;
  bool connect_op_ = false;  // op_ is a connect
  bool moved_ = false;       // something went well since settle() set the limit
  bool lost_ = false;        // the back-off starts with the next settle()
  std::int64_t retry_ns_ = kRetryNsMin;
  Instant limit_ = Instant::never();  // of what is going on
  Instant retry_at_{}, ping_at_{};
};

}  // namespace rq::broker
