// Dead-letter intents, dlq-outbox/*.outbox (page 20 section 7.1).
//
//   | 0 magic "RQO7" | 4 source topic length u16 | 6 source channel length u16 | 8 target topic length u16 | 10 zero u16
//   | 12 source message id u64 | 20 body length u32 | 24 CRC-32C over bytes 0..23 and 28..end u32
//   | 28 source topic, source channel, target topic, body |
#pragma once

#include <string>
#include <string_view>

#include "core/storage/format_files.h"
#include "core/storage/types.h"

namespace rq::storage {

inline constexpr std::uint32_t kOutboxHeaderBytes = 28;
inline constexpr std::uint64_t kOutboxBytesMax = kPayloadBytesMax + 3 * 65'535 + kOutboxHeaderBytes;

struct OutboxEntry {
  std::string source_topic;
  std::string source_channel;
  std::string target_topic;
  MessageId source_id = 0;
  std::string body;
  bool operator==(const OutboxEntry&) const = default;
};

// `body` stands in place of the entry's.
std::string encode_outbox(const OutboxEntry& entry, std::string_view body);
inline std::string encode_outbox(const OutboxEntry& entry) { return encode_outbox(entry, entry.body); }
Decoded<OutboxEntry> decode_outbox(ConstBuf file);

std::string outbox_file_name(const OutboxEntry& entry);
// The current name, or the one with the older, shorter key.
bool outbox_name_fits(std::string_view file_name, const OutboxEntry& entry);

}  // namespace rq::storage
