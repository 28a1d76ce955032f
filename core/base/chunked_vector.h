// Append-only vector in chunks: elements never move once a chunk is full, so growth costs no copy of the whole and memory follows
// the count closely. The first chunk grows by doubling, so that thousands of nearly empty vectors stay small.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "core/base/check.h"

namespace rq {

template <class T, std::size_t kChunk = 1024>
class ChunkedVector {
 public:
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  void push_back(T value) {
    const std::size_t chunk = size_ / kChunk;
    if (chunk == chunks_.size()) {
      chunks_.emplace_back();
      if (chunk > 0) chunks_.back().reserve(kChunk);
    }
    chunks_[chunk].push_back(std::move(value));
    ++size_;
  }
  T& operator[](std::size_t i) {
    RQ_VERIFY(i < size_);
    return chunks_[i / kChunk][i % kChunk];
  }
  const T& operator[](std::size_t i) const {
    RQ_VERIFY(i < size_);
    return chunks_[i / kChunk][i % kChunk];
  }
  const T& back() const { return (*this)[size_ - 1]; }
  void clear() {
    chunks_.clear();
    chunks_.shrink_to_fit();
    size_ = 0;
  }

 private:
  std::vector<std::vector<T>> chunks_;
  std::size_t size_ = 0;
};

}  // namespace rq
