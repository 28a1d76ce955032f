// Frames as a client writes them: masked.
#pragma once

#include <string>
#include <string_view>

#include "core/base/bytes.h"

namespace rq::ws {

inline std::string client_frame(std::uint8_t opcode, std::string_view payload, bool final = true) {
  constexpr std::string_view kMask = "\x11\xa2\x33\xc4";
  std::string out;
  put8(out, static_cast<std::uint8_t>((final ? 0x80 : 0) | opcode));
  if (payload.size() < 126) {
    put8(out, static_cast<std::uint8_t>(0x80 | payload.size()));
  } else if (payload.size() <= 0xffff) {
    put8(out, 0x80 | 126);
    put16(out, static_cast<std::uint16_t>(payload.size()));
  } else {
    put8(out, 0x80 | 127);
    put64(out, payload.size());
  }
  out += kMask;
  for (std::size_t i = 0; i < payload.size(); ++i) out.push_back(static_cast<char>(payload[i] ^ kMask[i & 3]));
  return out;
}

}  // namespace rq::ws
