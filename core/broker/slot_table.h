// Machines of one kind, one a connection: by slot, by consumer, and by their earliest deadline. What SessionTable and LiveFeeds
// have in common. A Machine has consumer(), resume(), flush(), expire(), next_deadline(), can_be_destroyed() and the flags
// `dirty` and `touched`, which belong to its table.
//
//  I1 A slot is given to the next machine only after its machine can be destroyed: has no Op in flight and is owed no answer. So
//     a late answer always finds the machine that asked.
//  I2 Nothing here is proportional to the number of idle machines per turn.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "core/broker/deadline_heap.h"
#include "core/queue/engine.h"

namespace rq::broker {

template <class Machine>
class SlotTable {
 public:
  std::size_t size() const { return count_; }
  Machine* at(std::uint32_t slot) { return slot < slots_.size() ? slots_[slot].get() : nullptr; }
  Instant next_deadline() const { return deadlines_.earliest(); }

  // `make(slot)` gives the new machine; flush() looks at it in this turn.
  template <class Make>
  Machine& add(Make&& make) {
    std::uint32_t slot = static_cast<std::uint32_t>(slots_.size());
    if (free_.empty()) {
      slots_.emplace_back();
      consumer_of_.push_back(queue::ConsumerId::none);
    } else {
      slot = free_.back();
      free_.pop_back();
    }
    slots_[slot] = make(slot);
    ++count_;
    touch(slot);
    return *slots_[slot];
  }
  void touch(std::uint32_t slot) {
    Machine& machine = *slots_[slot];
    if (machine.touched) return;
    machine.touched = true;
    touched_.push_back(slot);
  }

  Machine* of_consumer(queue::ConsumerId consumer) {
    const auto found = consumers_.find(static_cast<std::uint64_t>(consumer));
    if (found == consumers_.end()) return nullptr;
    Machine* machine = at(found->second);
    return machine != nullptr && machine->consumer() == consumer ? machine : nullptr;
  }
  bool has_consumers() const { return !consumers_.empty(); }
  // After a subscription was answered: its consumer leads here from now on, if it has one.
  void note_consumer(std::uint32_t slot) {
    const queue::ConsumerId consumer = slots_[slot]->consumer();
    if (consumer == queue::ConsumerId::none) return;
    consumers_.emplace(static_cast<std::uint64_t>(consumer), slot);
    consumer_of_[slot] = consumer;
  }

  // The slots in `dirty` take their work and are touched; false when there was none.
  bool resume(std::vector<std::uint32_t>& dirty, Now now) {
    if (dirty.empty()) return false;
    std::swap(work_, dirty);
    for (const std::uint32_t slot : work_) {
      Machine* machine = at(slot);
      if (machine == nullptr) continue;
      machine->dirty = false;
      touch(slot);
      machine->resume(now);
    }
    work_.clear();
    return true;
  }
  // End of the turn for those that were touched; `gone(machine)` is told of each that ends.
  template <class Gone>
  void flush(Now now, Gone&& gone) {
    for (const std::uint32_t slot : touched_) {
      Machine& machine = *slots_[slot];
      machine.touched = false;
      machine.flush(now);
      if (consumer_of_[slot] != machine.consumer()) {
        consumers_.erase(static_cast<std::uint64_t>(consumer_of_[slot]));
        consumer_of_[slot] = queue::ConsumerId::none;
      }
      if (!machine.can_be_destroyed()) {
        deadlines_.lower(slot, machine.next_deadline());
        continue;
      }
      gone(machine);
      deadlines_.remove(slot);
      slots_[slot].reset();
      free_.push_back(slot);
      --count_;
    }
    touched_.clear();
  }
  void expire(Now now) {
    while (deadlines_.earliest() <= now.mono) {
      const std::uint32_t slot = deadlines_.pop();
      Machine& machine = *slots_[slot];
      const Instant deadline = machine.next_deadline();
      if (deadline > now.mono) {
        deadlines_.lower(slot, deadline);
        continue;
      }
      machine.expire(now);
      touch(slot);  // flush() sets the next deadline
    }
  }

  template <class F>
  void for_each(F&& f) {
    for (auto& machine : slots_)
      if (machine != nullptr) f(*machine);
  }
  template <class F>
  void for_each(F&& f) const {
    for (const auto& machine : slots_)
      if (machine != nullptr) f(static_cast<const Machine&>(*machine));
  }

 private:
  std::vector<std::unique_ptr<Machine>> slots_;
  std::vector<queue::ConsumerId> consumer_of_;  // by slot: what consumers_ holds for it
  std::vector<std::uint32_t> free_;
  std::size_t count_ = 0;
  boost::unordered_flat_map<std::uint64_t, std::uint32_t> consumers_;
  DeadlineHeap deadlines_;
  std::vector<std::uint32_t> touched_, work_;
};

// Deliveries and changes of policies in the order in which the engine made them.
template <class Deliver, class Change>
void in_order(const queue::Events& events, Deliver&& deliver, Change&& change) {
  std::size_t changes = 0;
  const auto catch_up = [&](std::size_t deliveries) {
    for (; changes < events.policy_changes.size() && events.policy_changes[changes].deliveries <= deliveries; ++changes)
      change(events.policy_changes[changes].consumer);
  };
  for (std::size_t i = 0; i < events.deliveries.size(); ++i) {
    catch_up(i);
    deliver(events.deliveries[i]);
  }
  catch_up(events.deliveries.size());
}

}  // namespace rq::broker
