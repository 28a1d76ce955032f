// Cuts the bytes of a connection into frames (page 10 section 1.2). Whole frames are handed out where they lie; only a frame that
// arrived in pieces is put together in a buffer.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "core/base/bytes.h"

namespace rq::load {

struct Frame {
  std::uint32_t type;  // 0 response, 1 error, 2 message
  ConstBuf payload;
};

class Frames {
 public:
  static constexpr std::uint32_t kFrameBytesMax = 128u << 20;  // of the size field; more breaks the connection

  // Calls on_frame(const Frame&) for each frame that is complete now. False when the stream makes no sense.
  template <class F>
  bool feed(ConstBuf bytes, F&& on_frame) {
    while (!bytes.empty()) {
      const std::size_t missing = missing_of_partial(bytes);
      if (missing == kBroken) return false;
      if (!partial_.empty() || missing > bytes.size()) {
        const ConstBuf piece = bytes.first(std::min(missing, bytes.size()));
        put_bytes(partial_, piece);
        bytes = bytes.subspan(piece.size());
        const std::size_t still = missing_of_partial({});
        if (still == kBroken) return false;
        if (still > 0) continue;
        on_frame(Frame{load32(bytes_of(partial_).data() + 4), bytes_of(partial_).subspan(8)});
        partial_.clear();
        continue;
      }
      on_frame(Frame{load32(bytes.data() + 4), bytes.first(missing).subspan(8)});
      bytes = bytes.subspan(missing);
    }
    return true;
  }
  bool mid_frame() const { return !partial_.empty(); }

 private:
  static constexpr std::size_t kBroken = ~std::size_t{0};
  // Bytes that the frame under way still needs: up to its header first, then to its end.
  std::size_t missing_of_partial(ConstBuf bytes) const {
    const ConstBuf known = partial_.empty() ? bytes : bytes_of(partial_);
    if (known.size() < 8) return partial_.empty() ? 8 : 8 - partial_.size();
    const std::uint32_t size = load32(known.data());
    if (size < 4 || size > kFrameBytesMax) return kBroken;
    return 4 + std::size_t{size} - partial_.size();
  }

  std::string partial_;
};

}  // namespace rq::load
