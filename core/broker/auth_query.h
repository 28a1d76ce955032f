// One question to the auth servers over HTTP (page 10 section 4.2, page 31 section 3.8): the addresses in cyclic order from a
// random one until one gives a definite answer.
//
//   connecting -> (shaking hands) -> asking -> the next address, or over
//
//  I1 Each address has its own limits: min(auth_timeout_ms, 2 s) to connect, auth_timeout_ms in all. An answer is at most
//     auth_response_bytes, checked as it comes. Redirects are failures.
//  I2 It lives until no Op of it is in flight; over() says when.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/slice.h"
#include "core/broker/auth_grants.h"
#include "core/broker/config.h"
#include "core/http/response_parser.h"
#include "core/io/ports.h"

namespace rq::broker {

struct AuthQuestion {
  std::string remote_ip;  // without port
  bool tls = false;
  std::string common_name;  // of the client's certificate
  std::string secret;
};

enum class AuthVerdict : std::uint8_t {
  granted,
  denied,      // a server said no: 401, 403, or nothing granted
  failed,      // no server could say
  overloaded,  // memory is short; an AuthQuery never says this
};

// "http://host:port/path", or "host:port" for http://host:port/auth; a URL without a path means /auth too.
struct AuthAddress {
  bool https = false;
  std::string host, port, path;  // the path with its query, without the parameters
};
AuthAddress parse_auth_address(std::string_view text);
// The parameters as nsqd sends them: sorted, encoded as a query string.
std::string auth_parameters(const AuthQuestion& question);

class AuthQuery {
 public:
  AuthQuery(io::Host& host, const Config& config, ChunkPool& pool, AuthQuestion question);
  AuthQuery(const AuthQuery&) = delete;

  void settle(Now now);  // starts what can be started
  void expire(Now now);
  Instant next_deadline() const { return over_ ? Instant::never() : deadline_; }
  void cancel();

  bool over() const { return over_ && !op_.in_flight && !read_.in_flight; }
  AuthVerdict verdict() const { return verdict_; }
  const AuthGrants::Ref& grants() const { return grants_; }
  const AuthQuestion& question() const { return question_; }

 private:
  enum class Step : std::uint8_t { next, connecting, shaking, writing, reading };
  void begin_address(Now now);
  void on_op(io::Op& op);
  void on_read(io::ReadOp& op);
  void judge();
  void give_up(std::string_view why);  // on this address
  void close();

  io::Host& host_;
  const Config& config_;
  ChunkPool& pool_;
  AuthQuestion question_;
  io::Op op_;
  io::ReadOp read_;
  io::StreamId stream_ = io::StreamId::none;
  Step step_ = Step::next;
  std::size_t first_ = 0, tried_ = 0;  // addresses
  AuthAddress address_;
  std::string request_;
  std::size_t request_done_ = 0;
  http::ResponseParser response_;
  Instant deadline_ = Instant::never();
  bool over_ = false;
  bool connect_op_ = false;  // op_ is a connect
  AuthVerdict verdict_ = AuthVerdict::failed;
  AuthGrants::Ref grants_;
};

}  // namespace rq::broker
