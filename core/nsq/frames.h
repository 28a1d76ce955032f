// What the Broker sends over NSQ V2 (page 10 sections 1.2 and 1.3).
//
//   offset 0   int32   size = 4 + payload, the size field itself not counted
//   offset 4   int32   frame type
//   offset 8   bytes   payload
//
// A message payload starts with: int64 timestamp (ns), uint16 attempts, 16 bytes id; the body follows.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/bytes.h"

namespace rq::nsq {

enum class FrameType : std::uint32_t { response = 0, error = 1, message = 2 };

inline constexpr std::uint32_t kFrameHeaderBytes = 8;
inline constexpr std::uint32_t kMessageHeaderBytes = 26;
inline constexpr std::uint32_t kMessageIdBytes = 16;

inline constexpr std::string_view kMagic = "  V2";
inline constexpr std::string_view kOk = "OK";
inline constexpr std::string_view kHeartbeat = "_heartbeat_";
inline constexpr std::string_view kCloseWait = "CLOSE_WAIT";

void put_frame(std::string& out, FrameType type, std::string_view payload);
// Frame header and message header; `body_bytes` of body must follow.
void put_message_header(std::string& out, std::int64_t timestamp_ns, std::uint16_t attempts, std::uint64_t id,
                        std::uint32_t body_bytes);

// The 16 lower-case hex digits of an id.
void put_message_id(std::string& out, std::uint64_t id);
// None for what is no id of this product; such an id is never in flight.
std::optional<std::uint64_t> parse_message_id(std::string_view text);

}  // namespace rq::nsq
