// The bytes of one file, twice: as the page cache has them, and as the disk has them.
//
//  I1 The page cache is the disk with the doubtful writes and then the unsynced extents applied, in order.
//  I2 Unsynced extents are in ascending sequence; sync(through) covers those up to `through`.
//  I3 A doubtful write is one that a failed sync marked clean: readable, no barrier covers it again, and a power loss may take
//     it. Only writing its range anew and syncing that saves it (D-41).
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/random.h"

namespace rq::sim {

class FileData {
 public:
  const std::string& content() const { return cache_; }
  std::uint64_t size() const { return cache_.size(); }
  bool dirty() const { return !extents_.empty(); }

  void append(std::uint64_t sequence, ConstBuf bytes) { write(sequence, cache_.size(), bytes); }
  void write(std::uint64_t sequence, std::uint64_t at, ConstBuf bytes);
  void truncate(std::uint64_t sequence, std::uint64_t bytes);

  void sync(std::uint64_t through);
  void fail_sync(std::uint64_t through);

  // What a power loss keeps in any case.
  std::string certain() const;

  struct Loss {
    std::uint32_t lost = 0, cut = 0;
  };
  // Each unsynced extent is kept, cut to a prefix or lost. A write behind a hole that a lost one left is lost too, or, if
  // `hostile`, sometimes kept behind zeros.
  Loss power_loss(Random& draws, bool hostile);

  void put(std::string_view content);  // durable at once
  bool flip(std::uint64_t at);         // bit rot; false where there is no byte, or not everything is synced

 private:
  struct Extent {
    std::uint64_t sequence;
    std::uint64_t at;        // or the new length
    std::uint64_t bytes;     // 0 for a truncation
    std::uint64_t position;  // of the data in pending_
    bool truncation;
  };
  struct Doubtful {
    std::uint64_t at;
    std::string bytes;
  };
  // Calls on one handle come in order; two handles of one file may overtake each other (I2).
  std::uint64_t not_before_last(std::uint64_t sequence) const {
    return extents_.empty() ? sequence : std::max(sequence, extents_.back().sequence);
  }
  void cover(std::uint64_t at, std::uint64_t end);  // forget doubtful bytes there
  void drop_extents(std::size_t count);
  std::string_view data_of(const Extent& e) const { return std::string_view(pending_).substr(e.position, e.bytes); }

  std::string cache_, disk_;
  std::vector<Extent> extents_;
  std::string pending_;  // the bytes of the extents
  std::vector<Doubtful> doubtful_;
};

}  // namespace rq::sim
