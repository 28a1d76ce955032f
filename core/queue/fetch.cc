#include "core/queue/fetch.h"

#include <algorithm>

#include "core/base/crc32c.h"
#include "core/base/probe.h"
#include "core/queue/topic.h"

namespace rq::queue {

Fetch::Fetch(Shared& shared, Topic& topic, ChannelLane& lane_ref, ConsumerId consumer_id)
    : lane(&lane_ref), consumer(consumer_id), shared_(shared), topic_(topic), since_(shared.host.clock.now()) {
  hold_.grant = &Fetch::on_granted;
  hold_.self = this;
}

Fetch::~Fetch() { shared_.holds.withdraw(hold_); }

void Fetch::add(const Reservation& reservation, Slice body) {
  bytes_ += reservation.message.body_bytes;
  items.push_back({reservation, std::move(body)});
}

// A message over the whole budget, which no valid configuration has, is alone with it.
void Fetch::start() {
  hold_.bytes = std::min(2 * bytes_, shared_.holds.limit());
  shared_.holds.ask(hold_);
}

void Fetch::on_granted(ByteHolds::Waiter& hold) { static_cast<Fetch*>(hold.self)->read(); }

void Fetch::give_up() {
  if (started_) return;
  started_ = true;
  shared_.holds.withdraw(hold_);
  topic_.mark();
}

std::uint64_t Fetch::pass_on() {
  RQ_CHECK(hold_.granted);
  hold_.granted = false;
  return hold_.bytes;
}

void Fetch::read() {
  for (std::size_t i = 0; i < items.size();) {
    if (!items[i].body.empty()) {
      ++i;
      continue;
    }
    const storage::TopicLog& log = *topic_.disk();
    const storage::LogIndex segment = log.segment_of(items[i].reservation.message.position);
    const std::uint64_t at = items[i].reservation.message.body_offset;
    std::uint64_t end = at + items[i].reservation.message.body_bytes;
    std::size_t last = i;
    for (std::size_t k = i + 1; k < items.size(); ++k) {
      const MessageMeta& next = items[k].reservation.message;
      if (!items[k].body.empty() || next.body_offset < end || next.body_offset - end > kGapBytesMax ||
          next.body_offset + next.body_bytes - at > kReadBytesMax || log.segment_of(next.position) != segment)
        break;
      end = next.body_offset + next.body_bytes;
      last = k;
    }
    auto part = std::make_unique<Part>();
    part->fetch = this;
    part->first = i;
    part->last = last;
    part->at = at;
    Chunk* chunk = new_chunk(static_cast<std::uint32_t>(end - at));
    part->buffer = Slice(chunk, chunk->data(), static_cast<std::uint32_t>(end - at));
    part->read.path = log.segment_path(items[i].reservation.message.position);
    part->read.at = at;
    part->read.into = {chunk->data(), static_cast<std::size_t>(end - at)};
    part->read.done = &Fetch::on_read;
    part->read.self = part.get();
    parts_.push_back(std::move(part));
    i = last + 1;
  }
  started_ = true;
  running_ = parts_.size();
  RQ_SOMETIMES(parts_.size() > 1, "fetch: a batch needs several reads");
  if (parts_.empty()) topic_.mark();
  for (const auto& part : parts_) {
    ++shared_.metrics.payload_reads;
    shared_.reads.start(part->read);
  }
}

void Fetch::on_read(storage::ReadPool::Read& read) {
  Part& part = *static_cast<Part*>(read.self);
  Fetch& fetch = *part.fetch;
  Shared& shared = fetch.shared_;
  --fetch.running_;
  const std::string file = shared.paths.relative(read.path);
  if (read.error) {
    shared.set_fault({file, read.at, storage::describe(read.error) + fetch.positions_of(part)});
  } else if (read.got != part.buffer.size()) {
    shared.set_fault({file, read.at + read.got, "a message body ends early" + fetch.positions_of(part)});
  } else {
    fetch.take_bodies(part);
  }
  if (fetch.running_ == 0)
    shared.metrics.payload_read_us.add_us(
        static_cast<std::uint64_t>(std::max<std::int64_t>(0, shared.host.clock.now() - fetch.since_)) / 1'000);
  fetch.topic_.mark();
}

std::string Fetch::positions_of(const Part& part) const {
  return " (positions " + std::to_string(items[part.first].reservation.message.position) + " to " +
         std::to_string(items[part.last].reservation.message.position) + ")";
}

void Fetch::take_bodies(const Part& part) {
  for (std::size_t i = part.first; i <= part.last; ++i) {
    const MessageMeta& message = items[i].reservation.message;
    Slice body = part.buffer.sub(static_cast<std::uint32_t>(message.body_offset - part.at), message.body_bytes);
    if (crc32c(body.bytes()) != message.body_crc && !io::planted(shared_.host, "trust_the_disk")) {
      RQ_SOMETIMES(true, "fetch: a damaged body is found");
      shared_.set_fault({shared_.paths.relative(part.read.path), message.body_offset,
                         "checksum of the message body at position " + std::to_string(message.position) + " does not match"});
      return;
    }
    items[i].body = std::move(body);
  }
}

}  // namespace rq::queue
