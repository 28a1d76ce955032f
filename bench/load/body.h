// What a message of a run looks like, so that each can be recognised when it comes back.
//
//   offset 0   uint64  nonce of the run     from 16 bytes on
//   offset 8   uint64  number, from 0       from 8 bytes on (at offset 0 below 16 bytes)
//   then       bytes   a fixed pattern
//
// Bodies below 8 bytes carry no number: the id that the server gave tells them apart.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/bytes.h"

namespace rq::load {

class Body {
 public:
  static constexpr std::uint32_t kTellsRunBytes = 16;  // from here on a body carries the nonce
  enum class Kind : std::uint8_t { ours, foreign, altered };

  Body(std::uint32_t bytes, std::uint64_t nonce);
  std::uint32_t bytes() const { return static_cast<std::uint32_t>(model_.size()); }
  const std::string& model() const { return model_; }  // of number 0
  bool numbered() const { return model_.size() >= 8; }
  void write_number(std::byte* body, std::uint64_t number) const;
  // foreign: of another run; altered: not what was published. `number` is set for ours, when numbered().
  Kind look(ConstBuf body, std::uint64_t& number) const;

 private:
  std::size_t number_at() const { return model_.size() >= kTellsRunBytes ? 8 : 0; }
  std::size_t pattern_at() const { return model_.size() >= kTellsRunBytes ? 16 : numbered() ? 8 : 0; }

  std::string model_;
};

// One command of a producer, PUB for a batch size of 1 and MPUB otherwise; its bytes stay where they are until the next set().
class Command {
 public:
  Command(std::string_view topic, const Body& body, std::uint32_t batch_size);
  // `count` messages, numbered from `first`. count: 1 to the batch size.
  ConstBuf set(std::uint64_t first, std::uint32_t count);
  static std::uint64_t bytes_of(std::uint64_t topic_bytes, std::uint64_t message_bytes, std::uint64_t batch_size);

 private:
  void build(std::uint32_t count);

  std::string topic_;
  const Body& body_;
  bool batched_;
  std::uint32_t built_ = 0;  // messages in text_
  std::size_t first_body_ = 0;
  std::string text_;
};

}  // namespace rq::load
