#include "core/storage/recovery.h"

#include <algorithm>

#include "core/base/probe.h"
#include "core/storage/paths.h"
#include "core/storage/replay.h"

namespace rq::storage {
namespace {

// The highest position that a Channel knows of, also of messages that are lost.
Position highest_position(const ChannelImage& channel) {
  Position high = channel.ack_floor;
  if (!channel.acknowledged.empty()) high = std::max(high, channel.acknowledged.back());
  if (!channel.requeued_until_ms.empty()) high = std::max(high, channel.requeued_until_ms.rbegin()->first);
  if (!channel.attempts.empty()) high = std::max(high, channel.attempts.rbegin()->first);
  return high;
}

Position first_stored(const TopicImage& topic) {
  return topic.sealed.empty() ? topic.active.info.first_position : topic.sealed.front().first_position;
}
Position last_stored(const TopicImage& topic) {
  if (topic.active.info.message_count > 0) return topic.active.info.last_position;
  return topic.sealed.empty() ? 0 : topic.sealed.back().last_position;
}

std::optional<Fault> raise_next_position(TopicPlan& plan) {
  TopicImage& topic = plan.image;
  const auto raise = [&topic](Position used) {
    if (used == UINT64_MAX) return false;
    topic.next_position = std::max(topic.next_position, used + 1);
    return true;
  };
  if (!raise(last_stored(topic)))
    return Fault{plan.dir + "/segments", std::nullopt, "no position is left after the last message"};
  for (const ChannelImage& channel : topic.channels)
    if (!raise(highest_position(channel)))
      return Fault{plan.dir, std::nullopt, "Channel " + channel.name + " names position 2^64-1: no position is left"};
  RQ_SOMETIMES(topic.next_position > last_stored(topic) + 1, "recovery: positions behind the tail are known but lost");
  return std::nullopt;
}

// The next message must start a new file when positions are missing behind the tail (page 20 rule 0.1-2).
std::optional<Fault> seal_before_gap(TopicPlan& plan) {
  TopicImage& topic = plan.image;
  const SegmentInfo& tail = topic.active.info;
  if (tail.message_count == 0 || topic.next_position == tail.last_position + 1) return std::nullopt;
  if (tail.base == UINT64_MAX) return Fault{plan.dir + "/segments", std::nullopt, "no segment name is left"};
  plan.sidecars.push_back(tail.base);
  const LogIndex base = std::max(topic.next_index, tail.base + 1);  // must sort behind the sealed one
  topic.sealed.push_back(tail);
  topic.active = ActiveSegment();
  topic.active.info.base = base;
  plan.create_active = true;
  return std::nullopt;
}

void evict_expired(TopicPlan& plan) {
  TopicImage& topic = plan.image;
  std::size_t at = 0;
  for (TopicPlan::ChannelRepair& repair : plan.channels) {
    if (repair.remove) continue;
    ChannelImage& channel = topic.channels[at++];
    if (channel.ack_floor >= topic.expired_through) continue;
    WalCommand evict;
    evict.kind = WalCommand::Kind::evict;
    evict.position = topic.expired_through;
    apply(channel, evict);
    settle_channel(channel, topic.absent);
    if (channel.wal_commands < kWalCommandsMax) {
      repair.evict = true;
      ++channel.wal_commands;
      channel.wal_bytes += evict_frame(topic.expired_through).size();
    } else {
      repair.checkpoint = true;
      channel.wal_commands = 0;
      channel.wal_bytes = 0;
    }
  }
}

void set_boundary(TopicImage& topic) {
  if (!topic.channels.empty()) {
    topic.unrouted_from.reset();
    return;
  }
  const Position earliest = last_stored(topic) == 0 ? topic.next_position : first_stored(topic);
  const Position wanted = std::max({topic.unrouted_from.value_or(earliest), earliest, topic.expired_through + 1});
  topic.unrouted_from = std::min(wanted, topic.next_position);
}

}  // namespace

std::string evict_frame(Position through) {
  WalCommand evict;
  evict.kind = WalCommand::Kind::evict;
  evict.position = through;
  std::string frame;
  put_wal_frame(frame, evict);
  return frame;
}

std::optional<Fault> check_segments(const TopicImage& topic, const std::string& segments_dir) {
  const SegmentInfo* previous = nullptr;  // the last one with records
  Position last_position = 0;
  const auto check = [&](const SegmentInfo& segment, bool active) -> std::optional<Fault> {
    const std::string path = segments_dir + "/" + segment_file_name(segment.base);
    if (!active && segment.message_count == 0) return Fault{path, 0, "sealed segment without messages"};
    if (segment.record_count > 0) {
      if (segment.first_index + (segment.record_count - 1) < segment.first_index)
        return Fault{path, 0, "record indexes overflow"};
      if (previous != nullptr && segment.first_index != previous->first_index + previous->record_count)
        return Fault{path, 0,
                     "first record index " + std::to_string(segment.first_index) + " does not follow the last one of " +
                         segment_file_name(previous->base) + ", " +
                         std::to_string(previous->first_index + previous->record_count - 1)};
      previous = &segment;
    }
    if (segment.message_count > 0) {
      if (segment.first_position <= last_position)
        return Fault{path, 0,
                     "first position " + std::to_string(segment.first_position) + " is not above the last one before, " +
                         std::to_string(last_position)};
      last_position = segment.last_position;
    }
    return std::nullopt;
  };
  for (const SegmentInfo& segment : topic.sealed)
    if (std::optional<Fault> fault = check(segment, false)) return fault;
  return check(topic.active.info, true);
}

std::vector<Range> absent_ranges(const TopicImage& topic) {
  std::vector<Range> absent;
  Position from = 1;
  const auto cover = [&](const SegmentInfo& segment) {
    if (segment.message_count == 0) return;
    if (segment.first_position > from) absent.push_back({from, segment.first_position - 1});
    from = segment.last_position + 1;
  };
  for (const SegmentInfo& segment : topic.sealed) cover(segment);
  cover(topic.active.info);
  if (from < topic.next_position) absent.push_back({from, topic.next_position - 1});
  return absent;
}

void settle_channel(ChannelImage& channel, const std::vector<Range>& absent) {
  std::vector<Position>& acknowledged = channel.acknowledged;
  auto gap = absent.begin();
  std::erase_if(acknowledged, [&](Position position) {
    while (gap != absent.end() && gap->last < position) ++gap;
    return gap != absent.end() && gap->first <= position;
  });
  gap = absent.begin();
  std::size_t used = 0;  // acknowledgements that the floor has passed
  for (bool moved = true; moved;) {
    moved = false;
    while (gap != absent.end() && gap->last <= channel.ack_floor) ++gap;
    if (gap != absent.end() && gap->first <= channel.ack_floor + 1) {
      channel.ack_floor = gap->last;
      moved = true;
    }
    for (; used < acknowledged.size() && acknowledged[used] <= channel.ack_floor + 1; ++used) {
      moved = moved || acknowledged[used] > channel.ack_floor;
      channel.ack_floor = std::max(channel.ack_floor, acknowledged[used]);
    }
  }
  acknowledged.erase(acknowledged.begin(), acknowledged.begin() + static_cast<std::ptrdiff_t>(used));
  const auto forget = [&](auto& map) {
    auto next_gap = absent.begin();
    auto next_ack = acknowledged.begin();
    std::erase_if(map, [&](const auto& entry) {
      const Position position = entry.first;
      while (next_gap != absent.end() && next_gap->last < position) ++next_gap;
      while (next_ack != acknowledged.end() && *next_ack < position) ++next_ack;
      return position <= channel.ack_floor || (next_gap != absent.end() && next_gap->first <= position) ||
             (next_ack != acknowledged.end() && *next_ack == position);
    });
  };
  forget(channel.requeued_until_ms);
  forget(channel.attempts);
}

std::optional<Fault> settle_topic(TopicPlan& plan) {
  TopicImage& topic = plan.image;
  if (std::optional<Fault> fault = raise_next_position(plan)) return fault;
  topic.absent = absent_ranges(topic);
  for (ChannelImage& channel : topic.channels) settle_channel(channel, topic.absent);
  if (std::optional<Fault> fault = seal_before_gap(plan)) return fault;
  evict_expired(plan);
  set_boundary(topic);
  plan.wanted = plan.stored;
  plan.wanted.next_position = topic.next_position;
  plan.wanted.unrouted_from = topic.unrouted_from;
  return std::nullopt;
}

}  // namespace rq::storage
