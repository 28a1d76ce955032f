// Channel WAL commands and their frames (page 20 sections 6 and 6.2).
//
//   frame  | 0 magic "RCW7" | 4 body length u32 | 8 CRC-32C of the body u32 | 12 body |
//   body   | 0 tag u8 | 1 fields, exactly as long as the tag says |
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/bytes.h"
#include "core/storage/frame.h"
#include "core/storage/types.h"

namespace rq::storage {

inline constexpr std::uint32_t kWalBodyBytesMax = 1u << 20;

struct WalCommand {
  enum class Kind : std::uint8_t {
    finish = 1,           // position, id
    requeue = 2,          // position, id, available_at_ms, attempts (feature level 1)
    pause = 3,            // paused
    empty = 4,            // position = through
    evict = 5,            // position = through
    timeout = 6,          // count = cumulative timeouts (feature level 2)
    requeue_counted = 7,  // as requeue, and count = cumulative requeues (feature level 2)
  };
  Kind kind = Kind::finish;
  Position position = 0;
  MessageId id = 0;
  std::int64_t available_at_ms = 0;
  std::uint16_t attempts = 0;
  bool paused = false;
  std::uint64_t count = 0;
  bool operator==(const WalCommand&) const = default;
};

// One complete frame: its bytes, written at `at`, where they have room.
std::uint32_t wal_frame_bytes(const WalCommand& command);
void encode_wal_frame(std::byte* at, const WalCommand& command);
// Appends one.
void put_wal_frame(std::string& out, const WalCommand& command);

// Decodes a frame body; the length must match exactly. False: unknown tag, wrong length, pause value above 1.
bool decode_wal_body(ConstBuf body, WalCommand& out);

// Looks at the next frame of a WAL image (page 20 section 6.4).
enum class WalRead {
  command,     // `out` filled, `consumed` set
  end,         // no byte left
  torn,        // fewer than 12 bytes, or the body reaches past the end: truncate here
  bad_magic,   // the rest fails closed
  bad_length,  // above 1 MiB, or past the end with another frame inside
  bad_crc,
  bad_command,
};
WalRead read_wal_frame(ConstBuf rest, WalCommand& out, std::uint32_t& consumed);

}  // namespace rq::storage
