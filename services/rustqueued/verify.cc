#include "services/rustqueued/verify.h"

#include <fmt/format.h>

#include <cstdio>

#include "core/storage/opener.h"
#include "io/real/process.h"
#include "io/real/runtime.h"

namespace rq::service {
namespace {

// The opener works in turns and needs no other logic beside it.
class VerifyShard final : public io::Shard {
 public:
  VerifyShard(io::Host& host, storage::OpenOptions options) : opener(host, std::move(options)) {}
  void expire(Now) override {
    if (started_) return;
    started_ = true;
    opener.start();
  }
  void settle(Now) override {}
  Instant next_deadline() const override { return Instant::never(); }
  bool done() const { return started_ && opener.done(); }

  storage::Opener opener;

 private:
  bool started_ = false;
};

void print_topic(const storage::TopicImage& topic) {
  std::uint64_t records = topic.active.info.record_count, messages = topic.active.info.message_count,
                bytes = topic.active.info.bytes;
  for (const storage::SegmentInfo& segment : topic.sealed) {
    records += segment.record_count;
    messages += segment.message_count;
    bytes += segment.bytes;
  }
  fmt::print("topic {}: {} messages in {} records, {} bytes in {} segments, next position {}\n", topic.name, messages, records,
             bytes, topic.sealed.size() + 1, topic.next_position);
  for (const storage::ChannelImage& channel : topic.channels) {
    fmt::print("  channel {}: finished through {} and {} beyond, {} commands in its WAL\n", channel.name, channel.ack_floor,
               channel.acknowledged.size(), channel.wal_commands);
  }
}

}  // namespace

int verify_directory(const std::string& path) {
  real::RuntimeOptions options;
  options.log_fd = 2;
  options.seed = real::entropy();
  real::Runtime runtime(options);
  storage::OpenOptions open;
  open.data_path = path;
  open.node_id = 0;
  open.read_only = true;
  open.pid = real::process_id();
  VerifyShard shard(runtime.host(), open);
  while (!shard.done()) runtime.loop().step(shard);
  if (shard.opener.result()) {
    const storage::BrokerImage& image = *shard.opener.result();
    fmt::print("{}: node {}, {} topics\n", path, image.node_id, image.topics.size());
    for (const storage::TopicImage& topic : image.topics) print_topic(topic);
  }
  for (const storage::Fault& fault : shard.opener.faults()) fmt::print(stderr, "Error: {}\n", fault.message());
  if (shard.opener.faults().empty() && !shard.opener.result()) {
    fmt::print(stderr, "Error: {}\n", shard.opener.result().error().message());
  }
  const bool good = shard.opener.result().has_value() && shard.opener.faults().empty();
  if (good) fmt::print("no fault found\n");
  std::fflush(stdout);
  return good ? 0 : 1;
}

}  // namespace rq::service
