// The messages of one Topic, wherever they are: in segment files (topic_log.h), or in memory (memory_log.h). What both can be
// asked; how messages get in and out is the business of each.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/slice.h"
#include "core/base/time.h"
#include "core/storage/message_view.h"

namespace rq::storage {

class MessageLog : public MessageView {
 public:
  virtual ~MessageLog() = default;

  // --- watermarks and numbers
  Position written() const { return next_position() - 1; }
  virtual Position next_position() const = 0;
  virtual Position durable_position() const = 0;
  virtual std::uint64_t stored_messages() const = 0;
  virtual std::uint64_t segment_count() const = 0;
  virtual std::uint64_t segment_bytes() const = 0;
  virtual std::uint64_t unsynced_messages() const = 0;
  virtual std::uint64_t unsynced_bytes() const = 0;
  virtual Instant oldest_unsynced() const = 0;  // never() when there is none

  // --- expiry (page 30 section 9.2): timestamps rise along positions, so what is older than a cutoff is a prefix (I-09).
  struct Prefix {
    Position through = 0;                // its last position; the asked-for start if there is none
    std::uint64_t count = 0;             // stored messages in it
    std::int64_t next_timestamp_ns = 0;  // of the first stored message behind it, or less; INT64_MAX if there is none
  };
  // Durable messages behind `after` with timestamp <= cutoff_ns, at most `limit` of them. False: a metadata page is being read;
  // ask again with the same arguments when it has arrived.
  virtual bool expired_prefix(Position after, std::int64_t cutoff_ns, std::uint64_t limit, Prefix& out) = 0;
  // Timestamp of the first stored message behind `after`, or less; INT64_MAX if there is none.
  virtual std::int64_t oldest_timestamp_after(Position after) const = 0;
  virtual std::uint64_t stored_after(Position after) const = 0;

  // The body if it is in memory, or an empty slice.
  virtual Slice cached_body(Position position) const = 0;
  // Messages with available-at in the future that a statistics snapshot must look at, as ranges that hold them all.
  virtual std::vector<Range> maybe_delayed(std::int64_t now_ms) const = 0;
};

}  // namespace rq::storage
