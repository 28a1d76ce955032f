#include "core/broker/auth_query.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/base/check.h"

namespace rq::broker {
namespace {

constexpr std::int64_t kConnectMsMax = 2'000;
constexpr std::size_t kHeadBytesMax = 16 * 1024;

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

}  // namespace

AuthAddress parse_auth_address(std::string_view text) {
  AuthAddress out;
  const std::size_t scheme = text.find("://");
  if (scheme != std::string_view::npos) {
    out.https = text.substr(0, scheme) == "https";
    text.remove_prefix(scheme + 3);
  }
  const std::size_t slash = text.find_first_of("/?");
  std::string_view authority = text.substr(0, slash);
  out.path = slash == std::string_view::npos ? "" : text.substr(slash);
  if (out.path.empty() || out.path == "/") out.path = "/auth";
  if (out.path[0] == '?') out.path.insert(0, "/");
  const std::size_t colon = authority.rfind(':');
  const bool port = colon != std::string_view::npos && authority.find(']', colon) == std::string_view::npos;
  out.host = authority.substr(0, port ? colon : authority.size());
  out.port = port ? std::string(authority.substr(colon + 1)) : out.https ? "443" : "80";
  return out;
}

std::string auth_parameters(const AuthQuestion& question) {
  return fmt::format("common_name={}&remote_ip={}&secret={}&tls={}", escaped(question.common_name), escaped(question.remote_ip),
                     escaped(question.secret), question.tls);
}

AuthQuery::AuthQuery(io::Host& host, const Config& config, ChunkPool& pool, AuthQuestion question)
    : host_(host),
      config_(config),
      pool_(pool),
      question_(std::move(question)),
      first_(host.random.below(config.security.auth_http_addresses.size())),
      response_(kHeadBytesMax, config.limits.auth_response_bytes) {
  io::bind<&AuthQuery::on_op>(op_, this);
  io::bind<&AuthQuery::on_read>(read_, this);
}

void AuthQuery::begin_address(Now now) {
  const auto& addresses = config_.security.auth_http_addresses;
  if (tried_ == addresses.size()) {
    over_ = true;
    return;
  }
  address_ = parse_auth_address(addresses[(first_ + tried_) % addresses.size()]);
  ++tried_;
  const auto limit_ms = static_cast<std::int64_t>(config_.limits.auth_timeout_ms);
  deadline_ = now.mono + limit_ms * kMillisecond;
  const char joint = address_.path.find('?') == std::string::npos ? '?' : '&';
  request_ = fmt::format(
      "GET {}{}{} HTTP/1.1\r\nHost: {}:{}\r\nUser-Agent: nsqd v1.3.0\r\nAccept: application/vnd.nsq; version=1.0\r\nConnection: "
      "close\r\n\r\n",
      address_.path, joint, auth_parameters(question_), address_.host, address_.port);
  request_done_ = 0;
  response_ = http::ResponseParser(kHeadBytesMax, config_.limits.auth_response_bytes);
  step_ = Step::connecting;
  connect_op_ = true;
  host_.net.connect(op_, address_.host + ":" + address_.port, now.mono + std::min(limit_ms, kConnectMsMax) * kMillisecond);
}

void AuthQuery::settle(Now now) {
  if (over_ || op_.in_flight || read_.in_flight) return;
  switch (step_) {
    case Step::next:
      begin_address(now);
      break;
    case Step::connecting:
      break;
    case Step::shaking: {
      std::string_view name = address_.host;
      if (name.starts_with('[') && name.ends_with(']')) name = name.substr(1, name.size() - 2);
      host_.net.start_tls_client(op_, stream_, name, deadline_);
      break;
    }
    case Step::writing: {
      const ConstBuf rest = bytes_of(request_).subspan(request_done_);
      host_.net.write_some(op_, stream_, std::span(&rest, 1));
      break;
    }
    case Step::reading:
      host_.net.read_some(read_, stream_, pool_);
      break;
  }
}

void AuthQuery::on_op(io::Op& op) {
  if (std::exchange(connect_op_, false) && !op.error) {
    stream_ = op.stream();
    if (over_ || step_ != Step::connecting) return close();  // given up meanwhile
    step_ = address_.https ? Step::shaking : Step::writing;
    return;
  }
  if (over_ || step_ == Step::next) return;
  if (op.error) return give_up(io::errc_name(op.error.code));
  if (step_ == Step::shaking) {
    step_ = Step::writing;
  } else {
    request_done_ += op.value;
    if (request_done_ == request_.size()) step_ = Step::reading;
  }
}

void AuthQuery::on_read(io::ReadOp& op) {
  const Slice data = std::move(op.data);
  if (over_ || step_ != Step::reading) return;
  if (op.error && op.error.code != io::Errc::eof) return give_up(io::errc_name(op.error.code));
  op.error ? response_.end_of_input() : response_.feed(data.bytes());
  using Stage = http::ResponseParser::Stage;
  if (response_.stage() == Stage::failed) return give_up("no usable answer");
  if (response_.stage() == Stage::complete) judge();
}

void AuthQuery::judge() {
  const int status = response_.status();
  if (status == 401 || status == 403) {
    verdict_ = AuthVerdict::denied;
    over_ = true;
    return close();
  }
  if (status != 200) return give_up(fmt::format("status {}", status));
  auto grants = AuthGrants::parse(response_.body());
  if (!grants) return give_up(grants.error());
  verdict_ = (*grants)->empty() ? AuthVerdict::denied : AuthVerdict::granted;
  grants_ = std::move(*grants);
  over_ = true;
  close();
}

void AuthQuery::give_up(std::string_view why) {
  host_.log.log(io::Level::warn, "auth_server_failed",
                fmt::format("address=\"{}:{}\" reason=\"{}\"", address_.host, address_.port, why));
  close();
  step_ = Step::next;
  deadline_ = Instant::never();
}

void AuthQuery::expire(Now now) {
  if (over_ || step_ == Step::next || deadline_ > now.mono) return;
  give_up("timed out");
}

void AuthQuery::cancel() {
  over_ = true;
  close();
}

void AuthQuery::close() {
  if (stream_ != io::StreamId::none) host_.net.close(std::exchange(stream_, io::StreamId::none));
}

}  // namespace rq::broker
