#include "sim/feed_reader.h"

#include <algorithm>
#include <set>

#include "core/base/bytes.h"

namespace rq::sim {
namespace {

constexpr std::int64_t kMoodMs = 800;  // mean time until it does something else

// A masked frame of a client.
std::string frame_of(std::uint8_t opcode, std::string_view payload) {
  std::string out;
  put8(out, static_cast<std::uint8_t>(0x80 | opcode));
  put8(out, static_cast<std::uint8_t>(0x80 | payload.size()));
  put32(out, 0);  // a mask that changes nothing
  return out += payload;
}

const std::set<std::string, std::less<>> kRefusals = {"409 E_WS_TTL_REQUIRED", "404 E_BAD_TOPIC", "503 E_DRAINING",
                                                      "503 E_SHUTDOWN",        "503 E_STORAGE",   "429 E_WS_CAPACITY"};
const std::set<std::string, std::less<>> kEnds = {"E_WS_TTL_REQUIRED 1008", "E_WS_CAPACITY 1013",   "E_WS_HEARTBEAT 1008",
                                                  "E_TOPIC_CLOSED 1001",    "E_OWNER_CHANGED 1012", "E_DRAINING 1001",
                                                  "E_SHUTDOWN 1001"};

}  // namespace

FeedReader::FeedReader(Stage& stage, io::Host& host, std::string address, std::string topic)
    : Actor(stage, host, std::move(address)), topic_(std::move(topic)) {}

std::int64_t FeedReader::silence_ns() const {
  return std::max<std::int64_t>(10 * kSecond, 3 * stage_.swarm.heartbeat_ms * kMillisecond);
}

void FeedReader::on_connected(Now) {
  step_ = Step::head;
  link_->send("GET /v1/ws/topics/" + topic_ +
              " HTTP/1.1\r\nHost: broker\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: AAAA\r\n"
              "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: rustqueue.live.v1\r\n\r\n");
}

void FeedReader::on_closed(Now) {
  ready_ = false;
  code_.clear();
  ids_.clear();
}

void FeedReader::on_bytes(Now now) {
  if (step_ == Step::head && !take_head()) return;
  while (step_ == Step::frames && link_ != nullptr && take_frame(now)) continue;
  if (step_ != Step::done) return;
  link_->inbox.clear();
  hang_up(now, static_cast<std::int64_t>(random_.below(kSecond)));
}

bool FeedReader::take_head() {
  std::string& inbox = link_->inbox;
  const std::size_t end = inbox.find("\r\n\r\n");
  if (end == std::string::npos) return false;
  if (inbox.starts_with("HTTP/1.1 101 ")) {
    inbox.erase(0, end + 4);
    step_ = Step::frames;
    return true;
  }
  constexpr std::string_view kMessage = "\"message\":\"";
  const std::size_t from = inbox.find(kMessage);
  const std::size_t until = from == std::string::npos ? from : inbox.find('"', from + kMessage.size());
  if (until == std::string::npos) return false;
  const std::string refusal = inbox.substr(9, 3) + " " + inbox.substr(from + kMessage.size(), until - from - kMessage.size());
  if (!kRefusals.contains(refusal)) stage_.complain("a live feed was refused with " + refusal);
  step_ = Step::done;
  return true;
}

bool FeedReader::take_frame(Now) {
  const std::string& inbox = link_->inbox;
  if (inbox.size() < 2) return false;
  const auto* bytes = bytes_of(inbox).data();
  const auto first = static_cast<std::uint8_t>(inbox[0]), second = static_cast<std::uint8_t>(inbox[1]);
  if ((first & 0xf0) != 0x80 || (second & 0x80) != 0) {
    stage_.complain("a frame of the Broker is not whole, or masked");
    return false;
  }
  const std::size_t header = second == 126 ? 4 : second == 127 ? 10 : 2;
  if (inbox.size() < header) return false;
  const std::uint64_t size = second == 126 ? load16(bytes + 2) : second == 127 ? load64(bytes + 2) : second;
  if (inbox.size() - header < size) return false;
  const std::string payload = inbox.substr(header, size);
  link_->inbox.erase(0, header + size);
  switch (first & 0x0f) {
    case 1:
      on_text(payload);
      return true;
    case 2:
      on_message(payload);
      return true;
    case 9:
      link_->send(frame_of(10, payload));
      return true;
    case 8: {
      const std::string end = code_ + " " + std::to_string(payload.size() < 2 ? 0 : load16(bytes_of(payload).data()));
      if (!kEnds.contains(end) || payload.substr(2) != code_) stage_.complain("a live feed ended with " + end);
      step_ = Step::done;
      return true;
    }
    default:
      stage_.complain("a frame with opcode " + std::to_string(first & 0x0f) + " from the Broker");
      return false;
  }
}

void FeedReader::on_text(std::string_view text) {
  if (!ready_ && text.starts_with(R"({"type":"ready",)")) {
    ready_ = true;
    return;
  }
  constexpr std::string_view kError = R"({"type":"error","code":")";
  if (!text.starts_with(kError) || !code_.empty()) return stage_.complain("a live feed said " + std::string(text));
  code_ = text.substr(kError.size(), text.find('"', kError.size()) - kError.size());
}

void FeedReader::on_message(std::string_view frame) {
  if (!ready_ || !code_.empty() || frame.size() < 25 || !frame.starts_with(std::string_view("RQW1\0\x18", 6)))
    return stage_.complain("a message that a live feed must not send");
  const std::uint64_t id = load64(bytes_of(frame).data() + 16);
  if (!ids_.insert(id).second) stage_.complain("a live feed sent a message twice");
  ++stage_.feed_messages;
}

void FeedReader::on_time(Now now) {
  if (link_ == nullptr || link_->ended()) return;
  if (stage_.calm) return hang_up(now, 0);
  if (now.mono < moody_at_) return;
  moody_at_ = now.mono + static_cast<std::int64_t>(random_.below(2 * kMoodMs)) * kMillisecond;
  const std::uint64_t mood = random_.below(8);
  if (mood == 0) return hang_up(now, static_cast<std::int64_t>(random_.below(kSecond)));
  link_->reading = mood > 2;
}

Instant FeedReader::next_time() const { return link_ == nullptr || link_->ended() ? Instant::never() : moody_at_; }

}  // namespace rq::sim
