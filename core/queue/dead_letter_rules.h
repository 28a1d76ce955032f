// Which messages become dead letters, and where they go (page 30 section 10). Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/time.h"

namespace rq::queue {

struct DeadLetterSettings {
  std::uint64_t max_delivery_attempts = 16;     // 1..65535; a client sees at most one less
  std::uint64_t message_retention_seconds = 0;  // 0 = age is no reason
  std::string suffix = ".DLQ";                  // 1..16 bytes of a name, without '#'
};

enum class DeadLetterCause : std::uint8_t { none, attempts, age };

// For a message at its hand-over: `attempts` of this reservation, timestamp in nanoseconds of the wall clock. A Topic whose name
// ends in the suffix has no dead letters; that of a TTL_DISCARD Topic is the caller's to know (I-49).
DeadLetterCause dead_letter_cause(const DeadLetterSettings& settings, std::string_view topic, std::uint16_t attempts,
                                  std::int64_t timestamp_ns, WallTime now);

// "<topic>.<channel><suffix>" where that is a name, else a prefix of the topic, ".", 8 hex digits of a CRC-32C over both names,
// and the suffix. Always a valid name without "#ephemeral" (O-10).
std::string dead_letter_target(std::string_view topic, std::string_view channel, std::string_view suffix);

// Largest body that a move takes along, in bytes; the publish limit of the configuration does not count here.
std::uint64_t dead_letter_body_max(std::uint32_t feature_level);

}  // namespace rq::queue
