// What recovery found: plain data, handed from the opener (core/storage/opener.h) to the queue engine.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/storage/management_files.h"
#include "core/storage/types.h"

namespace rq::storage {

// One segment file. A segment without messages has positions, ids and timestamps 0.
struct SegmentInfo {
  LogIndex base = 0;         // the number in the file name
  LogIndex first_index = 0;  // 0 when it holds no record
  std::uint64_t record_count = 0;
  std::uint64_t bytes = 0;  // file length (after repair)
  std::uint32_t crc = 0;    // CRC-32C of the whole file
  Position first_position = 0;
  Position last_position = 0;
  MessageId first_id = 0;
  MessageId last_id = 0;
  std::int64_t first_timestamp_ns = 0;
  std::int64_t last_timestamp_ns = 0;
  std::int64_t min_available_at_ms = 0;
  std::int64_t max_available_at_ms = 0;
  std::uint64_t message_count = 0;
  bool operator==(const SegmentInfo&) const = default;
};

// Index of the active segment, kept in memory until it is sealed.
struct RecordIndex {
  LogIndex index = 0;
  std::uint64_t offset = 0;  // of the record header
  std::uint64_t encoded_bytes = 0;
};

struct ActiveSegment {
  SegmentInfo info;
  std::vector<RecordIndex> records;
  std::vector<MessageMeta> messages;  // contiguous positions
};

// A durable Channel after checkpoint, WAL replay, the lost-position fence and gap application (page 20 section 8.4).
struct ChannelImage {
  std::string name;
  Position barrier = 0;
  Position ack_floor = 0;
  std::vector<Position> acknowledged;                  // ascending, unique, all > ack_floor, none absent
  std::map<Position, std::int64_t> requeued_until_ms;  // explicit REQ targets
  std::map<Position, std::uint16_t> attempts;
  Position message_count_origin = 0;
  std::uint64_t requeue_count = 0;
  std::uint64_t timeout_count = 0;
  bool paused = false;
  std::uint32_t wal_commands = 0;  // commands in the WAL file now
  std::uint64_t wal_bytes = 0;
};

struct TopicImage {
  std::string name;
  bool paused = false;
  Position next_position = 1;
  std::optional<Position> unrouted_from;
  bool ttl_discard = false;  // delivery_mode
  std::optional<std::uint64_t> message_ttl_seconds;
  Position expired_through = 0;
  std::uint64_t ttl_discarded_messages = 0;
  std::vector<SegmentInfo> sealed;  // ascending
  ActiveSegment active;
  LogIndex next_index = 1;
  std::vector<Range> absent;           // ascending, disjoint; positions 1..next_position-1 that no message covers
  std::vector<ChannelImage> channels;  // by name
};

struct BrokerImage {
  std::uint64_t node_id = 0;
  std::uint64_t next_sequence = 1;      // first sequence not covered by any durable reservation
  std::uint64_t registry_revision = 0;  // already raised and stored by this opening
  std::uint32_t active_writer_level = 1;
  std::uint32_t minimum_reader_level = 1;
  std::uint64_t generation = 1;
  ManagementFences fences;
  ManagementOperations operations;
  std::vector<TopicImage> topics;   // by name
  std::vector<std::string> outbox;  // names of dead-letter intents, in byte order
};

}  // namespace rq::storage
