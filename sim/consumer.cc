#include "sim/consumer.h"

namespace rq::sim {

Consumer::Consumer(Stage& stage, io::Host& host, std::string address, std::string topic, std::string channel)
    : Actor(stage, host, std::move(address)), topic_(std::move(topic)), channel_(std::move(channel)) {}

std::int64_t Consumer::silence_ns() const { return 3 * stage_.swarm.heartbeat_ms * kMillisecond; }

void Consumer::doubt() {
  if (subscription_) stage_.ledger.doubtful(*subscription_);
}

void Consumer::on_connected(Now) {
  step_ = Step::identify;
  introduce(R"("client_id":"c","hostname":"sim","heartbeat_interval":)" + std::to_string(stage_.swarm.heartbeat_ms) +
            R"(,"msg_timeout":)" + std::to_string(stage_.swarm.timeout_ms));
}

void Consumer::on_frame(Frame& frame, Now now) {
  if (subscription_) stage_.ledger.heard(*subscription_, now);
  if (frame.payload == "_heartbeat_" && frame.type == 0) return;
  if (frame.is_error("E_INVALID") && frame.payload.ends_with("timed out")) return;  // a slow network; the connection closes
  switch (step_) {
    case Step::identify:
      if (frame.type != 0) return stage_.complain("IDENTIFY was refused: " + frame.payload);
      step_ = Step::subscribe;
      stage_.ledger.subscribe_sent(topic_, channel_, now);
      say("SUB " + topic_ + " " + channel_ + "\n");
      return;
    case Step::subscribe:
      if (frame.type != 0 || frame.payload != "OK") {
        // Limits, a Topic on its way out, draining: the Broker closes, and this tries again.
        if (!frame.is_error("E_SUB_FAILED") && !frame.is_error("E_DRAINING")) stage_.complain("SUB: " + frame.payload);
        return;
      }
      step_ = Step::consume;
      subscription_ = stage_.ledger.subscribed(topic_, channel_, stage_.swarm.timeout_ms * kMillisecond, now);
      send_ready();
      return;
    case Step::consume:
      if (frame.type == 2) {
        const std::optional<Message> message = message_of(frame);
        if (!message) return stage_.complain("a message frame without a header");
        return on_message(*message, now);
      }
      if (frame.type == 1) return on_error(frame, now);
      stage_.complain("a consumer got " + frame.payload);
      return;
  }
}

void Consumer::send_ready() {
  const auto most = static_cast<std::uint64_t>(stage_.swarm.rdy);
  const std::uint64_t rdy = stage_.swarm.ready_changes == 0 ? most : 1 + random_.below(most);
  stage_.ledger.ready(*subscription_, static_cast<std::uint32_t>(rdy));
  say("RDY " + std::to_string(rdy) + "\n");
}

void Consumer::on_message(const Message& message, Now now) {
  const Swarm& swarm = stage_.swarm;
  stage_.ledger.delivered(*subscription_, message.id, message.timestamp_ns, message.attempts, message.body, now);
  const auto chance = [&](std::int64_t per_1024) { return !stage_.calm && random_.chance(static_cast<std::uint32_t>(per_1024)); };
  const bool hang = chance(swarm.hang_up);
  const bool ignore = chance(swarm.ignore);
  const bool requeue = chance(swarm.req);
  const bool touch = chance(swarm.touch);
  if (chance(swarm.ready_changes)) send_ready();
  if (hang) return hang_up(now, static_cast<std::int64_t>(random_.below(2 * kSecond)));
  if (ignore) return;
  const std::uint64_t think_us = stage_.calm ? 0 : 2 * static_cast<std::uint64_t>(swarm.think_ms) * 1'000;
  const std::int64_t at = now.mono.ns + static_cast<std::int64_t>(random_.below(think_us + 1)) * kMicrosecond;
  if (touch) plans_.emplace(at, Plan{Deed::touch, message.id});
  plans_.emplace(touch ? at + 50 * kMillisecond : at, Plan{requeue ? Deed::requeue : Deed::finish, message.id});
}

void Consumer::on_error(const Frame& frame, Now now) {
  // "E_FIN_FAILED FIN <id> failed <reason>"
  const bool fin = frame.is_error("E_FIN_FAILED"), req = frame.is_error("E_REQ_FAILED");
  if (fin || req) {
    // After a storage fault it may be durable nevertheless (page 30 section 4).
    const bool definite = frame.payload.ends_with("ID not in flight") || frame.payload.ends_with("client does not own message");
    if (!definite) return;
    const std::string id = frame.payload.size() >= 33 ? frame.payload.substr(17, 16) : "";
    return stage_.ledger.command_refused(*subscription_, id, fin, now);
  }
  if (frame.is_error("E_TOUCH_FAILED") || frame.is_error("E_DELIVERY_FAILED") || frame.is_error("E_DRAINING")) return;
  stage_.complain("a consumer got " + frame.payload);
}

void Consumer::act(const Plan& plan, Now now) {
  if (!subscription_ || !ready()) return;
  switch (plan.deed) {
    case Deed::finish:
      stage_.ledger.fin_sent(*subscription_, plan.id, now);
      say("FIN " + plan.id + "\n");
      return;
    case Deed::requeue: {
      const std::uint64_t delay_ms = stage_.calm ? 0 : random_.below(static_cast<std::uint64_t>(stage_.swarm.req_ms) + 1);
      stage_.ledger.req_sent(*subscription_, plan.id, static_cast<std::int64_t>(delay_ms) * kMillisecond, now);
      say("REQ " + plan.id + " " + std::to_string(delay_ms) + "\n");
      return;
    }
    case Deed::touch:
      say("TOUCH " + plan.id + "\n");
      return;
  }
}

void Consumer::on_time(Now now) {
  while (!plans_.empty() && plans_.begin()->first <= now.mono.ns) {
    const Plan plan = plans_.begin()->second;
    plans_.erase(plans_.begin());
    act(plan, now);
  }
  if (stage_.calm && !was_calm_ && subscription_ && ready()) send_ready();
  was_calm_ = stage_.calm;
}

Instant Consumer::next_time() const { return plans_.empty() ? Instant::never() : Instant{plans_.begin()->first}; }

void Consumer::on_closed(Now now) {
  if (subscription_) stage_.ledger.closed(*subscription_, now);
  subscription_.reset();
  plans_.clear();
}

}  // namespace rq::sim
