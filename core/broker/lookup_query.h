// Asks one nsqlookupd over HTTP which Channels of a Topic it knows (page 10 sections 5.1 and 7.1): GET /channels?topic=<topic>.
//
//  I1 Connecting has kConnectNs, everything kLimitNs; an answer has at most kAnswerBytesMax bytes.
//  I2 It lives until no Op of it is in flight; over() says when.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/slice.h"
#include "core/http/response_parser.h"
#include "core/io/ports.h"

namespace rq::broker {

class LookupQuery {
 public:
  static constexpr std::int64_t kConnectNs = 2 * kSecond, kLimitNs = 5 * kSecond;
  static constexpr std::size_t kAnswerBytesMax = 1 << 20;

  // `address`: "host:port"; `topic`: a valid name.
  LookupQuery(io::Host& host, ChunkPool& pool, std::string address, std::string topic);
  LookupQuery(const LookupQuery&) = delete;

  void settle(Now now);
  void expire(Now now);
  Instant next_deadline() const { return over_ ? Instant::never() : deadline_; }
  void end();
  bool over() const { return over_ && !op_.in_flight && !read_.in_flight; }

  const std::string& topic() const { return topic_; }
  // Valid names of Channels that are not ephemeral, once it is over; none when the server could not say.
  const std::vector<std::string>& channels() const { return channels_; }

 private:
  enum class Step : std::uint8_t { idle, connecting, writing, reading };
  void on_op(io::Op& op);
  void on_read(io::ReadOp& op);
  void judge();
  void give_up(std::string_view why);

  io::Host& host_;
  ChunkPool& pool_;
  std::string address_, topic_, request_;
  io::Op op_;  // connect, then writes
  io::ReadOp read_;
  io::StreamId stream_ = io::StreamId::none;
  Step step_ = Step::idle;
  bool over_ = false;
  std::size_t request_done_ = 0;
  http::ResponseParser response_;
  Instant deadline_ = Instant::never();
  std::vector<std::string> channels_;
};

}  // namespace rq::broker
