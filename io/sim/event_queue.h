// Events in a slab, ordered by (time, random tie-break, sequence). The tie-break is drawn by the caller, so that two events of
// one instant run in an order that the seed decides.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/base/check.h"
#include "core/base/time.h"

namespace rq::sim {

// Whoever is told when an event's time has come. Targets live as long as the world; what may end sooner is named by a handle in
// `a` or `b`, and checked.
struct EventTarget {
  virtual void on_event(std::uint32_t kind, std::uint64_t a, std::uint64_t b) = 0;

 protected:
  ~EventTarget() = default;
};

struct Event {
  EventTarget* target = nullptr;
  std::uint32_t kind = 0;
  std::uint64_t a = 0, b = 0;
};

class EventQueue {
 public:
  void push(Instant at, std::uint32_t tie, const Event& event) {
    std::uint32_t slot = 0;
    if (free_.empty()) {
      slot = static_cast<std::uint32_t>(slab_.size());
      slab_.push_back(event);
    } else {
      slot = free_.back();
      free_.pop_back();
      slab_[slot] = event;
    }
    heap_.push_back({at.ns, (static_cast<std::uint64_t>(tie) << 40) | (++sequence_ & kSequenceMask), slot});
    std::push_heap(heap_.begin(), heap_.end(), Later{});
  }
  bool empty() const { return heap_.empty(); }
  std::size_t size() const { return heap_.size(); }
  Instant next_time() const { return {heap_.front().at}; }
  Event pop() {
    std::pop_heap(heap_.begin(), heap_.end(), Later{});
    const std::uint32_t slot = heap_.back().slot;
    heap_.pop_back();
    free_.push_back(slot);
    return slab_[slot];
  }

 private:
  static constexpr std::uint64_t kSequenceMask = (1ull << 40) - 1;
  struct Entry {
    std::int64_t at;
    std::uint64_t order;
    std::uint32_t slot;
  };
  struct Later {
    bool operator()(const Entry& x, const Entry& y) const { return x.at != y.at ? x.at > y.at : x.order > y.order; }
  };
  std::vector<Entry> heap_;
  std::vector<Event> slab_;
  std::vector<std::uint32_t> free_;
  std::uint64_t sequence_ = 0;
};

}  // namespace rq::sim
