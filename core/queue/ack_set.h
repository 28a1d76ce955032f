// A set of positions above a moving floor: a bitmap in pages of 4,096 positions, kept in an ordered map by page number. Far-apart
// positions cost a page each, neighbours a bit each; there is no allocation per position (page 30 section 3.1, sparse acks).
//
//  I1 Every page holds at least one position.
//  I2 size() is the number of bits set.
//  I3 At most two pages are kept in reserve, for a window that moves over a page border.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <map>
#include <optional>

#include "core/storage/types.h"

namespace rq::queue {

using storage::Position;

class AckSet {
 public:
  static constexpr std::uint64_t kPagePositions = 4'096;

  bool insert(Position position);  // false if it was there
  bool contains(Position position) const;
  bool empty() const { return size_ == 0; }
  std::uint64_t size() const { return size_; }
  std::size_t pages() const { return pages_.size(); }

  // Removes every position <= through.
  void erase_through(Position through);
  // Smallest position >= from that is not in the set.
  Position next_clear(Position from) const;
  // Smallest position >= from that is in the set.
  std::optional<Position> next_set(Position from) const;

  // Ascending.
  template <class F>
  void for_each(F&& f) const {
    for (const auto& [number, page] : pages_)
      for (std::size_t word = 0; word < kWords; ++word)
        for (std::uint64_t bits = page.words[word]; bits != 0; bits &= bits - 1)
          f(number * kPagePositions + word * 64 + static_cast<std::uint64_t>(std::countr_zero(bits)));
  }

  void check_invariants() const;

 private:
  static constexpr std::size_t kWords = kPagePositions / 64;
  struct Page {
    std::array<std::uint64_t, kWords> words{};
    std::uint32_t count = 0;
  };
  using Pages = std::map<std::uint64_t, Page>;

  Page& page_at(std::uint64_t number);
  void drop(Pages::iterator page);

  Pages pages_;
  std::array<Pages::node_type, 2> reserve_;
  std::uint64_t size_ = 0;
};

}  // namespace rq::queue
