// The recent bodies of one log that are in memory: runs of neighbouring positions, in the order of appending.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <utility>

#include "core/base/slice.h"
#include "core/storage/types.h"

namespace rq::storage {

class BodyTail {
 public:
  // Of a position above all before; some may be left out between them.
  void add(Position position, Slice body) {
    if (runs_.empty() || runs_.back().first + runs_.back().bodies.size() != position) runs_.push_back({position, {}});
    runs_.back().bodies.push_back(std::move(body));
  }
  // Empty: not here.
  Slice find(Position position) const {
    const auto after =
        std::upper_bound(runs_.begin(), runs_.end(), position, [](Position p, const Run& run) { return p < run.first; });
    if (after == runs_.begin()) return {};
    const Run& run = *std::prev(after);
    return position - run.first < run.bodies.size() ? run.bodies[position - run.first] : Slice();
  }
  // The oldest ones.
  void drop(std::uint32_t count) {
    while (count > 0) {
      Run& run = runs_.front();
      for (; count > 0 && !run.bodies.empty(); --count, ++run.first) run.bodies.pop_front();
      if (run.bodies.empty()) runs_.pop_front();
    }
  }

 private:
  struct Run {
    Position first;
    std::deque<Slice> bodies;  // at least one
  };
  std::deque<Run> runs_;
};

}  // namespace rq::storage
