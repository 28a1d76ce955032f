#include "sim/actor.h"

namespace rq::sim {
namespace {
constexpr std::int64_t kConnectLimit = 3 * kSecond;
constexpr std::uint64_t kPauseMs = 300;
}  // namespace

Actor::Actor(Stage& stage, io::Host& host, std::string address)
    : stage_(stage),
      host_(host),
      random_(host.random.split("actor")),
      layer_draws_(host.random.split("layers")),
      address_(std::move(address)) {}

void Actor::introduce(std::string_view fields) {
  if (layer_draws_.chance(static_cast<std::uint32_t>(stage_.swarm.layers))) layers_.draw(layer_draws_);
  link_->send("  V2");
  link_->send(identify_command("{" + std::string(fields) + layers_.wish() + "}"));
}

void Actor::negotiate(Frame frame, Now now) {
  bool agreed = false;
  const bool first = introduction_.type == -1;
  link_->send(layers_.on_frame(frame, agreed));
  if (first || !agreed) introduction_ = std::move(frame);
  if (!agreed && introduction_.type == 0) stage_.complain("an upgrade was answered with " + introduction_.payload);
  if (!agreed || layers_.established()) on_frame(introduction_, now);
}

void Actor::expire(Now now) {
  if (link_ == nullptr && now.mono >= connect_at_ && wants_connection()) {
    link_ = std::make_unique<Link>(host_);
    layers_ = Layers();
    introduction_ = Frame();
    announced_ = false;
    heard_at_ = now.mono;
    link_->open(address_, now.mono + kConnectLimit);
  }
  if (ready() && now.mono >= heard_at_ + silence_ns()) hang_up(now, 0);
  on_time(now);
}

void Actor::settle(Now now) {
  if (link_ != nullptr) {
    if (link_->connected() && !announced_ && !link_->ended()) {
      announced_ = true;
      heard_at_ = now.mono;
      on_connected(now);
    }
    if (!link_->inbox.empty()) {
      heard_at_ = now.mono;
      on_bytes(now);
    }
    if (link_->ended()) {
      if (announced_) {
        announced_ = false;
        on_closed(now);
      }
      const std::uint64_t pause_ms = 1 + random_.below(stage_.calm ? 20 : kPauseMs);
      if (link_->idle()) {
        link_.reset();
        connect_at_ = std::max(connect_at_, now.mono + static_cast<std::int64_t>(pause_ms) * kMillisecond);
      }
    } else {
      link_->submit();
    }
  }
}

void Actor::on_bytes(Now now) {
  bool broken = false;
  while (link_ != nullptr && !link_->ended()) {
    if (!layers_.receive(link_->inbox)) {
      stage_.complain("undecodable bytes from the Broker");
      break;
    }
    std::optional<Frame> frame = take_frame(layers_.plain, now.mono, broken);
    if (!frame) break;
    if (!layers_.established()) {
      negotiate(std::move(*frame), now);
      continue;
    }
    if (frame->type == 0 && frame->payload == "_heartbeat_") {
      say("NOP\n");
      Frame heartbeat = std::move(*frame);
      on_frame(heartbeat, now);
      continue;
    }
    on_frame(*frame, now);
  }
  if (broken) stage_.complain("a frame of impossible size from the Broker");
}

void Actor::hang_up(Now now, std::int64_t pause_ns) {
  if (link_ == nullptr || link_->ended()) return;
  link_->close();
  connect_at_ = now.mono + pause_ns;
}

Instant Actor::next_deadline() const {
  Instant next = next_time();
  if (link_ == nullptr && wants_connection()) next = std::min(next, connect_at_);
  if (ready()) next = std::min(next, heard_at_ + silence_ns());
  return next;
}

}  // namespace rq::sim
