#include "core/storage/page_cache.h"

namespace rq::storage {

const PageCache::Page* PageCache::find(const Key& key) {
  if (last_found_ == pages_.end() || last_found_->first != key) last_found_ = pages_.find(key);
  return last_found_ == pages_.end() ? nullptr : &last_found_->second;
}

void PageCache::add(const Key& key, Page page) {
  if (!pages_.emplace(key, std::move(page)).second) return;
  order_.push_back(key);
}

void PageCache::end_turn(std::uint64_t budget_bytes) {
  while (charged() > budget_bytes) {
    last_found_ = pages_.end();
    pages_.erase(order_.front());
    order_.pop_front();
  }
}

void PageCache::drop_log(std::uint64_t log) {
  last_found_ = pages_.end();
  std::erase_if(order_, [log](const Key& key) { return key.log == log; });
  pages_.erase(pages_.lower_bound(Key{log, 0, 0}), pages_.lower_bound(Key{log + 1, 0, 0}));
}

void PageCache::drop_segment(std::uint64_t log, LogIndex base) {
  last_found_ = pages_.end();
  std::erase_if(order_, [log, base](const Key& key) { return key.log == log && key.base == base; });
  pages_.erase(pages_.lower_bound(Key{log, base, 0}), pages_.lower_bound(Key{log, base + 1, 0}));
}

}  // namespace rq::storage
