#include "core/ws/frame.h"

#include <algorithm>
#include <utility>

namespace rq::ws {
namespace {

constexpr std::size_t kReasonBytesMax = kControlBytesMax - 2;

// Codes that may stand in a close frame (RFC 6455 section 7.4).
bool sendable(std::uint16_t code) {
  if (code >= 3000 && code <= 4999) return true;
  return code >= 1000 && code <= 1014 && code != 1004 && code != 1005 && code != 1006;
}

// Bytes of the whole header, by its first two.
std::size_t header_bytes(std::byte second) {
  const auto length = static_cast<std::uint8_t>(second) & 0x7f;
  return 2 + (length == 126 ? 2u : length == 127 ? 8u : 0u) + 4;
}

}  // namespace

void put_frame_header(std::string& out, Opcode opcode, std::uint64_t payload_bytes) {
  put8(out, static_cast<std::uint8_t>(0x80 | static_cast<std::uint8_t>(opcode)));
  if (payload_bytes < 126) {
    put8(out, static_cast<std::uint8_t>(payload_bytes));
  } else if (payload_bytes <= 0xffff) {
    put8(out, 126);
    put16(out, static_cast<std::uint16_t>(payload_bytes));
  } else {
    put8(out, 127);
    put64(out, payload_bytes);
  }
}

void put_frame(std::string& out, Opcode opcode, std::string_view payload) {
  put_frame_header(out, opcode, payload.size());
  out += payload;
}

void put_close(std::string& out, std::uint16_t code, std::string_view reason) {
  std::string payload;
  if (code != 0) {
    put16(payload, code);
    payload += reason.substr(0, kReasonBytesMax);
  }
  put_frame(out, Opcode::close, payload);
}

std::size_t FrameParser::feed(ConstBuf input) {
  std::size_t used = 0;
  while (failed_ == 0 && ready_.kind == Incoming::Kind::none) {
    if (!in_payload_) {
      if (used == input.size()) return used;
      used += feed_header(input.subspan(used));
      continue;
    }
    const std::size_t bytes = static_cast<std::size_t>(std::min<std::uint64_t>(left_, input.size() - used));
    std::string& payload = control() ? control_payload_ : message_;
    for (std::size_t i = 0; i < bytes; ++i) payload.push_back(static_cast<char>(input[used + i] ^ mask_[at_++ & 3]));
    used += bytes;
    left_ -= bytes;
    if (left_ > 0) return used;
    end_frame();
  }
  return used;
}

std::size_t FrameParser::feed_header(ConstBuf input) {
  std::size_t used = 0;
  for (;;) {
    const std::size_t wanted = header_bytes_ < 2 ? 2 : header_bytes(header_[1]);
    if (header_bytes_ == wanted) break;
    if (used == input.size()) return used;
    header_[header_bytes_++] = input[used++];
    if (header_bytes_ == 2 && (static_cast<std::uint8_t>(header_[1]) & 0x80) == 0) {
      fail(kCloseProtocol);  // its mask does not come
      return used;
    }
  }
  begin_payload();
  return used;
}

void FrameParser::begin_payload() {
  const auto first = static_cast<std::uint8_t>(header_[0]);
  const auto length = static_cast<std::uint8_t>(header_[1]) & 0x7f;
  std::copy_n(header_ + header_bytes_ - 4, 4, mask_);
  final_ = (first & 0x80) != 0;
  opcode_ = first & 0x0f;
  left_ = length == 126 ? load16(header_ + 2) : length == 127 ? load64(header_ + 2) : static_cast<std::uint64_t>(length);
  at_ = 0;
  header_bytes_ = 0;
  ++frames_;
  if ((first & 0x70) != 0) return fail(kCloseProtocol);
  if (control()) {
    if (opcode_ > 10 || !final_ || left_ > kControlBytesMax) return fail(kCloseProtocol);
  } else {
    if (opcode_ > 2 || (opcode_ == 0) != in_message_) return fail(kCloseProtocol);
    if (left_ > message_bytes_max_ - message_.size()) return fail(kCloseTooBig);
    if (opcode_ != 0) message_opcode_ = opcode_;
    in_message_ = true;
  }
  in_payload_ = true;
}

void FrameParser::end_frame() {
  in_payload_ = false;
  if (control()) return end_control();
  if (!final_) return;
  in_message_ = false;
  ready_.kind = message_opcode_ == 1 ? Incoming::Kind::text : Incoming::Kind::binary;
  ready_.payload = std::exchange(message_, {});
}

void FrameParser::end_control() {
  ready_.payload = std::exchange(control_payload_, {});
  if (opcode_ != static_cast<std::uint8_t>(Opcode::close)) {
    ready_.kind = opcode_ == static_cast<std::uint8_t>(Opcode::ping) ? Incoming::Kind::ping : Incoming::Kind::pong;
    return;
  }
  if (!ready_.payload.empty()) {
    if (ready_.payload.size() >= 2) ready_.close_code = load16(bytes_of(ready_.payload).data());
    if (!sendable(ready_.close_code)) {
      ready_ = {};
      return fail(kCloseProtocol);
    }
    ready_.payload.erase(0, 2);
  }
  ready_.kind = Incoming::Kind::close;
}

Incoming FrameParser::take() { return std::exchange(ready_, {}); }

}  // namespace rq::ws
