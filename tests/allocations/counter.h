// Counts what the threads that asked for it allocate, through operator new of this program.
#pragma once

#include <cstdint>

namespace rq::test {

// While one of these lives, allocations of its thread are counted.
class CountAllocations {
 public:
  CountAllocations();
  ~CountAllocations();
  CountAllocations(const CountAllocations&) = delete;
};

std::uint64_t allocations();  // of all threads that count, so far

}  // namespace rq::test
