// How often, and for how many bytes, this test program has asked operator new so far.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rq::test {

std::uint64_t allocations() noexcept;
std::size_t bytes_in_use() noexcept;  // as the allocator rounds them

}  // namespace rq::test
