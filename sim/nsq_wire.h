// The client side of the NSQ V2 protocol, as text: command builders and the frame splitter (page 10 sections 1 and 2).
// Written apart from core/nsq on purpose, so that a mistake in the Broker's codec does not cancel itself out.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/time.h"

namespace rq::sim {

struct Frame {
  std::int32_t type = -1;  // 0 response, 1 error, 2 message; -1: none
  std::string payload;
  Instant at;  // when its last byte arrived
  bool is_error(std::string_view code) const { return type == 1 && payload.starts_with(code); }
};

// The payload of a frame of type 2 (page 10 section 1.3).
struct Message {
  std::int64_t timestamp_ns = 0;
  std::uint16_t attempts = 0;
  std::string id;  // 16 bytes
  std::string body;
  Instant at;
};
std::optional<Message> message_of(const Frame& frame);

// Cuts the first whole frame off `inbox`. A size below 4 or above 256 MiB sets `broken`.
std::optional<Frame> take_frame(std::string& inbox, Instant at, bool& broken);

std::string identify_command(std::string_view json);
std::string pub_command(std::string_view topic, std::string_view body);
std::string mpub_command(std::string_view topic, const std::vector<std::string>& bodies);
std::string dpub_command(std::string_view topic, std::int64_t defer_ms, std::string_view body);

}  // namespace rq::sim
