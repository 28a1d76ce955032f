#include "tests/queue/allocation_count.h"

#include <malloc.h>

#include <cstdlib>
#include <new>

namespace {
std::uint64_t calls = 0;
std::size_t in_use = 0;
}  // namespace

namespace rq::test {
std::uint64_t allocations() noexcept { return calls; }
std::size_t bytes_in_use() noexcept { return in_use; }
}  // namespace rq::test

void* operator new(std::size_t bytes) {
  void* at = std::malloc(bytes == 0 ? 1 : bytes);
  if (at == nullptr) throw std::bad_alloc();
  ++calls;
  in_use += malloc_usable_size(at);
  return at;
}
void operator delete(void* at) noexcept {
  in_use -= malloc_usable_size(at);
  std::free(at);
}
void* operator new[](std::size_t bytes) { return operator new(bytes); }
void operator delete[](void* at) noexcept { operator delete(at); }
void operator delete(void* at, std::size_t) noexcept { operator delete(at); }
void operator delete[](void* at, std::size_t) noexcept { operator delete(at); }
