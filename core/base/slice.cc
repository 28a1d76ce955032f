#include "core/base/slice.h"

#include <new>

namespace rq {

Chunk* new_chunk(std::uint32_t capacity) {
  void* memory = ::operator new(sizeof(Chunk) + capacity);
  Chunk* chunk = new (memory) Chunk;
  chunk->capacity = capacity;
  return chunk;
}

void release_chunk(Chunk* chunk) noexcept {
  if (chunk->pool != nullptr) {
    chunk->pool->give_back(chunk);
    return;
  }
  chunk->~Chunk();
  ::operator delete(chunk);
}

ChunkPool::~ChunkPool() {
  RQ_CHECK(outstanding_ == 0);
  while (free_ != nullptr) {
    Chunk* chunk = free_;
    free_ = chunk->next_free;
    chunk->pool = nullptr;
    release_chunk(chunk);
  }
}

Chunk* ChunkPool::take() {
  ++outstanding_;
  if (free_ != nullptr) {
    Chunk* chunk = free_;
    free_ = chunk->next_free;
    --free_count_;
    chunk->next_free = nullptr;
    return chunk;
  }
  Chunk* chunk = new_chunk(chunk_bytes_);
  chunk->pool = this;
  return chunk;
}

void ChunkPool::give_back(Chunk* chunk) {
  --outstanding_;
  if (free_count_ >= free_max_) {
    chunk->pool = nullptr;
    release_chunk(chunk);
    return;
  }
  ++free_count_;
  chunk->next_free = free_;
  free_ = chunk;
}

Slice Slice::copy_of(ConstBuf bytes) {
  if (bytes.empty()) return {};
  Chunk* chunk = new_chunk(static_cast<std::uint32_t>(bytes.size()));
  std::memcpy(chunk->data(), bytes.data(), bytes.size());
  return Slice(chunk, chunk->data(), static_cast<std::uint32_t>(bytes.size()));
}

}  // namespace rq
