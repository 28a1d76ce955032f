// AUTH and what it allows (page 10 section 4, D-05, D-12): the question runs beside the connection, which takes no further
// commands until its answer is there. Grants that have expired are asked for again by the next command that needs them.
#include <fmt/format.h>

#include <utility>

#include "core/base/check.h"
#include "core/base/json_writer.h"
#include "core/broker/auth_service.h"
#include "core/broker/peer_address.h"
#include "core/broker/session.h"
#include "core/nsq/quote.h"

namespace rq::broker {

void Session::run_auth(Slice body, Now now) {
  if (auth_) return auth_failed("E_INVALID AUTH already set", now);
  if (!env_.auth.enabled()) return auth_failed("E_AUTH_DISABLED AUTH disabled", now);
  const std::string_view secret = text_of(body.bytes());
  if (nsq::clean_utf8(secret, secret.size()) != secret) {
    return auth_failed("E_UNAUTHORIZED AUTH no authorizations found", now);
  }
  secret_ = secret;
  ask_auth(AuthWait::command, now);
}

void Session::auth_failed(std::string text, Now now) {
  ++env_.counters.auth_failures;
  fail(std::move(text), now);
}

void Session::ask_auth(AuthWait wait, Now now) {
  auth_wait_ = wait;
  auth_since_ = now.mono;
  env_.auth.ask(slot_, {without_port(remote_), peer_.tls, peer_.common_name, secret_}, now);
}

void Session::on_auth(AuthAnswer answer, Now now) {
  mark_dirty();
  const AuthWait wait = std::exchange(auth_wait_, AuthWait::none);
  if (wait == AuthWait::none || phase_ != Phase::commands) return;
  last_done_ = now.mono;
  if (answer.verdict == AuthVerdict::granted) {
    auth_ = std::move(answer.lease);
    if (wait == AuthWait::command) {
      respond(nsq::FrameType::response, auth_reply());
      complete(now);
    }
    return;
  }
  const bool denied = answer.verdict == AuthVerdict::denied;
  if (wait == AuthWait::command) {
    return auth_failed(denied ? "E_UNAUTHORIZED AUTH no authorizations found" : "E_AUTH_FAILED AUTH failed", now);
  }
  if (denied) return fail(auth_refusal(), now);
  fail("E_AUTH_FAILED AUTH failed", now);
}

std::string Session::auth_reply() const {
  std::string out;
  JsonWriter json(out);
  json.begin_object();
  json.key("identity").value(auth_->identity()).key("identity_url").value(auth_->identity_url());
  json.key("permission_count").value(std::uint64_t{auth_->count()});
  json.end_object();
  return out;
}

// For the command whose line is at hand: its Topic, and the Channel of a SUB.
std::string Session::auth_refusal() const {
  const nsq::Command& command = parser_.command();
  const std::string_view channel = command.name == "SUB" ? command.params[1] : std::string_view();
  return fmt::format("E_UNAUTHORIZED AUTH failed for {} on {} {}", command.name, nsq::quote(command.params[0]),
                     nsq::quote(channel));
}

// True when the command may go on. Otherwise it was refused, or its line is held until the auth server has answered.
bool Session::authorized(AuthGrants::Permission permission, std::string_view topic, std::string_view channel, Now now) {
  if (!env_.auth.enabled()) return true;
  if (!auth_) {
    fail(fmt::format("E_AUTH_FIRST AUTH required before {}", parser_.command().name), now);
    return false;
  }
  if (auth_.expires() <= now.mono) {
    held_ = Held::line;
    ask_auth(AuthWait::renewal, now);
    return false;
  }
  if (auth_->allows(permission, topic, channel)) return true;
  fail(auth_refusal(), now);
  return false;
}

void Session::leave_auth() {
  if (std::exchange(auth_wait_, AuthWait::none) != AuthWait::none) env_.auth.cancel(slot_);
  auth_.reset();
  secret_ = {};
  release_control(std::exchange(auth_charge_, 0));
}

}  // namespace rq::broker
