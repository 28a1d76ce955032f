// The log of one Topic at run time: sealed segments known by summary, one active segment with its index in memory, the tail of
// recent bodies (page 20 sections 3 to 5, page 30 sections 1.4 and 2.6). It appends through the Committer and reads through the
// ReadPool.
//
//  I1 durable <= deliverable <= written positions (I-13); a rotation starts only when everything written is durable.
//  I2 Positions, record indexes and timestamps rise without a gap while the process runs; rule 0.1-2: the first message after an
//     absent range starts a new file.
//  I3 Memory: the active index, one summary per sealed segment, the shared caches. Nothing grows with the backlog otherwise.
#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/chunked_vector.h"
#include "core/io/ports.h"
#include "core/storage/body_cache.h"
#include "core/storage/body_tail.h"
#include "core/storage/committer.h"
#include "core/storage/image.h"
#include "core/storage/message_log.h"
#include "core/storage/page_cache.h"
#include "core/storage/paths.h"
#include "core/storage/read_pool.h"
#include "core/storage/script.h"

namespace rq::storage {

// What all logs of one Broker share.
struct LogShared {
  io::Host& host;
  Committer& committer;
  ReadPool& reads;
  PageCache& pages;
  BodyCache& bodies;
  Arena& arena;
  const DataPaths& paths;
  std::uint64_t max_segment_bytes;
  std::uint64_t next_serial = 1;
  std::uint64_t metadata_reads = 0;
  std::map<std::uint64_t, class TopicLog*> logs;  // by serial
  std::optional<Fault> fault;                     // of a metadata read; isolates the storage
  std::string frame;                              // scratch of append()
  std::vector<MessageMeta> metas;                 // scratch of append()
  // Applies the body budget: drops the oldest bodies of whichever Topic holds them.
  void trim_bodies();
};

class TopicLog final : public MessageLog {
 public:
  // `owner` comes back with the Committer's advances. `changed` is called when a metadata page arrived (depth 0).
  TopicLog(LogShared& shared, std::uint64_t owner, TopicImage& image, void* self, void (*changed)(void*));
  ~TopicLog() override;
  TopicLog(const TopicLog&) = delete;
  TopicLog& operator=(const TopicLog&) = delete;

  // --- append
  static std::uint64_t encoded_bytes(const std::vector<Slice>& bodies);
  bool needs_rotation(std::uint64_t encoded) const;
  struct Appended {
    Position first = 0, last = 0;
    std::uint64_t end_offset = 0;  // durable(log) >= this: the record is durable
  };
  // One record. The caller has made sure of needs_rotation() == false and of the ids.
  Appended append(const std::vector<Slice>& bodies, MessageId first_id, std::int64_t delay_ms, Now now);
  // Whether bodies appended from here on stay in the tail. Those that nobody comes to before they are dropped would only take
  // memory, and cold memory at that.
  void keep_bodies(bool on) { keeps_bodies_ = on; }
  bool keeps_bodies() const { return keeps_bodies_; }
  Committer::LogId active_log() const { return log_; }
  // The Committer's durable or written offset of the active file moved. Returns true if the deliverable position rose.
  bool on_advance();
  void set_visible_when_written(bool on) { visible_when_written_ = on; }  // nsq_relaxed
  void set_reports_writes();                                              // the relaxed modes: on_advance() at writes as well

  // --- rotation: add the steps, run the script, then finish. Requires everything written to be durable.
  void add_rotation(Script& script);
  void finish_rotation();

  // --- collection (page 30 section 6): the sealed segments of the front whose messages all lie below `retain_from`.
  std::size_t collectable(Position retain_from) const;
  // Everything in the active segment lies below it too, and nothing is sealed: sealing it makes it collectable.
  bool active_collectable(Position retain_from) const;
  // Forgets them at once, so that nobody looks any more, and adds the steps that remove their files.
  void collect(std::size_t count, Script& script);
  const SegmentInfo* oldest_sealed() const { return sealed_.empty() ? nullptr : &sealed_.front(); }
  // --- leases: a reader of whole sealed segments holds them, and collection ends before the first one held. One reader at a
  // time.
  bool lease_sealed();                // every segment that is sealed now; false if there is none
  const SegmentInfo* leased() const;  // the lowest one held, null if none
  void release_leased();              // the lowest one
  void release_leases();              // all
  Position lowest_loading() const;    // of the metadata pages being read; next_position() if none

  bool expired_prefix(Position after, std::int64_t cutoff_ns, std::uint64_t limit, Prefix& out) override;
  std::int64_t oldest_timestamp_after(Position after) const override;
  std::uint64_t stored_after(Position after) const override;

  // --- MessageLog, and numbers of its own
  Position durable_position() const override { return durable_; }
  Position next_position() const override { return next_position_; }
  Position earliest_position() const;  // first stored one, or next_position()
  std::uint64_t active_messages() const { return active_.message_count; }
  std::uint64_t stored_messages() const override;
  std::uint64_t segment_count() const override { return sealed_.size() + 1; }
  std::uint64_t segment_bytes() const override;
  std::uint64_t unsynced_messages() const override { return written() - durable_; }
  std::uint64_t unsynced_bytes() const override;
  Instant oldest_unsynced() const override { return marks_.empty() ? Instant::never() : marks_.front().since; }
  // What was appended and is in no barrier yet, running ones included: what a background sync is due for.
  struct Uncovered {
    std::uint64_t messages = 0, bytes = 0;
    Instant oldest = Instant::never();
  };
  Uncovered uncovered() const;
  // First position not older than `cutoff`, rounded down to the start of a sealed segment (page 30 section 5); next_position() if
  // none.
  Position first_not_older(WallTime cutoff) const;
  // The positions of the one segment that may hold this message; none if no segment can. Ids rise with positions.
  std::optional<Range> range_of(MessageId id) const;
  std::vector<Range> absent() const { return absent_; }

  // --- MessageView
  Lookup find(Position position, MessageMeta& out) override;
  Position deliverable() const override { return visible_when_written_ ? in_file_ : durable_; }
  Position next_present(Position from) const override;
  std::uint64_t absent_count(Position first, Position last) const override;
  Due due(const MessageMeta& message) const override;

  // --- bodies
  Slice cached_body(Position position) const override;
  // Where to read one from that is not in memory.
  std::string segment_path(Position position) const;
  LogIndex segment_of(Position position) const;  // the base of its segment: equal for positions in one file
  // By sealed segment.
  std::vector<Range> maybe_delayed(std::int64_t now_ms) const override;
  // Called by LogShared::trim_bodies().
  void drop_bodies(std::uint32_t count) { tail_.drop(count); }
  std::uint64_t serial() const { return serial_; }
  bool pages_loading() const { return !page_reads_.empty(); }

 private:
  struct Record {
    std::uint64_t offset;
    MessageId first_id;
    std::int64_t timestamp_ns;
    std::uint32_t first_message;  // ordinal in the segment
    std::int32_t available_ms;    // from its timestamp in ms; kFar: in far_available_
  };
  static_assert(sizeof(Record) == 32);
  static constexpr std::int32_t kFar = std::numeric_limits<std::int32_t>::min();
  struct Message {
    std::uint32_t offset;  // of the body, from the start of its record
    std::uint32_t bytes;
    std::uint32_t crc;
  };
  void add_record(std::uint64_t offset, MessageId first_id, std::int64_t timestamp_ns, std::int64_t available_at_ms);
  std::int64_t available_at_ms(std::size_t record) const;
  struct PageRead;
  class SidecarContent;
  struct Mark {
    std::uint64_t end_offset;
    Position last;
    Instant since;
  };
  struct Epoch {
    Position from;
    std::int64_t wall_minus_mono_ns;
  };

  void active_meta(std::size_t ordinal, MessageMeta& out) const;
  void meta_in_record(std::size_t record, std::size_t ordinal, MessageMeta& out) const;
  const SegmentInfo* sealed_of(Position position) const;
  Lookup find_sealed(const SegmentInfo& segment, Position position, MessageMeta& out);
  void request_page(const SegmentInfo& segment, std::uint32_t page);
  static void on_page(ReadPool::Read& read);
  bool search(Position first, Position last, std::int64_t cutoff_ns);
  void write_contiguous(const std::vector<Slice>& bodies, std::uint64_t bytes);
  void write_referenced(const std::vector<Slice>& bodies);
  bool cache_bodies(std::size_t count, std::uint64_t bytes);
  LogIndex next_base() const;
  void start_active(LogIndex base, std::uint64_t bytes);
  void note_delayed(Position first, Position last);

  LogShared& shared_;
  std::uint64_t owner_;
  std::uint64_t serial_;
  std::string name_;
  void* self_;
  void (*changed_)(void*);

  std::vector<SegmentInfo> sealed_;
  std::size_t sealed_index(LogIndex base) const;  // of the first sealed segment with that base or a higher one
  LogIndex lease_from_ = 1, lease_through_ = 0;   // bases of what is leased; nothing while from > through
  SegmentInfo active_;
  ChunkedVector<Record> records_;
  std::map<std::size_t, std::int64_t> far_available_;  // by ordinal in records_, in ms
  ChunkedVector<Message> messages_;
  mutable std::size_t record_hint_ = 0;
  std::vector<Range> delayed_;  // of the active segment: published with a delay
  Committer::LogId log_ = Committer::kNoLog;
  std::vector<Range> absent_;
  Position next_position_ = 1;
  LogIndex next_index_ = 1;
  Position durable_ = 0;
  Position in_file_ = 0;  // the last one whose append has taken place
  std::int64_t last_timestamp_ns_ = 0;
  bool visible_when_written_ = false;
  bool reports_writes_ = false;
  std::deque<Mark> marks_;               // appended, not durable yet
  std::vector<Epoch> epochs_;            // clock offset by position, for D-28
  Position process_first_position_ = 1;  // published by this process from here on

  BodyTail tail_;
  bool keeps_bodies_ = true;
  std::map<std::pair<LogIndex, std::uint32_t>, std::unique_ptr<PageRead>> page_reads_;
  std::vector<std::unique_ptr<PageRead>> retired_reads_;

  // expired_prefix(): every position of [first, low] is old enough, none of [high, last]; kept while pages are read.
  struct Search {
    Position first = 0, last = 0, low = 0, high = 0;
    std::int64_t cutoff_ns = 0, high_timestamp_ns = 0;
  };
  std::optional<Search> search_;
};

}  // namespace rq::storage
