// A set of 64-bit numbers, kept as merged ranges: what arrives nearly in order costs constant memory however much it is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

namespace rq::load {

class IdRanges {
 public:
  bool insert(std::uint64_t id);  // false: it was there
  std::uint64_t count() const { return count_; }
  std::size_t ranges() const { return ranges_.size(); }

 private:
  std::map<std::uint64_t, std::uint64_t> ranges_;  // first -> last, both included; neither overlapping nor adjacent
  std::uint64_t count_ = 0;
};

}  // namespace rq::load
