// Bounded cache of metadata pages of sealed segments: 1,024 entries each, charged 65,536 bytes, first in first out (page 30
// section 7.1). Memory for metadata does not grow with the backlog (I-43).
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "core/storage/types.h"

namespace rq::storage {

class PageCache {
 public:
  static constexpr std::uint64_t kPageCharge = 65'536;

  struct Key {
    std::uint64_t log = 0;  // serial of the TopicLog
    LogIndex base = 0;      // of the segment
    std::uint32_t page = 0;
    auto operator<=>(const Key&) const = default;
  };
  using Page = std::vector<MessageMeta>;

  PageCache() = default;
  PageCache(const PageCache&) = delete;
  PageCache& operator=(const PageCache&) = delete;

  const Page* find(const Key& key);
  // Pages added in this turn are not evicted before end_turn(), so that whoever waits for one gets to use it. Then the oldest go
  // until the rest is within the budget, in bytes: a page that does not fit at all was good for this turn.
  void add(const Key& key, Page page);
  void end_turn(std::uint64_t budget_bytes);
  void drop_log(std::uint64_t log);
  void drop_segment(std::uint64_t log, LogIndex base);
  std::uint64_t charged() const { return pages_.size() * kPageCharge; }

 private:
  std::map<Key, Page> pages_;
  std::map<Key, Page>::iterator last_found_ = pages_.end();  // most look-ups are for the page of the one before
  std::deque<Key> order_;
};

}  // namespace rq::storage
