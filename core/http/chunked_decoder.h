// The chunked transfer coding (RFC 9112 section 7.1), decoded byte by byte without buffering: sizes in hex, extensions and
// trailers skipped, line ends CR LF.
//
//  I1 Framing bytes (size lines and trailers) of one message stay below kFramingBytesMax plus 32 per chunk of data, so that a
//     stream without data ends.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/base/bytes.h"

namespace rq::http {

class BodySink {
 public:
  virtual void on_body(ConstBuf bytes) = 0;

 protected:
  ~BodySink() = default;
};

class ChunkedDecoder {
 public:
  static constexpr std::uint32_t kFramingBytesMax = 8 * 1024;

  enum class State : std::uint8_t {
    size,
    extension,
    size_lf,
    data,
    data_cr,
    data_lf,
    trailer,
    trailer_line,
    trailer_lf,
    last_lf,
    done,
    bad
  };
  // Takes a prefix and returns its size: all of it unless the message ended or is malformed.
  std::size_t feed(ConstBuf input, BodySink& sink);
  bool done() const { return state_ == State::done; }
  bool bad() const { return state_ == State::bad; }

 private:
  State step(char c);

  State state_ = State::size;
  std::uint64_t left_ = 0;  // of this chunk
  std::uint8_t digits_ = 0;
  std::uint32_t framing_bytes_ = 0;
};

}  // namespace rq::http
