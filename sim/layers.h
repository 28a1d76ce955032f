// The client's half of an upgrade (page 10 section 3.4): what IDENTIFY asks for, and the bytes below the frames from then on.
//
//   answer to IDENTIFY in clear -> TLS -> OK -> compression -> OK -> established
//
//  I1 Bytes behind a frame that ends a layer belong to the next one, in whatever pieces they come.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <string_view>

#include "core/base/random.h"
#include "core/codec/codec.h"
#include "sim/nsq_wire.h"

namespace rq::sim {

class Layers {
 public:
  enum class Layer : std::uint8_t { tls, snappy, deflate };

  void reset() { *this = Layers(); }
  void draw(Random& random);  // TLS, a compression, or both
  std::string wish() const;   // further fields of IDENTIFY's object
  bool established() const { return !answer_awaited_ && todo_.empty() && !ok_awaited_; }

  // Takes what arrived, and what on_frame() left for a new layer; to be called again after on_frame(). False: undecodable.
  bool receive(std::string& inbox);
  std::string plain;  // received, decoded, not yet cut into frames

  // A frame that arrived while not established(): the answer to IDENTIFY, or the OK of a layer. Returns what must be sent in
  // clear. False in `agreed`: not as agreed.
  std::string on_frame(const Frame& frame, bool& agreed);
  std::string encode(std::string_view bytes);

 private:
  std::string begin_next();

  std::deque<Layer> todo_;  // asked for, or granted and not begun
  bool answer_awaited_ = false;
  bool ok_awaited_ = false;
  bool tls_awaited_ = false;  // the server's line of the handshake
  std::string received_;      // below the layer that is about to begin
  std::unique_ptr<codec::Encoder> encoder_;
  std::unique_ptr<codec::Decoder> decoder_;
};

// Everything that those bytes stand for; false: undecodable.
bool decode_into(codec::Decoder& decoder, std::string_view bytes, std::string& out);

}  // namespace rq::sim
