#include "bench/load/consumer.h"

#include "core/nsq/frames.h"

namespace rq::load {

void Consumer::subscribe(std::string_view topic, std::string_view channel, std::string& out) {
  out.append("SUB ").append(topic).append(" ").append(channel).append("\n");
}

void Consumer::on_bytes(ConstBuf bytes, std::string& out) {
  if (!frames_.feed(bytes, [&](const Frame& frame) { on_frame(frame, out); })) fail("received what is no frame");
}

void Consumer::stop(std::string& out) {
  if (state_ != State::consuming) return;
  state_ = State::stopping;
  out += "CLS\n";
}

void Consumer::fail(std::string why) {
  if (error_.empty()) error_ = std::move(why);
}

void Consumer::on_frame(const Frame& frame, std::string& out) {
  const std::string_view payload = text_of(frame.payload);
  if (frame.type == 2 && payload.size() >= nsq::kMessageHeaderBytes && subscribed()) return on_message(frame.payload, out);
  if (frame.type == 0) return on_response(payload, out);
  // A message that was delivered again, because its FIN took too long, is counted as a duplicate; its first FIN fails.
  if (frame.type == 1 && payload.starts_with("E_FIN_FAILED")) return;
  fail(frame.type == 1 ? "was answered " + std::string(payload.substr(0, 200)) : "received an unexpected frame");
}

void Consumer::on_response(std::string_view payload, std::string& out) {
  if (payload == nsq::kHeartbeat) {
    out += "NOP\n";
  } else if (payload == nsq::kOk && state_ == State::subscribing) {
    state_ = State::consuming;
    credit_ = kReady;
    out.append("RDY ").append(std::to_string(kReady)).append("\n");
  } else if (payload == nsq::kCloseWait && state_ == State::stopping) {
    state_ = State::close_wait;
  } else {
    fail("received an unexpected frame");
  }
}

void Consumer::on_message(ConstBuf payload, std::string& out) {
  const std::string_view id = text_of(payload.subspan(10, nsq::kMessageIdBytes));
  std::uint64_t number = nsq::parse_message_id(id).value_or(0);
  const Body::Kind kind = body_.look(payload.subspan(nsq::kMessageHeaderBytes), number);
  if (kind == Body::Kind::altered) return fail("received message " + std::string(id) + " with a body that was not published");
  if (kind == Body::Kind::ours && deliveries_.counting) {
    ++deliveries_.total;
    deliveries_.unique.insert(number);
  }
  out.append("FIN ").append(id).append("\n");
  if (credit_ > 0 && --credit_ <= kRefillAt && state_ == State::consuming) {
    credit_ = kReady;
    out.append("RDY ").append(std::to_string(kReady)).append("\n");
  }
}

}  // namespace rq::load
