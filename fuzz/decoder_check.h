// What holds for a decoder whatever it is fed. The first byte of the input chooses how the rest is cut.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/check.h"
#include "core/codec/codec.h"

namespace rq::fuzz {

inline constexpr std::size_t kMadeBytesMax = 4 << 20;  // then the run has seen enough

struct Outcome {
  std::string text;
  bool failed = false;
};

inline Outcome decode_all(codec::Decoder& decoder, std::string_view bytes, std::size_t piece, std::size_t room) {
  Outcome out;
  std::string buffer(room, '\0');
  for (std::size_t at = 0; at < bytes.size() && out.text.size() < kMadeBytesMax; at += piece) {
    ConstBuf in = bytes_of(bytes.substr(at, piece));
    for (;;) {
      const codec::Decoder::Step step = decoder.decode(in, std::as_writable_bytes(std::span(buffer)));
      RQ_CHECK(step.used <= in.size() && step.made <= room);
      RQ_CHECK(step.failed || step.used == in.size() || step.made == room || step.used + step.made > 0);
      out.text.append(buffer, 0, step.made);
      in = in.subspan(step.used);
      out.failed = step.failed;
      if (step.failed) return out;
      if ((in.empty() && step.made < room) || out.text.size() >= kMadeBytesMax) break;
    }
  }
  return out;
}

template <class Make>
void check_decoder(Make make, const std::uint8_t* data, std::size_t size) {
  if (size < 2) return;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto whole = make(), cut = make();
  const Outcome a = decode_all(*whole, bytes, bytes.size(), 65'536);
  const Outcome b = decode_all(*cut, bytes, 1 + data[0] % 32, 1 + data[0] * 16);
  if (a.text.size() >= kMadeBytesMax || b.text.size() >= kMadeBytesMax) return;
  RQ_CHECK(a.failed == b.failed && a.text == b.text);
}

}  // namespace rq::fuzz
