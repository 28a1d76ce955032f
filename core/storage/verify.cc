#include "core/storage/verify.h"

#include <fmt/format.h>

#include <iterator>

namespace rq::storage {
namespace {

void add_topic(std::string& out, const TopicImage& topic) {
  std::uint64_t messages = topic.active.info.message_count, bytes = topic.active.info.bytes,
                records = topic.active.info.record_count;
  for (const SegmentInfo& segment : topic.sealed) {
    messages += segment.message_count;
    bytes += segment.bytes;
    records += segment.record_count;
  }
  fmt::format_to(std::back_inserter(out), "topic {}: {} messages in {} records, {} segments, {} bytes, next position {}",
                 topic.name, messages, records, topic.sealed.size() + 1, bytes, topic.next_position);
  if (topic.unrouted_from) fmt::format_to(std::back_inserter(out), ", unrouted from {}", *topic.unrouted_from);
  if (topic.paused) out += ", paused";
  if (topic.ttl_discard)
    fmt::format_to(std::back_inserter(out), ", TTL {} s, expired through {}", topic.message_ttl_seconds.value_or(0),
                   topic.expired_through);
  for (const Range& range : topic.absent) fmt::format_to(std::back_inserter(out), ", absent {} to {}", range.first, range.last);
  out += '\n';
  for (const ChannelImage& channel : topic.channels)
    fmt::format_to(std::back_inserter(out),
                   "channel {}/{}: floor {}, {} finished above it, {} requeued, {} with attempts, {} commands{}\n", topic.name,
                   channel.name, channel.ack_floor, channel.acknowledged.size(), channel.requeued_until_ms.size(),
                   channel.attempts.size(), channel.wal_commands, channel.paused ? ", paused" : "");
}

}  // namespace

VerifyReport verify_report(const Opener& opener) {
  VerifyReport report;
  std::string& out = report.text;
  const BrokerImage& image = opener.image();
  fmt::format_to(std::back_inserter(out), "node {}, next sequence {}, registry revision {}, feature level {}\n", image.node_id,
                 image.next_sequence, image.registry_revision, image.active_writer_level);
  for (const TopicImage& topic : image.topics) add_topic(out, topic);
  for (const std::string& repair : opener.repairs()) out += "repair " + repair + "\n";
  for (const Fault& fault : opener.faults()) out += "fault " + fault.message() + "\n";
  report.ok = opener.faults().empty();
  fmt::format_to(std::back_inserter(out), "{}: {} topics, {} repairs when opened, {} faults\n", report.ok ? "ok" : "FAILED",
                 image.topics.size(), opener.repairs().size(), opener.faults().size());
  return report;
}

}  // namespace rq::storage
