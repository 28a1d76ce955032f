// What a run of rustqueue-bench does (page 60 section 6.1), its limits and the names it uses.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rq::load {

struct LoadOptions {
  std::string address = "127.0.0.1:4150";  // "ip:port"
  std::string topic = "benchmark";
  std::uint64_t messages = 100'000;  // ignored when duration_seconds is set
  std::uint64_t message_bytes = 1'024;
  std::uint64_t producers = 16;
  std::uint64_t consumers = 16;  // 0: publish only
  std::uint64_t batch_size = 1;  // 1: PUB, else MPUB
  std::uint64_t warmup_seconds = 0;
  std::optional<std::uint64_t> duration_seconds;
  std::optional<std::uint64_t> rate;  // messages per second over all producers; unset: as fast as answers allow
  std::uint64_t drain_timeout_seconds = 300;
  bool reuse_topic = false;

  bool fixed_rate() const { return rate.has_value(); }
};

inline constexpr std::uint64_t kConnectionsMax = 50'000;                 // producers and consumers together
inline constexpr std::uint64_t kMessageBytesMax = 100 * 1'048'576;       // what any server here takes at most
inline constexpr std::uint64_t kCommandBytesMax = 128 * 1'048'576;       // one MPUB
inline constexpr std::uint64_t kAllCommandBytesMax = 1024 * 1'048'576u;  // one command of each producer
inline constexpr std::uint64_t kSecondsMax = 1'000'000;
inline constexpr std::uint64_t kRateMax = 1'000'000'000;
inline constexpr std::uint64_t kMessagesMax = 1'000'000'000'000'000;

// Why these options cannot be run, or nothing.
std::optional<std::string> refusal(const LoadOptions& options);

struct RunNames {
  std::string topic, channel;
};
// `unique`: a suffix that no other run uses, at most 20 characters. The base of the topic is cut so that the name fits 64 bytes;
// with --reuse-topic it stays as it is, except for the warm-up.
RunNames names_for(const LoadOptions& options, std::string_view unique, bool warmup);

}  // namespace rq::load
