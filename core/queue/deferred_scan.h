// Delayed fresh messages that a Channel's scan has stepped over (page 30 section 3.3): bounded memory whatever their number
// (I-24). The nearest ones are kept one by one; all others are folded into one pair of lowest position and earliest time, and
// when that time comes the scan looks again from that position on.
//
//  I1 Every position added and not yet handed back is among the near or ripe ones, or the far pair covers it: its position is not
//     below the pair's and it is not due before the pair.
//  I2 near and ripe hold at most `near_max` each.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "core/base/hash.h"
#include "core/base/time.h"
#include "core/queue/view.h"

namespace rq::queue {

class DeferredScan {
 public:
  using Due = MessageView::Due;

  explicit DeferredScan(std::size_t near_max) : near_max_(near_max) {}

  bool empty() const { return near_.empty() && ripe_.empty() && !far_.has_value(); }

  // The scan stepped over `position`, which is not here yet.
  void add(Position position, const Due& due);
  // If the far pair is due: forgets it and everything at or above its position, and returns that position, from which the scan
  // has to look again.
  std::optional<Position> rewind(Now now);
  // The lowest near position that is due; it stays until taken.
  std::optional<Position> ripe(Now now);
  void take_ripe();
  void erase_through(Position through);

  // Earliest instant after `now` at which rewind() or ripe() gives more; wall deadlines are mapped through `now`.
  Instant next_deadline(Now now) const;
  // For I-20: false means that `position` would never be looked at again.
  bool remembers(Position position) const;
  void digest(Hasher& hasher) const;

 private:
  struct Item {
    Position position;
    Due due;
  };
  struct Later {
    bool operator()(const Item& a, const Item& b) const {
      return a.due.wall != b.due.wall ? a.due.wall < b.due.wall : a.position < b.position;
    }
  };
  void fold(const Item& item);
  void remeasure();

  std::size_t near_max_;
  std::vector<Item> near_;      // a heap by Later: the latest in front
  std::vector<Position> ripe_;  // descending: the lowest at the back
  Due earliest_{{}, {}};        // of near_, or earlier; meaningless when near_ is empty
  std::optional<Item> far_;
};

// The steady instant at which `due` is reached if the wall clock runs on from `now`.
Instant instant_of(const MessageView::Due& due, Now now);

}  // namespace rq::queue
