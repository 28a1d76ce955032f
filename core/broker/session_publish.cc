// PUB, MPUB and DPUB, and every body: sizes, admission, bodies that are thrown away, and the answers of the engine (page 10
// section 2.4, page 30 sections 2.2 and 2.3, D-13, D-17, D-18).
#include <fmt/format.h>

#include <utility>

#include "core/base/check.h"
#include "core/base/probe.h"
#include "core/broker/session.h"
#include "core/nsq/numbers.h"
#include "core/nsq/quote.h"
#include "core/storage/names.h"
#include "core/storage/types.h"

namespace rq::broker {

static_assert(nsq::kMpubMessagesMax == storage::kBatchMessagesMax, "an MPUB is one record");

std::string_view Session::name_of(Kind kind) {
  switch (kind) {
    case Kind::identify:
      return "IDENTIFY";
    case Kind::auth:
      return "AUTH";
    case Kind::pub:
      return "PUB";
    case Kind::mpub:
      return "MPUB";
    case Kind::dpub:
      return "DPUB";
    case Kind::none:
      break;
  }
  return "";
}

std::string Session::reason_text(const queue::Outcome& outcome) {
  using queue::Code;
  switch (outcome.code) {
    case Code::not_in_flight:
      return "ID not in flight";
    case Code::not_owner:
      return "client does not own message";
    case Code::exiting:
      return "exiting";
    default:
      break;
  }
  if (!outcome.detail.empty()) return outcome.detail;
  switch (outcome.code) {
    case Code::topic_limit:
      return "too many topics";
    case Code::channel_limit:
      return "too many channels";
    case Code::worker_limit:
      return "too many active topics";
    case Code::topic_retiring:
      return "topic is being deleted";
    case Code::sequence_exhausted:
      return "message ids are used up";
    case Code::batch_too_large:
      return "batch too large";
    case Code::topic_not_found:
      return "topic not found";
    case Code::channel_not_found:
      return "channel not found";
    case Code::topic_tombstoned:
      return "topic is tombstoned";
    case Code::channel_tombstoned:
      return "channel is tombstoned";
    case Code::management_unavailable:
      return "management unavailable";
    case Code::storage:
      return "storage unavailable";
    default:
      return "internal error";
  }
}

void Session::run_publish_line(Kind kind, Now now) {
  const nsq::Command& command = parser_.command();
  const std::string_view name = command.name;
  if (command.param_count < (kind == Kind::dpub ? 2u : 1u)) {
    return fail(fmt::format("E_INVALID {} insufficient number of parameters", name), now);
  }
  const std::string_view topic = command.params[0];
  if (!storage::valid_name(topic)) {
    const std::string_view prefix = kind == Kind::mpub ? "E_BAD_TOPIC " : "";
    return fail(fmt::format("{}E_BAD_TOPIC {} topic name {} is not valid", prefix, name, nsq::quote(topic)), now);
  }
  std::int64_t defer_ms = 0;
  if (kind == Kind::dpub) {
    const auto defer = nsq::parse_number(command.params[1]);
    if (!defer) return fail(fmt::format("E_INVALID DPUB could not parse timeout {}", command.params[1]), now);
    const std::uint64_t most = env_.config.queue.max_defer_ms;
    if (*defer > most) return fail(fmt::format("E_INVALID DPUB timeout {} out of range 0-{}", *defer, most), now);
    defer_ms = static_cast<std::int64_t>(*defer);
  }
  if (!authorized(AuthGrants::Permission::publish, topic, "", now)) return;
  defer_ms_ = defer_ms;
  kind_ = kind;
  publish_topic_ = published_topic(topic);
  parser_.expect_size();
}

void Session::run_size(Now now) {
  const std::int32_t size = parser_.size();
  const std::string_view name = name_of(kind_);
  if (kind_ == Kind::pub || kind_ == Kind::dpub) {
    const std::uint64_t most = env_.config.queue.max_message_bytes;
    if (size <= 0) return fail(fmt::format("E_BAD_MESSAGE {} invalid message body size {}", name, size), now);
    if (static_cast<std::uint64_t>(size) > most) {
      return fail(fmt::format("E_BAD_MESSAGE {} message too big {} > {}", name, size, most), now);
    }
    return run_publish_size();
  }
  // nsqd looks at the sign last for IDENTIFY and AUTH, first for MPUB; with a negative size both come to the same text.
  const std::uint64_t most = kind_ == Kind::mpub ? env_.config.limits.max_body_bytes : kControlBodyBytesMax;
  if (size <= 0) return fail(fmt::format("E_BAD_BODY {} invalid body size {}", name, size), now);
  if (static_cast<std::uint64_t>(size) > most) {
    return fail(fmt::format("E_BAD_BODY {} body too big {} > {}", name, size, most), now);
  }
  kind_ == Kind::mpub ? run_publish_size() : run_control_size(now);
}

std::uint64_t Session::body_charge() const {
  const auto size = static_cast<std::uint64_t>(parser_.size());
  switch (kind_) {
    case Kind::mpub:
      return publish_charge(size, nsq::mpub_messages_bound(size));
    default:
      return publish_charge(size, 1);
  }
}

// A connection alone with its request is always let through: the configuration guarantees that one fits (V8).
bool Session::budget_allows(std::uint64_t charge) const {
  return budget_used_ == auth_charge_ || budget_used_ + charge <= env_.config.limits.connection_publish_inflight_bytes;
}

// Charged in pieces, each before its bytes are taken: whoever announces a large secret and sends none of it holds one unit.
void Session::run_control_size(Now now) {
  const std::uint32_t room = std::min(static_cast<std::uint32_t>(parser_.size()), kControlRoomBytes);
  if (charge_control(room, now)) parser_.take_body(room);
}

void Session::run_control_room(Now now) {
  const std::uint32_t room = parser_.room_wanted();
  if (charge_control(room, now)) parser_.more_room(room);
}

bool Session::charge_control(std::uint32_t room, Now now) {
  const std::uint64_t more = control_charge(room) - charge_;
  if (!env_.node_budget.take_control(more)) {
    fail(fmt::format("E_THROTTLED {} publish budget", name_of(kind_)), now);
    return false;
  }
  charge_ += more;
  budget_used_ += more;
  return true;
}

std::optional<std::string> Session::refusal() const {
  if (env_.gates.disk_pressure) return fmt::format("E_THROTTLED {} disk pressure", name_of(kind_));
  if (!env_.gates.accepting()) return fmt::format("E_DRAINING {} broker is draining", name_of(kind_));
  return std::nullopt;
}

void Session::run_publish_size() {
  const std::uint64_t charge = body_charge();
  if (!budget_allows(charge)) {
    RQ_SOMETIMES(true, "broker.connection_budget_full");
    held_ = Held::size;
    return;
  }
  auto refused = refusal();
  if (!refused && !env_.node_budget.take(charge)) refused = fmt::format("E_THROTTLED {} publish budget", name_of(kind_));
  if (refused) {
    RQ_SOMETIMES(true, "broker.publish_refused_before_its_body");
    count_refusal(*refused, charge);
    refused_ = std::move(*refused);
    parser_.skip_body();
    return;
  }
  charge_ = charge;
  budget_used_ += charge;
  const auto size = static_cast<std::uint32_t>(parser_.size());
  if (kind_ == Kind::mpub) {
    nsq::MpubLimits limits;
    limits.messages_max = nsq::mpub_messages_max(env_.config.limits.max_body_bytes);
    limits.message_bytes_max = static_cast<std::uint32_t>(env_.config.queue.max_message_bytes);
    scanner_ = nsq::MpubScanner(size, limits);
  }
  parser_.take_body();
}

void Session::check_partial_mpub(Now now) {
  if (auto error = scanner_.advance(parser_.arrived())) fail(std::move(*error), now);
}

// The stream ended inside a command whose size or body is missing.
std::string Session::truncated_body() {
  const std::string_view name = name_of(kind_);
  const bool size = parser_.awaiting_size();
  switch (kind_) {
    case Kind::pub:
    case Kind::dpub:
      return fmt::format("E_BAD_MESSAGE {} failed to read message body{}", name, size ? " size" : "");
    case Kind::mpub:
      return size ? "E_BAD_BODY MPUB failed to read body size" : scanner_.truncated(parser_.arrived());
    default:
      return fmt::format("E_BAD_BODY {} failed to read body{}", name, size ? " size" : "");
  }
}

void Session::run_body(Now now) {
  Slice body = parser_.take();
  if (kind_ == Kind::identify) {
    release_body();
    return finish_identify(std::move(body), now);
  }
  if (kind_ == Kind::auth) {
    if (!auth_) auth_charge_ = std::exchange(charge_, 0);
    return run_auth(std::move(body), now);
  }
  publish(std::move(body), now);
}

void Session::publish(Slice body, Now now) {
  const Kind kind = kind_;
  if (kind == Kind::mpub) {
    if (auto error = scanner_.advance(body.bytes())) return fail(std::move(*error), now);
  }
  if (auto refused = refusal()) {  // the gate closed while the body was read
    count_refusal(*refused, charge_);
    release_body();
    return refuse(std::move(*refused), now);
  }
  const std::uint32_t body_bytes = body.size();
  std::vector<Slice> bodies;
  if (kind == Kind::mpub) {
    bodies = nsq::mpub_messages(body);
  } else {
    bodies.push_back(std::move(body));
  }
  const queue::WaiterId waiter = next_waiter();
  Answer& answer = add_answer(kind, now);
  answer.charge = std::exchange(charge_, 0);
  answer.messages = static_cast<std::uint32_t>(bodies.size());
  answer.body_bytes = kind == Kind::mpub ? body_bytes - 4 - 4 * std::uint64_t{answer.messages} : body_bytes;
  answer.topic = publish_topic_;
  const queue::Outcome outcome = env_.engine.publish(topic_of_publish(), std::move(bodies), defer_ms_, waiter, now);
  complete(now);
  if (outcome.ok()) return;
  settle_publish(answer, outcome, true);
  pop_answers(now);
}

void Session::on_published(std::uint32_t sequence, const queue::Outcome& outcome, Now now) {
  const std::uint32_t index = sequence - first_sequence_;
  RQ_CHECK(index < answers_owed());
  mark_dirty();
  settle_publish(answers_[answers_head_ + index], outcome, false);
  pop_answers(now);
}

void Session::settle_publish(Answer& answer, const queue::Outcome& outcome, bool at_once) {
  RQ_CHECK(!answer.ready);
  using queue::Code;
  answer.ready = true;
  release_charge(std::exchange(answer.charge, 0));
  if (outcome.ok()) {
    answer.ok = true;
    env_.counters.publish_messages += answer.messages;
    env_.counters.publish_bytes += answer.body_bytes;
    if (answer.topic < published_.size()) published_[answer.topic].second += answer.messages;
    return;
  }
  const std::string_view name = name_of(answer.kind);
  const std::string reason = reason_text(outcome);
  bool retriable = false;
  answer.fatal = true;
  switch (outcome.code) {
    case Code::topic_limit:
    case Code::worker_limit:
    case Code::topic_retiring:
    case Code::sequence_exhausted:
    case Code::management_unavailable:
      retriable = true;
      break;
    case Code::storage:
      if (at_once) ++env_.counters.storage_errors;
      retriable = at_once;  // known before anything was written; later the outcome is in doubt
      answer.fatal = !at_once;
      break;
    default:
      break;
  }
  if (!retriable) {
    answer.error = fmt::format("E_{0}_FAILED {0} failed {1}", name, reason);
  } else if (env_.config.limits.disconnect_on_retriable_publish_error) {
    answer.fatal = true;
  } else {
    answer.error = fmt::format("E_PUB_RETRY {} not stored: {}", name, reason);
  }
  if (answer.fatal) ++env_.counters.protocol_errors;
}

void Session::count_refusal(std::string_view text, std::uint64_t charge) {
  if (!text.starts_with("E_THROTTLED")) return;
  ++env_.counters.publish_throttled_requests;
  env_.counters.publish_throttled_bytes += charge;
}

void Session::refuse(std::string text, Now now) {
  complete(now);
  const bool silent = env_.config.limits.disconnect_on_retriable_publish_error;
  answer_ready(silent ? std::string() : std::move(text), silent, now);
}

void Session::release_charge(std::uint64_t bytes) {
  RQ_CHECK(bytes <= budget_used_);
  budget_used_ -= bytes;
  env_.node_budget.give(bytes);
}

void Session::release_control(std::uint64_t bytes) {
  RQ_CHECK(bytes <= budget_used_);
  budget_used_ -= bytes;
  env_.node_budget.give_control(bytes);
}

void Session::release_body() {
  const std::uint64_t bytes = std::exchange(charge_, 0);
  kind_ == Kind::identify || kind_ == Kind::auth ? release_control(bytes) : release_charge(bytes);
}

}  // namespace rq::broker
