// WebSocket frames (RFC 6455 section 5) as a server writes and reads them. No extensions.
//
//   0                                1                                2..                      then
//   FIN RSV1 RSV2 RSV3 opcode(4)     MASK length(7)                   126: u16, 127: u64       mask (4, client only), payload
//
//  I1 What is written is final and unmasked.
//  I2 A frame without mask, with a reserved bit or opcode, a fragmented or long control frame, or a continuation out of place is
//     a protocol error (1002); a message over the limit is refused at the header that makes it too long (1009), before memory is
//     taken for it.
//  I3 How the bytes are cut into pieces changes nothing.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/bytes.h"

namespace rq::ws {

enum class Opcode : std::uint8_t { continuation = 0, text = 1, binary = 2, close = 8, ping = 9, pong = 10 };

// Close codes (RFC 6455 section 7.4.1) that this server sends by itself.
inline constexpr std::uint16_t kCloseGoingAway = 1001, kCloseProtocol = 1002, kClosePolicy = 1008, kCloseTooBig = 1009,
                               kCloseServiceRestart = 1012, kCloseTryLater = 1013;
inline constexpr std::size_t kControlBytesMax = 125;

void put_frame_header(std::string& out, Opcode opcode, std::uint64_t payload_bytes);
void put_frame(std::string& out, Opcode opcode, std::string_view payload);
// The reason is cut to 123 bytes. Code 0: an empty close.
void put_close(std::string& out, std::uint16_t code, std::string_view reason);

// A whole message, or a control frame, from the client.
struct Incoming {
  enum class Kind : std::uint8_t { none, text, binary, ping, pong, close };
  Kind kind = Kind::none;
  std::string payload;           // of a close: the reason
  std::uint16_t close_code = 0;  // 0: there was none
};

class FrameParser {
 public:
  explicit FrameParser(std::size_t message_bytes_max) : message_bytes_max_(message_bytes_max) {}

  // Takes a prefix of the input: everything, or up to the end of what take() then has, or of the header that failed.
  std::size_t feed(ConstBuf input);
  Incoming take();                                   // Kind::none: more bytes are needed
  std::uint16_t failure() const { return failed_; }  // the close code to send; 0: none. Nothing is taken any more.
  // Frames begun so far, of any kind: the peer lives.
  std::uint64_t frames() const { return frames_; }

 private:
  std::size_t feed_header(ConstBuf input);
  void begin_payload();
  void end_frame();
  void end_control();
  bool control() const { return (opcode_ & 8) != 0; }
  void fail(std::uint16_t code) { failed_ = code; }

  std::size_t message_bytes_max_;
  std::uint16_t failed_ = 0;
  std::uint64_t frames_ = 0;
  std::byte header_[14];
  std::size_t header_bytes_ = 0;  // as far as it has arrived
  bool in_payload_ = false;
  bool final_ = false;
  std::uint8_t opcode_ = 0;
  std::uint64_t left_ = 0;  // of the payload
  std::uint64_t at_ = 0;    // in the payload, for the mask
  std::byte mask_[4];
  bool in_message_ = false;  // a fragmented one goes on
  std::uint8_t message_opcode_ = 0;
  std::string message_, control_payload_;
  Incoming ready_;
};

}  // namespace rq::ws
