// What a Channel may ask its Topic about stored messages. Implemented by the Topic's log and, in tests, by a vector.
#pragma once

#include "core/base/time.h"
#include "core/storage/types.h"

namespace rq::storage {

enum class Lookup {
  found,    // `out` is filled
  absent,   // no stored message covers the position (purged, lost, collected)
  loading,  // its metadata page is being read; the Topic retries when it arrived
};

class MessageView {
 public:
  virtual Lookup find(Position position, MessageMeta& out) = 0;
  // Highest position that may be reserved (the deliverable watermark); 0 for an empty Topic.
  virtual Position deliverable() const = 0;
  // Smallest position >= from that a stored message covers; deliverable() + 1 if there is none up to deliverable().
  virtual Position next_present(Position from) const = 0;
  // Number of absent positions in [first, last]; 0 when first > last.
  virtual std::uint64_t absent_count(Position first, Position last) const = 0;

  // When the message may be delivered (D-28): a message published without a delay (available_at_ms <= timestamp in ms) always;
  // one delayed by this process at the earlier of its wall and its steady time; any other at its wall time.
  struct Due {
    WallTime wall;                    // due when now.wall >= wall ...
    Instant mono = Instant::never();  // ... or now.mono >= mono
    bool reached(Now now) const { return now.wall >= wall || now.mono >= mono; }
  };
  virtual Due due(const MessageMeta& message) const = 0;

 protected:
  ~MessageView() = default;
};

}  // namespace rq::storage
