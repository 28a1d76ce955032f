// One question to the auth servers over HTTP (page 10 section 4.2, page 31 section 3.8): the addresses in cyclic order from a
// random one until one gives a definite answer.
//
//  I1 Each address has its own limits: min(auth_timeout_ms, 2 s) to connect, auth_timeout_ms in all. An answer is at most
//     auth_response_bytes. Redirects are failures.
//  I2 It lives until no Op of it is in flight; over() says when.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/broker/auth_grants.h"
#include "core/broker/config.h"
#include "core/http/fetch.h"

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

// A URL is asked as it stands, without a path for "/"; "host:port" means http://host:port/auth (page 10 section 4.2, D-05).
struct AuthAddress {
  std::string scheme = "http";   // in lower case
  std::string host, port, path;  // the path with its query, without the parameters
  std::string host_header;       // host and port as written
  std::string authorization;     // the header's value for "user:password@", else empty
  bool https() const { return scheme == "https"; }
};
AuthAddress parse_auth_address(std::string_view text);
// The parameters as nsqd sends them: sorted, encoded as a query string.
std::string auth_parameters(const AuthQuestion& question);

class AuthQuery final : public http::Fetch {
 public:
  AuthQuery(io::Host& host, const Config& config, ChunkPool& pool, AuthQuestion question);

  void settle(Now now);  // starts what can be started
  void cancel();

  bool over() const { return over_ && idle(); }
  AuthVerdict verdict() const { return verdict_; }
  const AuthGrants::Ref& grants() const { return grants_; }
  const AuthQuestion& question() const { return question_; }

 private:
  void next_address(Now now);
  void on_answer(int status, const std::string& body) override;
  void on_failure(std::string_view why) override;  // of this address

  const Config& config_;
  AuthQuestion question_;
  std::size_t first_ = 0, tried_ = 0;  // addresses
  bool over_ = false;
  AuthVerdict verdict_ = AuthVerdict::failed;
  AuthGrants::Ref grants_;
};

}  // namespace rq::broker
