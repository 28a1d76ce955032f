// The frame around a checkpoint and around each WAL command (page 20 section 6).
//
//   | 0 magic, 4 bytes | 4 body length u32 | 8 CRC-32C of the body u32 | 12 body |
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/bytes.h"
#include "core/base/crc32c.h"

namespace rq::storage {

inline constexpr std::uint32_t kFrameHeaderBytes = 12;

struct FrameHeader {
  std::string_view magic;  // of the buffer that was read
  std::uint32_t body_bytes = 0;
  std::uint32_t body_crc = 0;
};

// The caller has checked that 12 bytes are there.
inline FrameHeader read_frame_header(ConstBuf at) { return {text_of(at.first(4)), load32(at.data() + 4), load32(at.data() + 8)}; }

inline void put_frame(std::string& out, std::string_view magic, ConstBuf body) {
  out.append(magic);
  put32(out, static_cast<std::uint32_t>(body.size()));
  put32(out, crc32c(body));
  put_bytes(out, body);
}

}  // namespace rq::storage
