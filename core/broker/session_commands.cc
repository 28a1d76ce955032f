// The command lines, in the order of checks and with the texts of page 10 section 2.4.
#include <fmt/format.h>

#include <algorithm>

#include "core/base/check.h"
#include "core/broker/session.h"
#include "core/nsq/numbers.h"
#include "core/nsq/quote.h"
#include "core/storage/names.h"

namespace rq::broker {

nsq::IdentifyLimits identify_limits(const Config& config) {
  const auto& limits = config.limits;
  const auto ms = [](std::uint64_t value) { return static_cast<std::int64_t>(value); };
  nsq::IdentifyLimits out;
  out.heartbeat_ms = ms(limits.heartbeat_interval_ms);
  out.max_heartbeat_ms = ms(limits.max_heartbeat_interval_ms);
  out.output_buffer_timeout_ms = ms(limits.output_buffer_timeout_ms);
  out.min_output_buffer_timeout_ms = ms(limits.min_output_buffer_timeout_ms);
  out.max_output_buffer_timeout_ms = ms(limits.max_output_buffer_timeout_ms);
  out.output_buffer_size = ms(limits.output_buffer_size);
  out.max_output_buffer_size = ms(limits.max_output_buffer_size);
  out.msg_timeout_ms = ms(config.queue.message_timeout_ms);
  out.max_msg_timeout_ms = ms(config.queue.max_message_timeout_ms);
  out.max_deflate_level = ms(config.network.max_deflate_level);
  out.max_rdy_count = ms(limits.max_rdy_count);
  out.snappy_enabled = config.network.snappy_enabled;
  out.deflate_enabled = config.network.deflate_enabled;
  out.tls_available = config.security.tls.present;
  out.auth_required = !config.security.auth_http_addresses.empty();
  return out;
}

bool Session::is_barrier(std::string_view name) const {
  return name == "IDENTIFY" || name == "AUTH" || name == "SUB" || name == "CLS";
}

void Session::run_line(Now now) {
  const nsq::Command& command = parser_.command();
  const std::string_view name = command.name;
  if (env_.config.security.tls.required && !peer_.tls && name != "IDENTIFY") {
    fail(fmt::format("E_INVALID cannot {} in current state (TLS required)", name), now);
    return;
  }
  if (is_barrier(name) && answers_owed() > 0) {
    held_ = Held::line;
    return;
  }
  if (name == "FIN") {
    run_finish(now);
  } else if (name == "PUB") {
    run_publish_line(Kind::pub, now);
  } else if (name == "RDY") {
    run_ready(now);
  } else if (name == "MPUB") {
    run_publish_line(Kind::mpub, now);
  } else if (name == "DPUB") {
    run_publish_line(Kind::dpub, now);
  } else if (name == "REQ") {
    run_requeue(now);
  } else if (name == "TOUCH") {
    run_touch(now);
  } else if (name == "NOP") {
    complete(now);
  } else if (name == "SUB") {
    run_subscribe(now);
  } else if (name == "CLS") {
    run_close_wait(now);
  } else if (name == "IDENTIFY" || name == "AUTH") {
    run_control_line(name == "AUTH" ? Kind::auth : Kind::identify, now);
  } else {
    fail(fmt::format("E_INVALID invalid command {}", name), now);
  }
}

void Session::run_control_line(Kind kind, Now now) {
  const nsq::Command& command = parser_.command();
  if (state_ != 0) {
    fail(fmt::format("E_INVALID cannot {} in current state", command.name), now);
    return;
  }
  if (kind == Kind::auth && command.param_count != 0) {
    fail("E_INVALID AUTH invalid number of parameters", now);
    return;
  }
  kind_ = kind;
  parser_.expect_size();
}

void Session::run_subscribe(Now now) {
  const nsq::Command& command = parser_.command();
  if (state_ != 0) return fail("E_INVALID cannot SUB in current state", now);
  if (!heartbeats_on()) return fail("E_INVALID cannot SUB with heartbeats disabled", now);
  if (command.param_count < 2) return fail("E_INVALID SUB insufficient number of parameters", now);
  const std::string_view topic = command.params[0];
  const std::string_view channel = command.params[1];
  if (!storage::valid_name(topic)) {
    return fail(fmt::format("E_BAD_TOPIC SUB topic name {} is not valid", nsq::quote(topic)), now);
  }
  if (!storage::valid_name(channel)) {
    return fail(fmt::format("E_BAD_CHANNEL SUB channel name {} is not valid", nsq::quote(channel)), now);
  }
  if (!authorized(AuthGrants::Permission::subscribe, topic, channel, now)) return;
  if (env_.gates.stopping) return fail("E_SUB_FAILED SUB failed exiting", now);
  topic_ = topic;
  channel_ = channel;
  queue::SubscribeOptions options;
  options.message_timeout_ms = settings_.msg_timeout_ms;
  options.sample_rate = static_cast<std::uint32_t>(settings_.sample_rate);
  const queue::WaiterId waiter = next_waiter();
  add_answer(Kind::none, now);
  subscribing_ = true;
  env_.engine.subscribe(topic_, channel_, options, waiter, now);
}

void Session::on_subscribed(const queue::SubscribeDone& done, Now now) {
  RQ_CHECK(subscribing_ && answers_owed() == 1);
  subscribing_ = false;
  mark_dirty();
  Answer& answer = answers_[answers_head_];
  answer.ready = true;
  if (done.outcome.ok() && phase_ != Phase::commands) {
    env_.engine.unsubscribe(done.consumer, now);
  } else if (done.outcome.ok()) {
    consumer_ = done.consumer;
    state_ = 3;
    answer.ok = true;
    update_writable();
    if (!writable_) env_.engine.set_writable(consumer_, false);
  } else {
    using queue::Code;
    answer.fatal = true;
    switch (done.outcome.code) {
      case Code::consumer_limit:
        answer.error = fmt::format("E_SUB_FAILED SUB failed consumers for {}:{} exceeds limit of {}", topic_, channel_,
                                   env_.config.limits.max_channel_consumers);
        break;
      case Code::topic_retiring:
        answer.error = "E_SUB_FAILED SUB failed to deleted topic/channel";
        break;
      default:
        answer.error = fmt::format("E_SUB_FAILED SUB failed {}", reason_text(done.outcome));
        break;
    }
    ++env_.counters.protocol_errors;
  }
  if (phase_ == Phase::commands) complete(now);
  pop_answers(now);
}

void Session::run_ready(Now now) {
  const nsq::Command& command = parser_.command();
  if (state_ == 4) return complete(now);
  if (state_ != 3) return fail("E_INVALID cannot RDY in current state", now);
  std::uint64_t count = 1;
  if (command.param_count > 0) {
    const auto parsed = nsq::parse_number(command.params[0]);
    if (!parsed) return fail(fmt::format("E_INVALID RDY could not parse count {}", command.params[0]), now);
    count = *parsed;
  }
  const std::uint64_t most = env_.config.limits.max_rdy_count;
  if (count > most) {
    return fail(fmt::format("E_INVALID RDY count {} out of range 0-{}", static_cast<std::int64_t>(count), most), now);
  }
  env_.engine.set_ready(consumer_, static_cast<std::uint32_t>(std::min<std::uint64_t>(count, 0xffffffff)));
  complete(now);
}

bool Session::consumer_command(std::uint32_t params, Now now) {
  const nsq::Command& command = parser_.command();
  if (state_ != 3 && state_ != 4) {
    fail(fmt::format("E_INVALID cannot {} in current state", command.name), now);
    return false;
  }
  if (command.param_count < params) {
    fail(fmt::format("E_INVALID {} insufficient number of params", command.name), now);
    return false;
  }
  if (command.params[0].size() != nsq::kMessageIdBytes) {
    fail("E_INVALID invalid message ID", now);
    return false;
  }
  return true;
}

void Session::run_finish(Now now) {
  if (!consumer_command(1, now)) return;
  const std::string_view text = parser_.command().params[0];
  const auto id = nsq::parse_message_id(text);
  const queue::Code code = id ? env_.engine.finish(consumer_, *id, now) : queue::Code::not_in_flight;
  if (code != queue::Code::ok) command_failed(text, code, now);
  complete(now);
}

void Session::run_requeue(Now now) {
  if (!consumer_command(2, now)) return;
  const nsq::Command& command = parser_.command();
  const auto delay = nsq::parse_number(command.params[1]);
  if (!delay) return fail(fmt::format("E_INVALID REQ could not parse timeout {}", command.params[1]), now);
  const auto delay_ms = static_cast<std::int64_t>(std::min(*delay, env_.config.queue.max_defer_ms));
  const auto id = nsq::parse_message_id(command.params[0]);
  const queue::Code code = id ? env_.engine.requeue(consumer_, *id, delay_ms, now) : queue::Code::not_in_flight;
  if (code != queue::Code::ok) command_failed(command.params[0], code, now);
  complete(now);
}

void Session::run_touch(Now now) {
  if (!consumer_command(1, now)) return;
  const std::string_view text = parser_.command().params[0];
  const auto id = nsq::parse_message_id(text);
  const queue::Code code = id ? env_.engine.touch(consumer_, *id, now) : queue::Code::not_in_flight;
  if (code != queue::Code::ok) command_failed(text, code, now);
  complete(now);
}

// FIN, REQ and TOUCH of what is not in flight here: the connection goes on.
void Session::command_failed(std::string_view id, queue::Code why, Now now) {
  const std::string_view name = parser_.command().name;
  answer_ready(fmt::format("E_{0}_FAILED {0} {1} failed {2}", name, id, reason_text({why, {}})), false, now);
}

void Session::on_command_done(const queue::CommandDone& done) {
  mark_dirty();
  if (done.outcome.ok()) {
    ++(done.requeue ? requeued_ : finished_);
    return;
  }
  std::string id;
  nsq::put_message_id(id, done.id);
  const std::string_view name = done.requeue ? "REQ" : "FIN";
  respond(nsq::FrameType::error, fmt::format("E_{0}_FAILED {0} {1} failed {2}", name, id, reason_text(done.outcome)));
}

void Session::run_close_wait(Now now) {
  if (state_ != 3) return fail("E_INVALID cannot CLS in current state", now);
  env_.engine.set_ready(consumer_, 0);
  state_ = 4;
  respond(nsq::FrameType::response, nsq::kCloseWait);
  complete(now);
}

void Session::finish_identify(Slice body, Now now) {
  nsq::Identify wish;
  if (!nsq::decode_identify(text_of(body.bytes()), wish)) {
    return fail("E_BAD_BODY IDENTIFY failed to decode JSON body", now);
  }
  nsq::IdentifyLimits limits = env_.identify;
  if (upgraded_) limits.tls_available = limits.snappy_enabled = limits.deflate_enabled = false;
  auto granted = nsq::negotiate(wish, settings_, limits);
  if (!granted) return fail(std::move(granted.error()), now);
  settings_ = *granted;
  client_id_ = std::move(wish.client_id);
  hostname_ = std::move(wish.hostname);
  user_agent_ = std::move(wish.user_agent);
  next_tick_ = heartbeats_on() ? now.mono + settings_.heartbeat_ms * kMillisecond : Instant::never();
  respond(nsq::FrameType::response, wish.feature_negotiation ? nsq::identify_reply(settings_, limits) : std::string(nsq::kOk));
  complete(now);
  begin_upgrade();
}

}  // namespace rq::broker
