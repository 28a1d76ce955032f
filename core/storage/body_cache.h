// Which bodies are still in memory: one budget over the tails of all Topics, oldest appended first out (page 30 section 7.2).
// The bodies themselves stand in each TopicLog's tail; this is the order in which they go.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>

namespace rq::storage {

class BodyCache {
 public:
  static constexpr std::uint64_t kOverheadPerMessage = 32;
  static constexpr std::uint64_t kTogetherBytes = 16 * 1024;

  explicit BodyCache(std::uint64_t budget_bytes) : budget_(budget_bytes) {}

  struct Batch {
    std::uint64_t log = 0;  // serial of the TopicLog
    std::uint32_t count = 0;
    std::uint64_t bytes = 0;
  };
  std::uint64_t budget() const { return budget_; }
  std::uint64_t used() const { return used_; }
  // Small neighbours of one log go together, so that there is not one entry a message.
  void add(const Batch& batch) {
    used_ += batch.bytes;
    if (!order_.empty() && order_.back().log == batch.log &&
        order_.back().bytes + batch.bytes <= std::min(kTogetherBytes, budget_ / 16)) {
      order_.back().count += batch.count;
      order_.back().bytes += batch.bytes;
      return;
    }
    order_.push_back(batch);
  }
  bool over() const { return used_ > budget_; }
  // Removes the oldest batch; the caller drops that many bodies from the front of that log's tail.
  Batch pop() {
    const Batch batch = order_.front();
    order_.pop_front();
    used_ -= batch.bytes;
    return batch;
  }

 private:
  std::uint64_t budget_;
  std::uint64_t used_ = 0;
  std::deque<Batch> order_;
};

}  // namespace rq::storage
