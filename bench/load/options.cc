#include "bench/load/options.h"

#include <fmt/format.h>

#include <algorithm>

#include "bench/load/body.h"
#include "core/storage/names.h"

namespace rq::load {
namespace {

using storage::kNameBytesMax;
constexpr std::string_view kEphemeral = storage::kEphemeralSuffix;

struct Bounds {
  const char* flag;
  std::uint64_t value, least, most;
};

std::optional<std::string> outside(const Bounds& b) {
  if (b.value >= b.least && b.value <= b.most) return {};
  return fmt::format("{} must be between {} and {}, not {}", b.flag, b.least, b.most, b.value);
}

}  // namespace

std::optional<std::string> refusal(const LoadOptions& o) {
  const Bounds all[] = {
      {"--messages", o.duration_seconds ? 1 : o.messages, 1, kMessagesMax},
      {"--message-bytes", o.message_bytes, 1, kMessageBytesMax},
      {"--producers", o.producers, 1, kConnectionsMax},
      {"--consumers", o.consumers, 0, kConnectionsMax},
      {"--producers and --consumers together", o.producers + o.consumers, 1, kConnectionsMax},
      {"--batch-size", o.batch_size, 1, kCommandBytesMax},
      {"--warmup-seconds", o.warmup_seconds, 0, kSecondsMax},
      {"--duration-seconds", o.duration_seconds.value_or(1), 1, kSecondsMax},
      {"--rate", o.rate.value_or(1), 1, kRateMax},
      {"--drain-timeout-seconds", o.drain_timeout_seconds, 1, kSecondsMax},
  };
  for (const Bounds& bounds : all)
    if (auto why = outside(bounds)) return why;
  if (!storage::valid_name(o.topic)) return fmt::format("--topic \"{}\" is no Topic name: 1 to 64 of [.a-zA-Z0-9_-]", o.topic);
  if (o.fixed_rate() && *o.rate < o.producers)
    return fmt::format("--rate {} is below the number of producers, {}: each sends at least one message a second", *o.rate,
                       o.producers);
  if (o.fixed_rate() && !o.duration_seconds && o.messages / *o.rate > kSecondsMax)
    return fmt::format("--messages {} at --rate {} last longer than {} s", o.messages, *o.rate, kSecondsMax);
  if (o.reuse_topic && o.consumers > 0 && o.message_bytes < Body::kTellsRunBytes)
    return fmt::format(
        "--reuse-topic with consumers needs --message-bytes {} or more: shorter bodies do not say of which run they are",
        Body::kTellsRunBytes);
  const std::uint64_t command = Command::bytes_of(kNameBytesMax, o.message_bytes, o.batch_size);
  if (command > kCommandBytesMax)
    return fmt::format("--batch-size {} of --message-bytes {} is more than {} bytes in one command", o.batch_size,
                       o.message_bytes, kCommandBytesMax);
  if (command * o.producers > kAllCommandBytesMax)
    return fmt::format("{} producers with commands of {} bytes need more than {} bytes of memory", o.producers, command,
                       kAllCommandBytesMax);
  return {};
}

RunNames names_for(const LoadOptions& options, std::string_view unique, bool warmup) {
  RunNames names{options.topic, fmt::format("bench-{}", unique)};
  if (options.reuse_topic && !warmup) return names;
  const bool ephemeral = options.topic.ends_with(kEphemeral);
  const std::string tail = fmt::format("-{}{}{}", unique, warmup ? "-warmup" : "", ephemeral ? kEphemeral : "");
  std::string base = options.topic.substr(0, options.topic.size() - (ephemeral ? kEphemeral.size() : 0));
  base.resize(std::min(base.size(), kNameBytesMax - tail.size()));
  names.topic = base + tail;
  return names;
}

}  // namespace rq::load
