#include "core/nsq/mpub.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/check.h"

namespace rq::nsq {

std::uint32_t mpub_messages_bound(std::uint64_t body_bytes) {
  return body_bytes < 4 ? 0 : static_cast<std::uint32_t>(std::min<std::uint64_t>(kMpubMessagesMax, (body_bytes - 4) / 5));
}

std::uint32_t mpub_messages_max(std::uint64_t body_bytes_max) { return mpub_messages_bound(body_bytes_max); }

std::optional<std::string> MpubScanner::advance(ConstBuf arrived) {
  if (!counted_) {
    if (total_ < 4) return "E_BAD_BODY MPUB failed to read message count";
    if (arrived.size() < 4) return std::nullopt;
    const auto count = static_cast<std::int32_t>(load32(arrived.data()));
    if (count <= 0 || static_cast<std::uint32_t>(count) > limits_.messages_max) {
      return fmt::format("E_BAD_BODY MPUB invalid message count {}", count);
    }
    count_ = static_cast<std::uint32_t>(count);
    counted_ = true;
  }
  for (; index_ < count_; ++index_) {
    if (total_ - at_ < 4) return fmt::format("E_BAD_BODY MPUB message({}) exceeds body size", index_);
    if (arrived.size() < at_ + std::size_t{4}) return std::nullopt;
    const auto size = static_cast<std::int32_t>(load32(arrived.data() + at_));
    if (size <= 0) return fmt::format("E_BAD_MESSAGE MPUB invalid message({}) body size {}", index_, size);
    const auto bytes = static_cast<std::uint32_t>(size);
    if (bytes > limits_.message_bytes_max) {
      return fmt::format("E_BAD_MESSAGE MPUB message too big {} > {}", bytes, limits_.message_bytes_max);
    }
    if (total_ - at_ - 4 < bytes) return fmt::format("E_BAD_BODY MPUB message({}) exceeds body size", index_);
    at_ += 4 + bytes;
  }
  if (at_ != total_) return "E_BAD_BODY MPUB trailing bytes";
  return std::nullopt;
}

std::string MpubScanner::truncated(ConstBuf arrived) {
  if (auto error = advance(arrived)) return *error;
  if (!counted_) return "E_BAD_BODY MPUB failed to read message count";
  if (index_ == count_ || arrived.size() < at_) return "E_BAD_MESSAGE MPUB failed to read message body";
  return fmt::format("E_BAD_MESSAGE MPUB failed to read message({}) body size", index_);
}

std::vector<Slice> mpub_messages(const Slice& body) {
  RQ_CHECK(body.size() >= 4);
  const std::uint32_t count = load32(body.data());
  std::vector<Slice> messages;
  messages.reserve(count);
  std::uint32_t at = 4;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t bytes = load32(body.data() + at);
    messages.push_back(body.sub(at + 4, bytes));
    at += 4 + bytes;
  }
  return messages;
}

}  // namespace rq::nsq
