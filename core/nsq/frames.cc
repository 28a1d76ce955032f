#include "core/nsq/frames.h"

#include "core/base/check.h"
#include "core/base/hex.h"

namespace rq::nsq {

void put_frame(std::string& out, FrameType type, std::string_view payload) {
  RQ_CHECK(!payload.empty());  // an empty response crashes clients (page 10 section 1.2)
  put32(out, 4 + static_cast<std::uint32_t>(payload.size()));
  put32(out, static_cast<std::uint32_t>(type));
  out.append(payload);
}

void put_message_header(std::string& out, std::int64_t timestamp_ns, std::uint16_t attempts, std::uint64_t id,
                        std::uint32_t body_bytes) {
  std::byte header[kFrameHeaderBytes + 10];
  store32(header, 4 + kMessageHeaderBytes + body_bytes);
  store32(header + 4, static_cast<std::uint32_t>(FrameType::message));
  store64(header + 8, static_cast<std::uint64_t>(timestamp_ns));
  store16(header + 16, attempts);
  put_bytes(out, header);
  put_message_id(out, id);
}

void put_message_id(std::string& out, std::uint64_t id) {
  char digits[kMessageIdBytes];
  for (int i = kMessageIdBytes - 1; i >= 0; --i, id >>= 4) digits[i] = "0123456789abcdef"[id & 15];
  out.append(digits, kMessageIdBytes);
}

std::optional<std::uint64_t> parse_message_id(std::string_view text) { return parse_hex16(text); }

}  // namespace rq::nsq
