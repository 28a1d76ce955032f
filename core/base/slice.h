// Refcounted immutable bytes. A Chunk is filled by one reader and then only read; a Slice keeps its chunk alive.
// Counts are plain integers: chunks never leave their shard (a back end may read the bytes elsewhere, never the count).
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "core/base/bytes.h"
#include "core/base/check.h"

namespace rq {

class ChunkPool;

struct Chunk {
  std::uint32_t refs = 0;
  std::uint32_t capacity = 0;
  ChunkPool* pool = nullptr;  // null: plain heap chunk
  Chunk* next_free = nullptr;
  std::byte* data() { return reinterpret_cast<std::byte*>(this + 1); }
};

// Hands out receive chunks of one size and keeps a bounded number of free ones. Must outlive its chunks.
// A batch of 64 messages of 1 KiB fits into one: with 64 KiB it took a second read and a copy, a tenth of its CPU (MPUB of
// docs/performance.md). 43 of them are 4 MiB.
class ChunkPool {
 public:
  explicit ChunkPool(std::uint32_t chunk_bytes = 96 * 1024, std::uint32_t free_max = 43)
      : chunk_bytes_(chunk_bytes), free_max_(free_max) {}
  ~ChunkPool();
  ChunkPool(const ChunkPool&) = delete;
  ChunkPool& operator=(const ChunkPool&) = delete;

  std::uint32_t chunk_bytes() const { return chunk_bytes_; }
  Chunk* take();  // refs == 0: wrap it in a Slice at once
  void give_back(Chunk* chunk);
  std::uint64_t outstanding() const { return outstanding_; }

 private:
  std::uint32_t chunk_bytes_;
  std::uint32_t free_max_;
  std::uint32_t free_count_ = 0;
  std::uint64_t outstanding_ = 0;
  Chunk* free_ = nullptr;
};

Chunk* new_chunk(std::uint32_t capacity);  // heap chunk without a pool
void release_chunk(Chunk* chunk) noexcept;

class Slice {
 public:
  Slice() = default;
  Slice(Chunk* chunk, const std::byte* data, std::uint32_t size) : chunk_(chunk), data_(data), size_(size) { ++chunk_->refs; }
  Slice(const Slice& other) : chunk_(other.chunk_), data_(other.data_), size_(other.size_) {
    if (chunk_ != nullptr) ++chunk_->refs;
  }
  Slice(Slice&& other) noexcept
      : chunk_(std::exchange(other.chunk_, nullptr)),
        data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)) {}
  Slice& operator=(Slice other) noexcept {
    std::swap(chunk_, other.chunk_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~Slice() {
    if (chunk_ != nullptr && --chunk_->refs == 0) release_chunk(chunk_);
  }

  // A copy of the bytes in a heap chunk of exactly that size.
  static Slice copy_of(ConstBuf bytes);

  const std::byte* data() const { return data_; }
  std::uint32_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  ConstBuf bytes() const { return {data_, size_}; }
  Slice sub(std::uint32_t at, std::uint32_t length) const {
    RQ_CHECK(at <= size_ && length <= size_ - at);
    return length == 0 ? Slice() : Slice(chunk_, data_ + at, length);
  }
  // True if `other` continues this slice in the same chunk; then extend() makes one slice of both.
  bool joins(const Slice& other) const { return chunk_ != nullptr && chunk_ == other.chunk_ && data_ + size_ == other.data_; }
  void extend(std::uint32_t bytes) { size_ += bytes; }
  // Bytes of memory that this slice keeps alive.
  std::uint32_t pinned_bytes() const { return chunk_ == nullptr ? 0 : chunk_->capacity; }

 private:
  Chunk* chunk_ = nullptr;
  const std::byte* data_ = nullptr;
  std::uint32_t size_ = 0;
};

}  // namespace rq
