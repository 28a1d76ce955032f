#include "core/queue/ack_set.h"

#include <utility>

#include "core/base/check.h"

namespace rq::queue {

AckSet::Page& AckSet::page_at(std::uint64_t number) {
  // Mostly the highest page, since acknowledgements follow the cursor.
  if (!pages_.empty()) {
    const auto last = std::prev(pages_.end());
    if (last->first == number) return last->second;
  }
  if (const auto found = pages_.find(number); found != pages_.end()) return found->second;
  for (Pages::node_type& spare : reserve_) {
    if (spare.empty()) continue;
    spare.key() = number;
    spare.mapped() = Page{};
    return pages_.insert(std::move(spare)).position->second;
  }
  return pages_[number];
}

void AckSet::drop(Pages::iterator page) {
  size_ -= page->second.count;
  auto node = pages_.extract(page);
  for (Pages::node_type& spare : reserve_) {
    if (!spare.empty()) continue;
    spare = std::move(node);
    return;
  }
}

bool AckSet::insert(Position position) {
  Page& page = page_at(position / kPagePositions);
  std::uint64_t& word = page.words[position % kPagePositions / 64];
  const std::uint64_t bit = std::uint64_t{1} << (position % 64);
  if ((word & bit) != 0) return false;
  word |= bit;
  ++page.count;
  ++size_;
  return true;
}

bool AckSet::contains(Position position) const {
  if (size_ == 0) return false;
  const auto found = pages_.find(position / kPagePositions);
  if (found == pages_.end()) return false;
  return (found->second.words[position % kPagePositions / 64] >> (position % 64) & 1) != 0;
}

void AckSet::erase_through(Position through) {
  const std::uint64_t number = through / kPagePositions;
  while (!pages_.empty() && pages_.begin()->first < number) drop(pages_.begin());
  if (pages_.empty() || pages_.begin()->first != number) return;
  Page& page = pages_.begin()->second;
  const std::size_t last_word = through % kPagePositions / 64;
  std::uint32_t erased = 0;
  for (std::size_t word = 0; word <= last_word; ++word) {
    const std::uint64_t gone = word < last_word ? ~std::uint64_t{0} : ~std::uint64_t{0} >> (63 - through % 64);
    erased += static_cast<std::uint32_t>(std::popcount(page.words[word] & gone));
    page.words[word] &= ~gone;
  }
  page.count -= erased;
  size_ -= erased;
  if (page.count == 0) drop(pages_.begin());
}

Position AckSet::next_clear(Position from) const {
  for (auto page = pages_.find(from / kPagePositions); page != pages_.end() && page->first == from / kPagePositions; ++page) {
    for (std::size_t word = from % kPagePositions / 64; word < kWords; ++word) {
      const std::uint64_t clear = ~page->second.words[word] & ~std::uint64_t{0} << (from % 64);
      const Position base = page->first * kPagePositions + word * 64;
      if (clear != 0) return base + static_cast<std::uint64_t>(std::countr_zero(clear));
      from = base + 64;  // may be the first position of the next page
    }
  }
  return from;
}

std::optional<Position> AckSet::next_set(Position from) const {
  for (auto page = pages_.lower_bound(from / kPagePositions); page != pages_.end(); ++page) {
    const Position first = page->first * kPagePositions;
    if (from < first) from = first;
    for (std::size_t word = (from - first) / 64; word < kWords; ++word) {
      const std::uint64_t bits = page->second.words[word] & ~std::uint64_t{0} << (from % 64);
      if (bits != 0) return first + word * 64 + static_cast<std::uint64_t>(std::countr_zero(bits));
      from = first + word * 64 + 64;
    }
  }
  return std::nullopt;
}

void AckSet::check_invariants() const {
  std::uint64_t total = 0;
  for (const auto& [number, page] : pages_) {
    std::uint32_t count = 0;
    for (std::uint64_t word : page.words) count += static_cast<std::uint32_t>(std::popcount(word));
    RQ_CHECK(count != 0 && count == page.count);
    total += count;
  }
  RQ_CHECK(total == size_);
}

}  // namespace rq::queue
