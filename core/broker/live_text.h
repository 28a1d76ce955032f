// What a live feed says and hears: the text controls, the binary header of a message, the terminal codes (page 31 sections 6.2 to
// 6.4 and 6.6, D-34).
//
//   offset  size  field of a message, big-endian
//        0     4  "RQW1"
//        4     2  header length, 24
//        6     2  attempts
//        8     8  Broker timestamp, ns, signed
//       16     8  message id
//       24     -  body
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/bytes.h"

namespace rq::broker {

inline constexpr std::string_view kLiveProtocol = "rustqueue.live.v1";
inline constexpr std::string_view kLiveAuthChannel = "websocket#ephemeral";  // what AUTH is asked about
inline constexpr std::uint64_t kLiveHeaderBytes = 24;
inline constexpr std::size_t kLiveIncomingBytesMax = 65'536;

// The end of a feed: a text control, then a close frame whose reason is the code.
struct LiveEnd {
  std::string_view code;  // literals
  std::uint16_t close = 0;
  std::string_view detail;
};
namespace live_end {
inline constexpr LiveEnd kAuthTimeout{"E_AUTH_TIMEOUT", 1008, "no auth message in time"};
inline constexpr LiveEnd kBadAuth{"E_BAD_AUTH", 1008, "the first message must be a text with type auth and a secret"};
inline constexpr LiveEnd kAuthFailed{"E_AUTH_FAILED", 1008, "the auth service could not say"};
inline constexpr LiveEnd kAuthOverloaded{"E_AUTH_OVERLOADED", 1008, "no memory for another authorization"};
inline constexpr LiveEnd kUnauthorized{"E_UNAUTHORIZED", 1008, "not permitted to subscribe to this Topic"};
inline constexpr LiveEnd kTtlRequired{"E_WS_TTL_REQUIRED", 1008, "the Topic is or was RELIABLE"};
inline constexpr LiveEnd kControl{"E_WS_CONTROL", 1008, "messages of the client are not supported"};
inline constexpr LiveEnd kHeartbeat{"E_WS_HEARTBEAT", 1008, "no frame from the client for two heartbeat intervals"};
inline constexpr LiveEnd kChannelLimit{"E_WS_CAPACITY", 1013, "the Topic has no room for another Channel"};
inline constexpr LiveEnd kFrameMemory{"E_WS_CAPACITY", 1013, "no frame memory for the next message"};
inline constexpr LiveEnd kTopicClosed{"E_TOPIC_CLOSED", 1001, "the Topic is gone"};
inline constexpr LiveEnd kOwnerChanged{"E_OWNER_CHANGED", 1012, "the Topic is managed elsewhere now"};
inline constexpr LiveEnd kDraining{"E_DRAINING", 1001, "the Broker is draining"};
inline constexpr LiveEnd kShutdown{"E_SHUTDOWN", 1001, "the Broker is shutting down"};
}  // namespace live_end

std::string auth_required_control();
std::string ready_control(std::string_view topic, std::uint64_t subscription);
std::string error_control(const LiveEnd& end);

// The secret of {"type":"auth","secret":"..."}; nothing when the text is anything else.
std::optional<std::string> auth_secret(std::string_view text);
// Of "Bearer <secret>"; nothing for another form or an empty secret.
std::optional<std::string> bearer_secret(std::string_view authorization);

void put_live_header(std::string& out, std::uint16_t attempts, std::int64_t timestamp_ns, std::uint64_t id);

}  // namespace rq::broker
