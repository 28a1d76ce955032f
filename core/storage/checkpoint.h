// The Channel checkpoint (page 20 section 6.1): one frame (core/storage/frame.h, magic "RCC7") around a JSON document.
#pragma once

#include <string>

#include "core/storage/format_files.h"
#include "core/storage/image.h"

namespace rq::storage {

inline constexpr std::uint64_t kCheckpointBodyBytesMax = 64ull << 20;  // on read; the file is 12 bytes longer
// The writer of the reference caps the whole file at 64 MiB, so nothing larger is written.
inline constexpr std::uint64_t kCheckpointFileBytesMax = 64ull << 20;

struct Checkpoint {
  ChannelImage channel;  // wal_commands and wal_bytes are not part of it
  bool ephemeral = false;
};

// Positions between floor and cursor of which a checkpoint certainly holds everything: each takes 73 bytes at most, a requeue
// target and attempts with the longest numbers. A larger window could make a file that no start reads.
inline constexpr std::uint64_t kAckGapMax = 900'000;
static_assert(73 * kAckGapMax + 4'096 <= kCheckpointFileBytesMax);

// The whole file; within kCheckpointFileBytesMax for a Channel whose window is within kAckGapMax.
std::string encode_checkpoint(const ChannelImage& channel, bool ephemeral = false);
// The whole file. Acknowledged positions come back ascending and unique; those at or below the floor are still there.
Decoded<Checkpoint> decode_checkpoint(ConstBuf file);

}  // namespace rq::storage
