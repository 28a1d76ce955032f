// One Channel over a log in memory, driven by hand: what the directed tests share.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/queue/channel.h"
#include "core/storage/replay.h"
#include "tests/queue/vector_view.h"

namespace rq::queue::test {

inline constexpr ConsumerId kA{1};
inline constexpr ConsumerId kB{2};
inline constexpr std::int64_t kTimeout = 60 * kSecond;
inline constexpr std::int64_t kTimeoutMax = 900 * kSecond;

template <class View = VectorView>
struct ChannelBench {
  explicit ChannelBench(ChannelSettings given = with_level(2), bool is_ephemeral = false)
      : settings(given), ephemeral(is_ephemeral) {
    storage::ChannelImage image;
    image.name = "workers";
    open(image);
    checkpoint = channel->image();
  }
  static ChannelSettings with_level(std::uint32_t level) {
    ChannelSettings settings;
    settings.feature_level = level;
    return settings;
  }

  void open(const storage::ChannelImage& image) { channel = std::make_unique<Channel>(image, ephemeral, settings, tokens); }
  void publish(int count, std::int64_t delay_ms = 0) {
    for (int i = 0; i < count; ++i) view.publish(now, delay_ms);
  }
  // Time passes on both clocks; what is overdue is settled.
  std::vector<Channel::Released> pass(std::int64_t ns) {
    now.mono.ns += ns;
    now.wall.ns += ns;
    std::vector<Channel::Released> released;
    std::optional<storage::WalCommand> command;
    channel->expire(now, released, command);
    keep(command);
    return released;
  }
  // The position handed out, 0 for none.
  Position reserve(ConsumerId owner = kA, std::int64_t lease_ns = kTimeout) {
    return channel->reserve(view, now, owner, lease_ns, last) == Reserve::reserved ? last.message.position : 0;
  }
  std::vector<Position> reserve_all(ConsumerId owner = kA) {
    std::vector<Position> positions;
    while (const Position position = reserve(owner)) positions.push_back(position);
    return positions;
  }
  Held finish(Position position, ConsumerId owner = kA) {
    std::optional<storage::WalCommand> command;
    const Held held = channel->finish(owner, View::id(position), command);
    keep(command);
    return held;
  }
  Held requeue(Position position, std::int64_t delay_ms, ConsumerId owner = kA) {
    std::optional<storage::WalCommand> command;
    const Held held = channel->requeue(owner, View::id(position), delay_ms, now, command);
    keep(command);
    return held;
  }
  Held touch(Position position, ConsumerId owner = kA) {
    return channel->touch(owner, View::id(position), now, kTimeout, kTimeoutMax);
  }
  void keep(const std::optional<storage::WalCommand>& command) {
    if (command) wal.push_back(*command);
  }
  // The process dies; the last checkpoint and every command are on the disk.
  void crash() {
    for (const storage::WalCommand& command : wal) apply(checkpoint, command);
    wal.clear();
    open(checkpoint);
    view.restart();
  }
  // A stop that releases everything and writes a checkpoint.
  void stop_and_start() {
    for (ConsumerId owner : {kA, kB}) channel->release_all(owner);
    checkpoint = channel->image();
    wal.clear();
    open(checkpoint);
    view.restart();
  }

  ChannelSettings settings;
  bool ephemeral = false;
  View view;
  Now now{Instant{1'000 * kSecond}, WallTime{1'700'000'000 * kSecond}};
  Token tokens = 0;
  storage::ChannelImage checkpoint;
  std::vector<storage::WalCommand> wal;
  std::unique_ptr<Channel> channel;
  Reservation last;
};

}  // namespace rq::queue::test
