#include "core/http/chunked_decoder.h"

#include <algorithm>

#include "core/base/text.h"

namespace rq::http {

std::size_t ChunkedDecoder::feed(ConstBuf input, BodySink& sink) {
  std::size_t at = 0;
  while (at < input.size() && !done() && !bad()) {
    if (state_ == State::data) {
      const std::size_t take = static_cast<std::size_t>(std::min<std::uint64_t>(left_, input.size() - at));
      sink.on_body(input.subspan(at, take));
      at += take;
      left_ -= take;
      if (left_ == 0) {
        state_ = State::data_cr;
        // A chunk of data pays for the line that announces the next one.
        framing_bytes_ -= std::min<std::uint32_t>(framing_bytes_, 32);
      }
      continue;
    }
    state_ = ++framing_bytes_ > kFramingBytesMax ? State::bad : step(static_cast<char>(input[at]));
    ++at;
  }
  return at;
}

// One byte of framing; every transition stands here.
ChunkedDecoder::State ChunkedDecoder::step(char c) {
  switch (state_) {
    case State::size: {
      if (const int digit = hex_digit(c); digit >= 0) {
        if (++digits_ > 15) return State::bad;
        left_ = left_ * 16 + static_cast<std::uint64_t>(digit);
        return State::size;
      }
      if (digits_ == 0) return State::bad;
      if (c == '\r') return State::size_lf;
      return c == ';' || c == ' ' || c == '\t' ? State::extension : State::bad;
    }
    case State::extension:
      if (c == '\r') return State::size_lf;
      return c == '\n' ? State::bad : State::extension;
    case State::size_lf:
      if (c != '\n') return State::bad;
      digits_ = 0;
      return left_ > 0 ? State::data : State::trailer;
    case State::data_cr:
      return c == '\r' ? State::data_lf : State::bad;
    case State::data_lf:
      return c == '\n' ? State::size : State::bad;
    case State::trailer:  // at the beginning of a trailer line
      if (c == '\r') return State::last_lf;
      return c == '\n' ? State::bad : State::trailer_line;
    case State::trailer_line:
      if (c == '\r') return State::trailer_lf;
      return c == '\n' ? State::bad : State::trailer_line;
    case State::trailer_lf:
      return c == '\n' ? State::trailer : State::bad;
    case State::last_lf:
      return c == '\n' ? State::done : State::bad;
    case State::data:
    case State::done:
    case State::bad:
      break;
  }
  return State::bad;
}

}  // namespace rq::http
