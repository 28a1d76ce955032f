// The cache of metadata pages, against a plain map.
#include "core/storage/page_cache.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <deque>
#include <map>

namespace rq::storage {
namespace {

RC_GTEST_PROP(PageCache, FindsWhatIsThereAndNothingElse, ()) {
  PageCache cache;
  std::map<PageCache::Key, Position> model;
  std::deque<PageCache::Key> order;
  const auto key = [] {
    return PageCache::Key{*rc::gen::inRange<std::uint64_t>(1, 3), *rc::gen::inRange<LogIndex>(1, 3),
                          *rc::gen::inRange<std::uint32_t>(0, 3)};
  };
  const auto drop = [&](auto&& goes) {
    std::erase_if(order, goes);
    std::erase_if(model, [&](const auto& item) { return goes(item.first); });
  };
  const int steps = *rc::gen::inRange(1, 200);
  for (int step = 0; step < steps; ++step) {
    const PageCache::Key k = key();
    switch (*rc::gen::inRange(0, 6)) {
      case 0: {
        MessageMeta meta;
        meta.position = static_cast<Position>(step) + 1;
        cache.add(k, {meta});
        if (model.emplace(k, meta.position).second) order.push_back(k);
        break;
      }
      case 1: {
        const std::uint64_t pages = *rc::gen::inRange<std::uint64_t>(0, 8);
        cache.end_turn(pages * PageCache::kPageCharge);
        while (order.size() > pages) {
          model.erase(order.front());
          order.pop_front();
        }
        break;
      }
      case 2:
        cache.drop_log(k.log);
        drop([&](const PageCache::Key& each) { return each.log == k.log; });
        break;
      case 3:
        cache.drop_segment(k.log, k.base);
        drop([&](const PageCache::Key& each) { return each.log == k.log && each.base == k.base; });
        break;
      default: {
        const PageCache::Page* page = cache.find(k);
        const auto expected = model.find(k);
        RC_ASSERT((page != nullptr) == (expected != model.end()));
        if (page != nullptr) RC_ASSERT(page->front().position == expected->second);
      }
    }
    RC_ASSERT(cache.charged() == model.size() * PageCache::kPageCharge);
  }
}

}  // namespace
}  // namespace rq::storage
