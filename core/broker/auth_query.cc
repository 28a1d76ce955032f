#include "core/broker/auth_query.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/base/base64.h"
#include "core/base/check.h"
#include "core/base/text.h"
#include "core/http/query.h"

namespace rq::broker {
namespace {

constexpr std::int64_t kConnectMsMax = 2'000;

// As in Go's url.QueryEscape.
std::string escaped(std::string_view text) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
                       c == '.' || c == '~';
    if (plain) {
      out += c;
    } else if (c == ' ') {
      out += '+';
    } else {
      out += '%';
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    }
  }
  return out;
}

// "user:password", percent-encoded, as the header that carries it.
std::string basic_authorization(std::string_view user_info) {
  std::string text;
  const std::size_t colon = user_info.find(':');
  const std::string_view password = colon == std::string_view::npos ? "" : user_info.substr(colon + 1);
  text += http::percent_decode(user_info.substr(0, colon), false).value_or("");
  text += ':';
  text += http::percent_decode(password, false).value_or("");
  return "Basic " + to_base64(text);
}

}  // namespace

AuthAddress parse_auth_address(std::string_view text) {
  AuthAddress out;
  const std::size_t scheme = text.find("://");
  if (scheme != std::string_view::npos) {
    out.scheme = lower(text.substr(0, scheme));
    text.remove_prefix(scheme + 3);
  }
  text = text.substr(0, text.find('#'));
  const std::size_t slash = std::min(text.find_first_of("/?"), text.size());
  std::string_view authority = text.substr(0, slash);
  out.path = text.substr(slash);
  if (scheme == std::string_view::npos) {
    if (!out.path.empty() && out.path.back() == '/') out.path.pop_back();
    out.path += "/auth";
  }
  if (out.path.empty() || out.path[0] == '?') out.path.insert(0, "/");
  const std::size_t at = authority.rfind('@');
  if (at != std::string_view::npos) {
    out.authorization = basic_authorization(authority.substr(0, at));
    authority.remove_prefix(at + 1);
  }
  out.host_header = authority;
  const std::size_t colon = authority.rfind(':');
  const bool port = colon != std::string_view::npos && authority.find(']', colon) == std::string_view::npos;
  out.host = authority.substr(0, port ? colon : authority.size());
  out.port = port ? std::string(authority.substr(colon + 1)) : out.https() ? "443" : "80";
  return out;
}

std::string auth_parameters(const AuthQuestion& question) {
  return fmt::format("common_name={}&remote_ip={}&secret={}&tls={}", escaped(question.common_name), escaped(question.remote_ip),
                     escaped(question.secret), question.tls);
}

AuthQuery::AuthQuery(io::Host& host, const Config& config, ChunkPool& pool, AuthQuestion question)
    : Fetch(host, pool, config.limits.auth_response_bytes),
      config_(config),
      question_(std::move(question)),
      first_(host.random.below(config.security.auth_http_addresses.size())) {}

void AuthQuery::next_address(Now now) {
  const auto& addresses = config_.security.auth_http_addresses;
  if (tried_ == addresses.size()) {
    over_ = true;
    return;
  }
  const AuthAddress address = parse_auth_address(addresses[(first_ + tried_) % addresses.size()]);
  ++tried_;
  const auto limit_ms = static_cast<std::int64_t>(config_.limits.auth_timeout_ms);
  const std::string authority = address.host + ":" + address.port;
  const char joint = address.path.find('?') == std::string::npos ? '?' : '&';
  const bool own = !address.authorization.empty();
  std::string request = fmt::format(
      "GET {}{}{} HTTP/1.1\r\nHost: {}\r\nUser-Agent: nsqd v1.3.0\r\nAccept: application/vnd.nsq; version=1.0\r\n{}{}{}"
      "Connection: close\r\n\r\n",
      address.path, joint, auth_parameters(question_), address.host_header, own ? "Authorization: " : "", address.authorization,
      own ? "\r\n" : "");
  start(
      {authority, address.https(), std::move(request), std::min(limit_ms, kConnectMsMax) * kMillisecond, limit_ms * kMillisecond},
      now);
}

void AuthQuery::settle(Now now) {
  if (!over_ && !running() && idle()) next_address(now);
  Fetch::settle(now);
}

void AuthQuery::on_answer(int status, const std::string& body) {
  if (status == 401 || status == 403) {
    verdict_ = AuthVerdict::denied;
    over_ = true;
    return;
  }
  if (status != 200) return on_failure(fmt::format("status {}", status));
  auto grants = AuthGrants::parse(body);
  if (!grants) return on_failure(grants.error());
  verdict_ = (*grants)->empty() ? AuthVerdict::denied : AuthVerdict::granted;
  grants_ = std::move(*grants);
  over_ = true;
}

void AuthQuery::on_failure(std::string_view why) {
  host_.log.log(io::Level::warn, "auth_server_failed", fmt::format("address=\"{}\" reason=\"{}\"", address(), why));
}

void AuthQuery::cancel() {
  over_ = true;
  stop();
}

}  // namespace rq::broker
