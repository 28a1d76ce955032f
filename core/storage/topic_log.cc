#include "core/storage/topic_log.h"

#include <algorithm>
#include <limits>

#include "core/base/crc32c.h"
#include "core/base/probe.h"
#include "core/storage/sidecar.h"

namespace rq::storage {

void LogShared::trim_bodies() {
  while (bodies.over()) {
    const BodyCache::Batch batch = bodies.pop();
    const auto found = logs.find(batch.log);
    if (found != logs.end()) found->second->drop_bodies(batch.count);
  }
}

struct TopicLog::PageRead {
  TopicLog* log = nullptr;
  LogIndex base = 0;
  std::uint32_t page = 0;
  SegmentInfo segment;
  std::string buffer;
  ReadPool::Read read;
};

TopicLog::TopicLog(LogShared& shared, std::uint64_t owner, TopicImage& image, void* self, void (*changed)(void*))
    : shared_(shared),
      owner_(owner),
      serial_(shared.next_serial++),
      name_(image.name),
      self_(self),
      changed_(changed),
      sealed_(std::move(image.sealed)),
      absent_(std::move(image.absent)),
      next_position_(image.next_position),
      next_index_(image.next_index) {
  shared_.logs[serial_] = this;
  active_ = image.active.info;
  std::size_t message = 0;
  for (const RecordIndex& record : image.active.records) {
    if (message == image.active.messages.size() || image.active.messages[message].log_index != record.index) {
      // A record without messages (gap or no-op): it counts in the sidecar's locations only, and keeps timestamps in order.
      const std::int64_t timestamp = records_.empty() ? 0 : records_.back().timestamp_ns;
      add_record(record.offset, 0, timestamp, timestamp / kMillisecond);
      continue;
    }
    const MessageMeta& first = image.active.messages[message];
    add_record(record.offset, first.id, first.timestamp_ns, first.available_at_ms);
    for (; message < image.active.messages.size() && image.active.messages[message].log_index == record.index; ++message) {
      const MessageMeta& meta = image.active.messages[message];
      messages_.push_back({static_cast<std::uint32_t>(meta.body_offset - record.offset), meta.body_bytes, meta.body_crc});
      if (meta.available_at_ms > meta.timestamp_ns / kMillisecond) note_delayed(meta.position, meta.position);
    }
  }
  last_timestamp_ns_ = active_.last_timestamp_ns;
  for (const SegmentInfo& segment : sealed_) last_timestamp_ns_ = std::max(last_timestamp_ns_, segment.last_timestamp_ns);
  durable_ = in_file_ = next_position_ - 1;  // D-45
  process_first_position_ = next_position_;
  log_ = shared_.committer.add(shared_.paths.segment(name_, active_.base), active_.bytes, Committer::Role::segment, owner_, 0);
}

TopicLog::~TopicLog() {
  if (log_ != Committer::kNoLog) shared_.committer.close(log_);
  // A Topic of the same name may come with files of the same names.
  for (const SegmentInfo& segment : sealed_) {
    shared_.reads.forget(shared_.paths.segment(name_, segment.base));
    shared_.reads.forget(shared_.paths.sidecar(name_, segment.base));
  }
  shared_.reads.forget(shared_.paths.segment(name_, active_.base));
  shared_.pages.drop_log(serial_);
  shared_.logs.erase(serial_);
}

void TopicLog::start_active(LogIndex base, std::uint64_t bytes) {
  active_ = {};
  active_.base = base;
  active_.bytes = bytes;
  records_.clear();
  far_available_.clear();
  messages_.clear();
  delayed_ = {};
  record_hint_ = 0;
  log_ = shared_.committer.add(shared_.paths.segment(name_, base), bytes, Committer::Role::segment, owner_, 0);
  if (reports_writes_) shared_.committer.report_writes(log_);
}

// Of the next messages.
void TopicLog::add_record(std::uint64_t offset, MessageId first_id, std::int64_t timestamp_ns, std::int64_t available_at_ms) {
  std::int64_t delta = 0;
  const bool far = __builtin_sub_overflow(available_at_ms, timestamp_ns / kMillisecond, &delta) || delta <= kFar ||
                   delta > std::numeric_limits<std::int32_t>::max();
  if (far) far_available_.emplace_hint(far_available_.end(), records_.size(), available_at_ms);
  records_.push_back({offset, first_id, timestamp_ns, static_cast<std::uint32_t>(messages_.size()),
                      far ? kFar : static_cast<std::int32_t>(delta)});
}

std::int64_t TopicLog::available_at_ms(std::size_t record) const {
  const Record& r = records_[record];
  return r.available_ms == kFar ? far_available_.at(record) : r.timestamp_ns / kMillisecond + r.available_ms;
}

void TopicLog::note_delayed(Position first, Position last) {
  if (!delayed_.empty() && delayed_.back().last + 1 == first) {
    delayed_.back().last = last;
  } else {
    delayed_.push_back({first, last});
  }
}

void TopicLog::set_reports_writes() {
  reports_writes_ = true;
  shared_.committer.report_writes(log_);
}

bool TopicLog::on_advance() {
  const std::uint64_t durable = shared_.committer.durable(log_);
  const Position before = deliverable();
  while (!marks_.empty() && marks_.front().end_offset <= durable) {
    durable_ = marks_.front().last;
    marks_.pop_front();
  }
  in_file_ = std::max(in_file_, durable_);
  if (visible_when_written_) {
    const auto behind = std::partition_point(
        marks_.begin(), marks_.end(),
        [written = shared_.committer.written(log_)](const Mark& mark) { return mark.end_offset <= written; });
    if (behind != marks_.begin()) in_file_ = std::prev(behind)->last;
  }
  return deliverable() != before;
}

TopicLog::Uncovered TopicLog::uncovered() const {
  if (marks_.empty()) return {};
  const std::uint64_t covered = shared_.committer.barrier_started(log_);
  auto first = marks_.begin();
  if (first->end_offset <= covered)
    first = std::partition_point(first, marks_.end(), [covered](const Mark& mark) { return mark.end_offset <= covered; });
  if (first == marks_.end()) return {};
  const Position before = first == marks_.begin() ? durable_ : std::prev(first)->last;
  return {written() - before, shared_.committer.appended(log_) - covered, first->since};
}

std::uint64_t TopicLog::unsynced_bytes() const { return shared_.committer.appended(log_) - shared_.committer.durable(log_); }

// The index of the next record, but always after the name of the file before: names carry the order (a file may be named too
// high).
LogIndex TopicLog::next_base() const { return std::max(next_index_, active_.base + 1); }

Position TopicLog::earliest_position() const {
  for (const SegmentInfo& segment : sealed_)
    if (segment.message_count > 0) return segment.first_position;
  return active_.message_count > 0 ? active_.first_position : next_position_;
}

std::uint64_t TopicLog::stored_messages() const {
  std::uint64_t sum = active_.message_count;
  for (const SegmentInfo& segment : sealed_) sum += segment.message_count;
  return sum;
}

std::uint64_t TopicLog::segment_bytes() const {
  std::uint64_t sum = active_.bytes;
  for (const SegmentInfo& segment : sealed_) sum += segment.bytes;
  return sum;
}

Position TopicLog::first_not_older(WallTime cutoff) const {
  // Timestamps rise, and every sealed segment holds a message.
  const auto segment = std::partition_point(sealed_.begin(), sealed_.end(),
                                            [cutoff](const SegmentInfo& each) { return each.last_timestamp_ns < cutoff.ns; });
  if (segment != sealed_.end()) return segment->first_position;
  std::size_t low = 0, high = records_.size();
  while (low < high) {
    const std::size_t middle = low + (high - low) / 2;
    if (records_[middle].timestamp_ns < cutoff.ns) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low == records_.size() || active_.message_count == 0 ? next_position_
                                                              : active_.first_position + records_[low].first_message;
}

std::optional<Range> TopicLog::range_of(MessageId id) const {
  const auto holds = [id](const SegmentInfo& segment) {
    return segment.message_count > 0 && segment.first_id <= id && id <= segment.last_id;
  };
  for (const SegmentInfo& segment : sealed_)
    if (holds(segment)) return Range{segment.first_position, segment.last_position};
  if (holds(active_)) return Range{active_.first_position, active_.last_position};
  return std::nullopt;
}

void TopicLog::active_meta(std::size_t ordinal, MessageMeta& out) const {
  const auto holds = [&](std::size_t i) {
    return records_[i].first_message <= ordinal && (i + 1 == records_.size() || records_[i + 1].first_message > ordinal);
  };
  std::size_t at = record_hint_;
  if (at >= records_.size() || !holds(at)) {
    if (at + 1 < records_.size() && holds(at + 1)) {
      ++at;
    } else {
      // Last record whose first message is not after the ordinal.
      std::size_t low = 0, high = records_.size();
      while (high - low > 1) {
        const std::size_t middle = low + (high - low) / 2;
        (records_[middle].first_message <= ordinal ? low : high) = middle;
      }
      at = low;
    }
  }
  record_hint_ = at;
  meta_in_record(at, ordinal, out);
}

void TopicLog::meta_in_record(std::size_t at, std::size_t ordinal, MessageMeta& out) const {
  const Record& record = records_[at];
  const Message& message = messages_[ordinal];
  out.position = active_.first_position + ordinal;
  out.id = record.first_id + (ordinal - record.first_message);
  out.timestamp_ns = record.timestamp_ns;
  out.available_at_ms = available_at_ms(at);
  out.log_index = active_.first_index + at;
  out.body_offset = record.offset + message.offset;
  out.body_bytes = message.bytes;
  out.body_crc = message.crc;
}

const SegmentInfo* TopicLog::sealed_of(Position position) const {
  auto after = std::upper_bound(sealed_.begin(), sealed_.end(), position,
                                [](Position p, const SegmentInfo& segment) { return p < segment.first_position; });
  if (after == sealed_.begin()) return nullptr;
  const SegmentInfo& segment = *std::prev(after);
  return position <= segment.last_position ? &segment : nullptr;
}

Lookup TopicLog::find(Position position, MessageMeta& out) {
  if (active_.message_count > 0 && position >= active_.first_position) {
    if (position > active_.last_position) return Lookup::absent;
    active_meta(position - active_.first_position, out);
    return Lookup::found;
  }
  const SegmentInfo* segment = sealed_of(position);
  return segment == nullptr ? Lookup::absent : find_sealed(*segment, position, out);
}

Lookup TopicLog::find_sealed(const SegmentInfo& segment, Position position, MessageMeta& out) {
  const std::uint64_t ordinal = position - segment.first_position;
  const auto page = static_cast<std::uint32_t>(ordinal / kMetadataPageEntries);
  if (const PageCache::Page* cached = shared_.pages.find({serial_, segment.base, page})) {
    out = (*cached)[ordinal % kMetadataPageEntries];
    return Lookup::found;
  }
  request_page(segment, page);
  return Lookup::loading;
}

void TopicLog::request_page(const SegmentInfo& segment, std::uint32_t page) {
  retired_reads_.clear();
  auto& slot = page_reads_[{segment.base, page}];
  if (slot) return;
  RQ_SOMETIMES(true, "log: a metadata page is read from a sidecar");
  slot = std::make_unique<PageRead>();
  PageRead& read = *slot;
  read.log = this;
  read.base = segment.base;
  read.page = page;
  read.segment = segment;
  const std::uint64_t first = std::uint64_t{page} * kMetadataPageEntries;
  const std::uint64_t count = std::min<std::uint64_t>(kMetadataPageEntries, segment.message_count - first);
  read.buffer.resize(count * kMetadataEntryBytes);
  read.read.path = shared_.paths.sidecar(name_, segment.base);
  SidecarHeader header;
  header.location_count = static_cast<std::uint32_t>(segment.record_count);
  read.read.at = header.entry_offset(first);
  read.read.into = std::as_writable_bytes(std::span(read.buffer.data(), read.buffer.size()));
  read.read.done = &TopicLog::on_page;
  read.read.self = &read;
  ++shared_.metadata_reads;
  shared_.reads.start(read.read);
}

Position TopicLog::lowest_loading() const {
  return page_reads_.empty() ? next_position_ : page_reads_.begin()->second->segment.first_position;
}

void TopicLog::on_page(ReadPool::Read& done) {
  PageRead& read = *static_cast<PageRead*>(done.self);
  TopicLog& log = *read.log;
  const std::string file = log.shared_.paths.relative(done.path);
  PageCache::Page page;
  const Position first = read.segment.first_position + std::uint64_t{read.page} * kMetadataPageEntries;
  const auto fault = [&](std::uint64_t offset, Position position, const std::string& what) {
    if (!log.shared_.fault) log.shared_.fault = Fault{file, offset, what + " (position " + std::to_string(position) + ")"};
  };
  if (done.error) {
    fault(done.at, first, describe(done.error));
  } else if (done.got != read.buffer.size()) {
    fault(done.at + done.got, first + done.got / kMetadataEntryBytes, "metadata page ends early");
  } else {
    const std::size_t count = read.buffer.size() / kMetadataEntryBytes;
    page.resize(count);
    const ConstBuf bytes = bytes_of(read.buffer);
    for (std::size_t i = 0; i < count; ++i) {
      const ConstBuf entry = bytes.subspan(i * kMetadataEntryBytes, kMetadataEntryBytes);
      if (decode_metadata_entry(entry, read.segment.bytes, page[i]) == nullptr && page[i].position == first + i) continue;
      fault(done.at + i * kMetadataEntryBytes, first + i, "metadata entry is damaged");
      page.clear();
      break;
    }
  }
  if (!page.empty()) log.shared_.pages.add({log.serial_, read.base, read.page}, std::move(page));
  const auto found = log.page_reads_.find({read.base, read.page});
  log.retired_reads_.push_back(std::move(found->second));
  log.page_reads_.erase(found);
  log.changed_(log.self_);
}

Position TopicLog::next_present(Position from) const {
  const auto segment =
      std::partition_point(sealed_.begin(), sealed_.end(), [from](const SegmentInfo& each) { return each.last_position < from; });
  if (segment != sealed_.end()) return std::min(std::max(from, segment->first_position), deliverable() + 1);
  if (active_.message_count > 0 && from <= active_.last_position)
    return std::min(std::max(from, active_.first_position), deliverable() + 1);
  return deliverable() + 1;
}

std::uint64_t TopicLog::absent_count(Position first, Position last) const {
  std::uint64_t sum = 0;
  if (first > last) return 0;
  for (const Range& range : absent_) {
    if (range.first > last) break;
    if (range.last < first) continue;
    sum += std::min(range.last, last) - std::max(range.first, first) + 1;
  }
  return sum;
}

MessageView::Due TopicLog::due(const MessageMeta& message) const {
  if (message.available_at_ms <= message.timestamp_ns / kMillisecond) return {WallTime{std::numeric_limits<std::int64_t>::min()}};
  std::int64_t wall_ns = 0;
  if (__builtin_mul_overflow(message.available_at_ms, kMillisecond, &wall_ns)) wall_ns = std::numeric_limits<std::int64_t>::max();
  Due due{WallTime{wall_ns}};
  if (message.position >= process_first_position_) {
    auto after = std::upper_bound(epochs_.begin(), epochs_.end(), message.position,
                                  [](Position p, const Epoch& epoch) { return p < epoch.from; });
    if (after != epochs_.begin()) due.mono = Instant{wall_ns - std::prev(after)->wall_minus_mono_ns};
  }
  return due;
}

Slice TopicLog::cached_body(Position position) const { return tail_.find(position); }

LogIndex TopicLog::segment_of(Position position) const {
  const SegmentInfo* segment = sealed_of(position);
  return segment == nullptr ? active_.base : segment->base;
}

std::string TopicLog::segment_path(Position position) const { return shared_.paths.segment(name_, segment_of(position)); }

std::vector<Range> TopicLog::maybe_delayed(std::int64_t now_ms) const {
  std::vector<Range> ranges;
  for (const SegmentInfo& segment : sealed_)
    if (segment.message_count > 0 && segment.max_available_at_ms > now_ms)
      ranges.push_back({segment.first_position, segment.last_position});
  ranges.insert(ranges.end(), delayed_.begin(), delayed_.end());
  return ranges;
}

}  // namespace rq::storage
