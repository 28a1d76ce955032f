// Appending to a TopicLog: encoding a publish record with one copy of its bodies at most (page 20 section 3.3).
#include <algorithm>

#include "core/base/crc32c.h"
#include "core/base/probe.h"
#include "core/storage/record.h"
#include "core/storage/sidecar.h"
#include "core/storage/topic_log.h"

namespace rq::storage {
namespace {

// Bodies from this size on are appended from where they were received; smaller ones are copied next to their record's header.
constexpr std::uint32_t kReferenceBytes = 16 * 1024;
constexpr std::size_t kEpochsMax = 64;
// A reused epoch may be late by this much, never early.
constexpr std::int64_t kEpochSlackNs = 100 * kMillisecond;

}  // namespace

std::uint64_t TopicLog::encoded_bytes(const std::vector<Slice>& bodies) {
  std::uint64_t sum = kRecordHeaderBytes + 4;
  for (const Slice& body : bodies) sum += kBatchItemBytes + body.size();
  return sum;
}

bool TopicLog::needs_rotation(std::uint64_t encoded) const {
  if (active_.message_count == 0) return false;  // an empty file, or one without messages, is never rotated away (0.1-3)
  if (active_.bytes + encoded > shared_.max_segment_bytes) return true;
  // HARDEN of page 20 section 3.5: the sidecar stays below 512 MiB.
  const std::uint64_t records = records_.size() + 1;
  const std::uint64_t messages = messages_.size() + kBatchMessagesMax;
  return sidecar_bytes(records, messages) > kSidecarBytesMax;
}

TopicLog::Appended TopicLog::append(const std::vector<Slice>& bodies, MessageId first_id, std::int64_t delay_ms, Now now) {
  RQ_CHECK(!bodies.empty() && bodies.size() <= kBatchMessagesMax);
  const auto count = static_cast<std::uint32_t>(bodies.size());
  const std::int64_t timestamp = std::max(now.wall.ns, last_timestamp_ns_);
  RQ_SOMETIMES(now.wall.ns < last_timestamp_ns_, "log: the wall clock went back, the timestamp stays");
  last_timestamp_ns_ = timestamp;
  const std::uint64_t offset = active_.bytes;
  const std::uint64_t bytes = encoded_bytes(bodies);
  // A delay counts from the timestamp, so that one published without a delay can be told apart (D-28).
  const std::int64_t available_at = delay_ms == 0 ? now.wall.ms() : timestamp / kMillisecond + delay_ms;
  add_record(offset, first_id, timestamp, available_at);
  const Position first = next_position_;
  const Position last = first + count - 1;
  if (delay_ms > 0) {
    const std::int64_t clock_offset = timestamp - now.mono.ns;
    if (epochs_.empty() || clock_offset < epochs_.back().wall_minus_mono_ns ||
        clock_offset > epochs_.back().wall_minus_mono_ns + kEpochSlackNs) {
      if (epochs_.size() == kEpochsMax) {
        epochs_.erase(epochs_.begin());
        process_first_position_ = epochs_.front().from;
      }
      epochs_.push_back({first, clock_offset});
    }
    note_delayed(first, last);
  }
  shared_.frame.clear();
  shared_.metas.clear();
  const EncodedBatch encoded =
      put_batch_frame(shared_.frame, {next_index_, timestamp, first_id, available_at, first}, bodies, offset, &shared_.metas);
  RQ_CHECK(encoded.encoded_bytes == bytes);
  for (const MessageMeta& meta : shared_.metas)
    messages_.push_back({static_cast<std::uint32_t>(meta.body_offset - offset), meta.body_bytes, meta.body_crc});
  active_.crc = crc32c_combine(active_.crc, encoded.crc, bytes);
  if (bytes / count >= kReferenceBytes) {
    write_referenced(bodies);
  } else {
    write_contiguous(bodies, bytes);
  }

  if (active_.record_count == 0) active_.first_index = next_index_;
  ++active_.record_count;
  ++next_index_;
  if (active_.message_count == 0) {
    active_.first_position = first;
    active_.first_id = first_id;
    active_.first_timestamp_ns = timestamp;
    active_.min_available_at_ms = active_.max_available_at_ms = available_at;
  }
  active_.message_count += count;
  active_.last_position = last;
  active_.last_id = first_id + count - 1;
  active_.last_timestamp_ns = timestamp;
  active_.min_available_at_ms = std::min(active_.min_available_at_ms, available_at);
  active_.max_available_at_ms = std::max(active_.max_available_at_ms, available_at);
  active_.bytes += bytes;
  next_position_ = last + 1;
  marks_.push_back({active_.bytes, last, now.mono});
  RQ_CHECK(shared_.committer.appended(log_) == active_.bytes);
  return {first, last, active_.bytes};
}

// Header, items and bodies in one piece of the arena; the tail's bodies are slices of it.
void TopicLog::write_contiguous(const std::vector<Slice>& bodies, std::uint64_t bytes) {
  const bool keep = cache_bodies(bodies.size(), bytes);
  Position position = next_position_;
  std::byte* at = nullptr;
  Slice encoded = shared_.arena.take(static_cast<std::uint32_t>(bytes), at);
  const std::byte* const start = at;
  const char* frame = shared_.frame.data();
  std::size_t part = kRecordHeaderBytes + 4 + kBatchItemBytes;
  for (const Slice& body : bodies) {
    std::memcpy(at, frame, part);
    at += part;
    frame += part;
    std::memcpy(at, body.data(), body.size());
    if (keep) tail_.add(position++, encoded.sub(static_cast<std::uint32_t>(at - start), body.size()));
    at += body.size();
    part = kBatchItemBytes;
  }
  shared_.committer.append(log_, std::move(encoded));
}

// Large bodies go to the file, to the tail and to consumers from where they were received.
void TopicLog::write_referenced(const std::vector<Slice>& bodies) {
  RQ_SOMETIMES(true, "log: a large body is appended from its receive chunk");
  std::uint64_t pinned = 0;
  for (const Slice& body : bodies) pinned += body.pinned_bytes();
  const bool keep = cache_bodies(bodies.size(), pinned);
  Position position = next_position_;
  std::byte* at = nullptr;
  const Slice frame = shared_.arena.take(static_cast<std::uint32_t>(shared_.frame.size()), at);
  std::memcpy(at, shared_.frame.data(), shared_.frame.size());
  std::uint32_t from = 0, part = kRecordHeaderBytes + 4 + kBatchItemBytes;
  for (const Slice& body : bodies) {
    shared_.committer.append(log_, frame.sub(from, part));
    shared_.committer.append(log_, body);
    if (keep) tail_.add(position++, body);
    from += part;
    part = kBatchItemBytes;
  }
}

// False: they are not kept, and read from disk when wanted. So are those that are larger than the whole cache.
bool TopicLog::cache_bodies(std::size_t count, std::uint64_t bytes) {
  if (!keeps_bodies_ || bytes > shared_.bodies.budget()) return false;
  shared_.bodies.add({serial_, static_cast<std::uint32_t>(count), bytes + count * BodyCache::kOverheadPerMessage});
  return true;
}

}  // namespace rq::storage
