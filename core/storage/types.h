// The vocabulary of the storage layer (page 20 section 3.4, page 30 section 1.4).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <tl/expected.hpp>
#include <vector>

namespace rq::storage {

using Position = std::uint64_t;   // per Topic, from 1; 0 is invalid
using LogIndex = std::uint64_t;   // record number per Topic, from 1, never a gap
using MessageId = std::uint64_t;  // node_id << 48 | sequence; 0 is invalid

inline constexpr std::uint32_t kDataFormat = 7;
inline constexpr std::uint32_t kRecordHeaderBytes = 48;
inline constexpr std::uint32_t kBatchItemBytes = 20;                // position, id, length
inline constexpr std::uint32_t kPayloadBytesMax = 160u << 20;       // 167,772,160
inline constexpr std::uint32_t kPayloadBytesMaxLevel1 = 72u << 20;  // 75,497,472
inline constexpr std::uint32_t kBatchMessagesMax = 65'536;
inline constexpr std::uint64_t kSidecarBytesMax = 512ull << 20;
inline constexpr std::uint32_t kMetadataPageEntries = 1'024;
inline constexpr std::uint32_t kWalCheckpointCommands = 8'192;
inline constexpr std::uint32_t kWalCommandsMax = 16'384;
inline constexpr std::uint32_t kChannelsMax = 1'024;
inline constexpr std::uint64_t kSequenceBlock = 1ull << 20;
inline constexpr std::uint64_t kSequenceEnd = 1ull << 48;  // exclusive
inline constexpr std::uint64_t kJsonBytesMax = 64ull << 20;

// One stored message, without its body.
struct MessageMeta {
  Position position = 0;
  MessageId id = 0;
  std::int64_t timestamp_ns = 0;
  std::int64_t available_at_ms = 0;
  LogIndex log_index = 0;
  std::uint64_t body_offset = 0;  // in the segment file
  std::uint32_t body_bytes = 0;
  std::uint32_t body_crc = 0;
  bool operator==(const MessageMeta&) const = default;
};

// Why opening, verifying or a running operation failed: the file, where it is known the offset of the record or frame, and what
// is wrong there. The text of message() names file and offset in decimal (D-42, D-42a).
struct Fault {
  std::string file;  // relative to the data directory where possible
  std::optional<std::uint64_t> offset;
  std::string what;
  std::string message() const;  // "<file> at offset <n>: <what>"
};
template <class T>
using Result = tl::expected<T, Fault>;

// A closed range of positions.
struct Range {
  Position first = 0;
  Position last = 0;
  bool operator==(const Range&) const = default;
};

}  // namespace rq::storage
