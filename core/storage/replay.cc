#include "core/storage/replay.h"

#include <algorithm>

namespace rq::storage {
namespace {

bool finished(const ChannelImage& image, Position position) {
  return position <= image.ack_floor || std::binary_search(image.acknowledged.begin(), image.acknowledged.end(), position);
}

void finish(ChannelImage& image, Position position) {
  image.requeued_until_ms.erase(position);
  image.attempts.erase(position);
  if (position <= image.ack_floor) return;
  if (position == image.ack_floor + 1) {
    image.ack_floor = position;
    advance_floor(image);
    return;
  }
  const auto at = std::lower_bound(image.acknowledged.begin(), image.acknowledged.end(), position);
  if (at == image.acknowledged.end() || *at != position) image.acknowledged.insert(at, position);
  advance_floor(image);
}

void requeue(ChannelImage& image, const WalCommand& command) {
  // Only a command that the checkpoint already contains can name a finished position, so it is not counted again either.
  if (finished(image, command.position)) return;
  const auto target = image.requeued_until_ms.find(command.position);
  const auto attempts = image.attempts.find(command.position);
  const bool known = target != image.requeued_until_ms.end() && target->second == command.available_at_ms &&
                     attempts != image.attempts.end() && attempts->second == command.attempts;
  image.requeued_until_ms[command.position] = command.available_at_ms;
  image.attempts[command.position] = command.attempts;
  if (command.kind == WalCommand::Kind::requeue && !known) ++image.requeue_count;
}

void finish_through(ChannelImage& image, Position through) {
  image.ack_floor = std::max(image.ack_floor, through);
  const auto keep = std::upper_bound(image.acknowledged.begin(), image.acknowledged.end(), through);
  image.acknowledged.erase(image.acknowledged.begin(), keep);
  image.requeued_until_ms.erase(image.requeued_until_ms.begin(), image.requeued_until_ms.upper_bound(through));
  image.attempts.erase(image.attempts.begin(), image.attempts.upper_bound(through));
  advance_floor(image);
}

}  // namespace

bool advance_floor(ChannelImage& image) {
  auto at = image.acknowledged.begin();
  for (; at != image.acknowledged.end() && (*at <= image.ack_floor || *at - image.ack_floor == 1); ++at)
    image.ack_floor = std::max(image.ack_floor, *at);
  if (at == image.acknowledged.begin()) return false;
  image.acknowledged.erase(image.acknowledged.begin(), at);
  return true;
}

void apply(ChannelImage& image, const WalCommand& command) {
  switch (command.kind) {
    case WalCommand::Kind::finish:
      finish(image, command.position);
      return;
    case WalCommand::Kind::requeue:
      requeue(image, command);
      return;
    case WalCommand::Kind::pause:
      image.paused = command.paused;
      return;
    case WalCommand::Kind::empty:
    case WalCommand::Kind::evict:
      finish_through(image, command.position);
      return;
    case WalCommand::Kind::timeout:
      image.timeout_count = std::max(image.timeout_count, command.count);
      return;
    case WalCommand::Kind::requeue_counted:
      image.requeue_count = std::max(image.requeue_count, command.count);
      requeue(image, command);
      return;
  }
}

}  // namespace rq::storage
