// The body of an MPUB (page 10 section 2.4, D-01): int32 count, then count times (int32 size, bytes); nothing behind it.
// Checked while it arrives, so that a wrong count is answered without waiting for the rest.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/slice.h"

namespace rq::nsq {

inline constexpr std::uint32_t kMpubMessagesMax = 65'536;  // page 10 section 2.4

struct MpubLimits {
  std::uint32_t messages_max = kMpubMessagesMax;
  std::uint32_t message_bytes_max = 0;
};

// min(kMpubMessagesMax, (body_bytes_max - 4) / 5).
std::uint32_t mpub_messages_max(std::uint64_t body_bytes_max);
// D-18: how many messages a body of that size can hold.
std::uint32_t mpub_messages_bound(std::uint64_t body_bytes);

class MpubScanner {
 public:
  MpubScanner() = default;
  MpubScanner(std::uint32_t body_bytes, const MpubLimits& limits) : total_(body_bytes), limits_(limits) {}

  // `arrived` is the beginning of the body and never shrinks. The error frame's text once there is something wrong.
  std::optional<std::string> advance(ConstBuf arrived);
  // The stream ended after these bytes: what could not be read.
  std::string truncated(ConstBuf arrived);

  std::uint32_t count() const { return count_; }

 private:
  std::uint32_t total_ = 0;
  MpubLimits limits_;
  bool counted_ = false;
  std::uint32_t count_ = 0;
  std::uint32_t index_ = 0;  // messages whose size was checked
  std::uint32_t at_ = 4;     // where the next message begins
};

// The messages of a body that the scanner accepted whole, as parts of it.
std::vector<Slice> mpub_messages(const Slice& body);

}  // namespace rq::nsq
