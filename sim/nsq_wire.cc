#include "sim/nsq_wire.h"

#include "core/base/bytes.h"

namespace rq::sim {
namespace {
constexpr std::uint32_t kFrameBytesMax = 256u << 20;
constexpr std::size_t kMessageHeaderBytes = 26;
}  // namespace

std::optional<Message> message_of(const Frame& frame) {
  if (frame.type != 2 || frame.payload.size() < kMessageHeaderBytes) return std::nullopt;
  const ConstBuf bytes = bytes_of(frame.payload);
  Message message;
  message.timestamp_ns = static_cast<std::int64_t>(load64(bytes.data()));
  message.attempts = load16(bytes.data() + 8);
  message.id = frame.payload.substr(10, 16);
  message.body = frame.payload.substr(kMessageHeaderBytes);
  message.at = frame.at;
  return message;
}

std::optional<Frame> take_frame(std::string& inbox, Instant at, bool& broken) {
  if (inbox.size() < 4) return std::nullopt;
  const ConstBuf bytes = bytes_of(inbox);
  const std::uint32_t size = load32(bytes.data());
  if (size < 4 || size > kFrameBytesMax) {
    broken = true;
    return std::nullopt;
  }
  if (inbox.size() - 4 < size) return std::nullopt;
  Frame frame;
  frame.type = static_cast<std::int32_t>(load32(bytes.data() + 4));
  frame.payload = inbox.substr(8, size - 4);
  frame.at = at;
  inbox.erase(0, 4 + std::size_t{size});
  return frame;
}

std::string identify_command(std::string_view json) {
  std::string out = "IDENTIFY\n";
  put32(out, static_cast<std::uint32_t>(json.size()));
  return out.append(json);
}

std::string pub_command(std::string_view topic, std::string_view body) {
  std::string out = "PUB ";
  out.append(topic).append("\n");
  put32(out, static_cast<std::uint32_t>(body.size()));
  return out.append(body);
}

std::string mpub_command(std::string_view topic, const std::vector<std::string>& bodies) {
  std::string inner;
  put32(inner, static_cast<std::uint32_t>(bodies.size()));
  for (const std::string& body : bodies) {
    put32(inner, static_cast<std::uint32_t>(body.size()));
    inner.append(body);
  }
  std::string out = "MPUB ";
  out.append(topic).append("\n");
  put32(out, static_cast<std::uint32_t>(inner.size()));
  return out.append(inner);
}

std::string dpub_command(std::string_view topic, std::int64_t defer_ms, std::string_view body) {
  std::string out = "DPUB ";
  out.append(topic).append(" ").append(std::to_string(defer_ms)).append("\n");
  put32(out, static_cast<std::uint32_t>(body.size()));
  return out.append(body);
}

}  // namespace rq::sim
