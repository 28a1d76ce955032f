// Deadlines of many machines, by slot number: the earliest one is at hand, and a machine whose deadline only moves later is not
// touched until its old one comes (the owner then sets the new one).
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/base/time.h"

namespace rq::broker {

class DeadlineHeap {
 public:
  // Lowers or inserts at once; a later deadline is left until pop() has given the slot out at its old one.
  void lower(std::uint32_t slot, Instant deadline) {
    if (slot >= position_.size()) position_.resize(slot + 1, kAbsent);
    if (position_[slot] == kAbsent) {
      if (deadline == Instant::never()) return;
      position_[slot] = static_cast<std::uint32_t>(heap_.size());
      heap_.push_back({deadline, slot});
      sift_up(heap_.size() - 1);
    } else if (deadline < heap_[position_[slot]].deadline) {
      heap_[position_[slot]].deadline = deadline;
      sift_up(position_[slot]);
    }
  }
  void remove(std::uint32_t slot) {
    if (slot >= position_.size() || position_[slot] == kAbsent) return;
    const std::size_t at = position_[slot];
    position_[slot] = kAbsent;
    const Entry last = heap_.back();
    heap_.pop_back();
    if (at == heap_.size()) return;
    place(at, last);
    sift_up(at);
    sift_down(position_[last.slot]);
  }
  Instant earliest() const { return heap_.empty() ? Instant::never() : heap_.front().deadline; }
  // Takes out the earliest slot; earliest() is not never.
  std::uint32_t pop() {
    RQ_CHECK(!heap_.empty());
    const std::uint32_t slot = heap_.front().slot;
    remove(slot);
    return slot;
  }
  std::size_t size() const { return heap_.size(); }

 private:
  struct Entry {
    Instant deadline;
    std::uint32_t slot;
    bool operator<(const Entry& other) const {
      return deadline != other.deadline ? deadline < other.deadline : slot < other.slot;
    }
  };
  static constexpr std::uint32_t kAbsent = 0xffffffff;

  void place(std::size_t at, Entry entry) {
    heap_[at] = entry;
    position_[entry.slot] = static_cast<std::uint32_t>(at);
  }
  void sift_up(std::size_t at) {
    const Entry entry = heap_[at];
    while (at > 0 && entry < heap_[(at - 1) / 2]) {
      place(at, heap_[(at - 1) / 2]);
      at = (at - 1) / 2;
    }
    place(at, entry);
  }
  void sift_down(std::size_t at) {
    const Entry entry = heap_[at];
    for (std::size_t child = 2 * at + 1; child < heap_.size(); child = 2 * at + 1) {
      if (child + 1 < heap_.size() && heap_[child + 1] < heap_[child]) ++child;
      if (!(heap_[child] < entry)) break;
      place(at, heap_[child]);
      at = child;
    }
    place(at, entry);
  }

  std::vector<Entry> heap_;
  std::vector<std::uint32_t> position_;  // of each slot in heap_
};

}  // namespace rq::broker
