#include "core/queue/dead_letter_rules.h"

#include <algorithm>

#include "core/base/crc32c.h"
#include "core/base/hex.h"
#include "core/storage/names.h"
#include "core/storage/record.h"

namespace rq::queue {

DeadLetterCause dead_letter_cause(const DeadLetterSettings& settings, std::string_view topic, std::uint16_t attempts,
                                  std::int64_t timestamp_ns, WallTime now) {
  const bool many = attempts >= settings.max_delivery_attempts;
  bool old = false;
  if (settings.message_retention_seconds > 0) {
    const std::int64_t age_ns = now.ns - timestamp_ns;
    old = age_ns >= 0 && static_cast<std::uint64_t>(age_ns / kSecond) >= settings.message_retention_seconds;
  }
  if ((!many && !old) || topic.ends_with(settings.suffix)) return DeadLetterCause::none;
  return many ? DeadLetterCause::attempts : DeadLetterCause::age;
}

std::string dead_letter_target(std::string_view topic, std::string_view channel, std::string_view suffix) {
  if (storage::ephemeral_name(topic)) topic.remove_suffix(storage::kEphemeralSuffix.size());
  std::string name = std::string(topic) + "." + std::string(channel) + std::string(suffix);
  if (storage::valid_name(name)) return name;
  std::string both(topic);
  both.push_back('\0');
  both.append(channel);
  const std::string tail = "." + hex16(crc32c(bytes_of(both))).substr(8) + std::string(suffix);
  return std::string(topic.substr(0, std::min(storage::kNameBytesMax - tail.size(), topic.size()))) + tail;
}

std::uint64_t dead_letter_body_max(std::uint32_t feature_level) {
  return feature_level >= 2 ? 100ull << 20 : storage::kPayloadBytesMaxLevel1 - 24;
}

}  // namespace rq::queue
