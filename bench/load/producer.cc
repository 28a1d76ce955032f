#include "bench/load/producer.h"

#include "core/base/check.h"
#include "core/nsq/frames.h"

namespace rq::load {

ConstBuf Producer::publish(std::uint64_t first, std::uint32_t count, Instant since) {
  RQ_CHECK(!waiting());
  count_ = count;
  since_ = since;
  return command_.set(first, count);
}

Producer::Answered Producer::on_bytes(ConstBuf bytes, std::string& out) {
  Answered answered;
  if (!frames_.feed(bytes, [&](const Frame& frame) { on_frame(frame, out, answered); })) error_ = "received what is no frame";
  return answered;
}

void Producer::on_frame(const Frame& frame, std::string& out, Answered& answered) {
  const std::string_view payload = text_of(frame.payload);
  if (frame.type == 0 && payload == nsq::kHeartbeat) {
    out += "NOP\n";
  } else if (frame.type == 0 && payload == nsq::kOk && waiting()) {
    answered = {count_, since_};
    count_ = 0;
  } else if (error_.empty()) {
    error_ = frame.type == 1 ? "was answered " + std::string(payload.substr(0, 200)) : "received an unexpected frame";
  }
}

}  // namespace rq::load
