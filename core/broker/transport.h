// What lies between a session and its stream: nothing, or a compression in both directions (page 10 section 3.4). TLS lies below
// and is the Net port's.
//
//  I1 While it compresses, at most one received chunk waits to be decoded, and the session asks for one decoded chunk when it has
//     used up the last: what a peer compressed well costs its memory only as far as it is taken.
//  I2 What goes out is encoded in pieces of at most kPieceBytes of plain bytes, each flushed and handed over before the next one
//     is encoded; nothing is flushed empty.
#pragma once

#include <deque>
#include <memory>
#include <string>

#include "core/base/slice.h"
#include "core/broker/output.h"
#include "core/codec/codec.h"

namespace rq::broker {

class Transport {
 public:
  enum class Kind : std::uint8_t { plain, snappy, deflate };
  static constexpr std::size_t kPieceBytes = 64 * 1024;
  static constexpr std::size_t kDecodedBytesPerTurn = 256 * 1024;  // then other connections have their turn

  Kind kind() const { return kind_; }
  bool compressed() const { return kind_ != Kind::plain; }
  void compress(Kind kind, int level);  // once; both directions from here on

  // Received bytes that the session cannot take yet: during an upgrade, and while compressed.
  void hold(Slice raw);
  bool holds() const { return !raw_.empty() || decoder_full_ || failed_; }
  std::deque<Slice> take_held();  // plain only
  bool midway() const { return decoder_ != nullptr && decoder_->midway(); }

  struct Decoded {
    Slice bytes;          // empty: everything held was taken, or it failed
    bool failed = false;  // undecodable
  };
  Decoded decode(ChunkPool& pool);

  // The next write: the rest of what is encoded, or a new piece of the batch that `output` is writing.
  ConstBuf encode(Output& output);
  // That many encoded bytes were taken; returns how many plain bytes of the batch have left with them.
  std::size_t written(std::size_t bytes);

 private:
  Kind kind_ = Kind::plain;
  std::unique_ptr<codec::Encoder> encoder_;
  std::unique_ptr<codec::Decoder> decoder_;
  std::deque<Slice> raw_;
  bool decoder_full_ = false;  // it may make more without input
  bool failed_ = false;        // behind what decode() returned
  std::string encoded_;
  std::size_t encoded_done_ = 0, plain_bytes_ = 0;  // of encoded_: written, and standing for so many plain ones
};

}  // namespace rq::broker
