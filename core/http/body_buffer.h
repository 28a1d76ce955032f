// Collects a request body into one chunk, so that messages can be slices of it.
//
//  I1 A declared length is allocated once, when its first byte is there; without one the chunk doubles as bytes arrive.
//  I2 Never holds more than limit + 1 bytes: what exceeds the limit is counted as overflow and dropped.
#pragma once

#include <cstdint>
#include <optional>

#include "core/base/slice.h"
#include "core/http/chunked_decoder.h"

namespace rq::http {

class BodyBuffer final : public BodySink {
 public:
  BodyBuffer() = default;
  BodyBuffer(std::uint32_t limit, std::optional<std::uint64_t> declared) : limit_(limit), declared_(declared) {}
  BodyBuffer(BodyBuffer&&) noexcept = default;
  BodyBuffer& operator=(BodyBuffer&&) noexcept = default;

  void on_body(ConstBuf bytes) override;
  bool overflow() const { return overflow_; }
  std::uint32_t size() const { return size_; }
  // Bytes that the buffer occupies once `more` have come, at most the limit.
  std::uint64_t capacity_with(std::uint64_t more) const;
  Slice take();  // everything so far; the buffer is empty afterwards

 private:
  void grow(std::uint32_t more);

  std::uint32_t limit_ = 0;
  std::optional<std::uint64_t> declared_;
  Slice chunk_;  // keeps the chunk; its bytes are written below
  std::byte* data_ = nullptr;
  std::uint32_t capacity_ = 0;
  std::uint32_t size_ = 0;
  bool overflow_ = false;
};

}  // namespace rq::http
