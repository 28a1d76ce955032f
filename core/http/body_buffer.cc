#include "core/http/body_buffer.h"

#include <algorithm>
#include <cstring>

namespace rq::http {

void BodyBuffer::on_body(ConstBuf bytes) {
  if (bytes.empty()) return;
  if (overflow_ || bytes.size() > limit_ - size_) {
    overflow_ = true;
    return;
  }
  const auto count = static_cast<std::uint32_t>(bytes.size());
  if (count > capacity_ - size_) grow(count);
  std::memcpy(data_ + size_, bytes.data(), count);
  size_ += count;
}

std::uint64_t BodyBuffer::capacity_with(std::uint64_t more) const {
  const std::uint64_t least = std::min<std::uint64_t>(size_ + more, limit_);
  if (least <= capacity_) return capacity_;
  const std::uint64_t wanted = declared_.value_or(std::max<std::uint64_t>(4'096, std::uint64_t{capacity_} * 2));
  return std::min<std::uint64_t>(std::max(wanted, least), limit_);
}

void BodyBuffer::grow(std::uint32_t more) {
  const auto wanted = static_cast<std::uint32_t>(capacity_with(more));
  Chunk* chunk = new_chunk(wanted);
  if (size_ > 0) std::memcpy(chunk->data(), data_, size_);
  data_ = chunk->data();
  capacity_ = wanted;
  chunk_ = Slice(chunk, data_, capacity_);
}

Slice BodyBuffer::take() {
  Slice body = size_ == 0 ? Slice() : chunk_.sub(0, size_);
  *this = BodyBuffer(limit_, declared_);
  return body;
}

}  // namespace rq::http
