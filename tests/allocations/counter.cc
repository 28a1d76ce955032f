#include "tests/allocations/counter.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

thread_local bool t_counts = false;
std::atomic<std::uint64_t> g_allocations{0};

void* counted(std::size_t bytes, std::size_t alignment) {
  if (t_counts) g_allocations.fetch_add(1, std::memory_order_relaxed);
  void* memory = alignment <= alignof(std::max_align_t)
                     ? std::malloc(bytes == 0 ? 1 : bytes)
                     : std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (memory == nullptr) std::abort();
  return memory;
}

}  // namespace

void* operator new(std::size_t bytes) { return counted(bytes, 0); }
void* operator new[](std::size_t bytes) { return counted(bytes, 0); }
void* operator new(std::size_t bytes, std::align_val_t alignment) { return counted(bytes, static_cast<std::size_t>(alignment)); }
void* operator new[](std::size_t bytes, std::align_val_t alignment) {
  return counted(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace rq::test {

CountAllocations::CountAllocations() { t_counts = true; }
CountAllocations::~CountAllocations() { t_counts = false; }
std::uint64_t allocations() { return g_allocations.load(std::memory_order_relaxed); }

}  // namespace rq::test
