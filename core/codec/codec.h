// The compression of one direction of a connection, as a transform of byte streams: no sockets, no frames of NSQ.
//
//  I1 How the bytes are cut into calls changes nothing about what the other side decodes.
//  I2 Memory does not depend on what the peer sends: sizes are checked before anything is allocated, and a decoder makes at most
//     as many bytes a call as its caller has room for, so that a few bytes that stand for many cost nothing until they are asked
//     for.
//  I3 After a failed step a decoder is not used any more.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "core/base/bytes.h"

namespace rq::codec {

class Encoder {
 public:
  virtual ~Encoder() = default;
  // Appends what carries these bytes, flushed: the peer decodes all of them from it. The pieces hold at least one byte together.
  virtual void encode(std::span<const ConstBuf> pieces, std::string& out) = 0;
};

class Decoder {
 public:
  struct Step {
    std::size_t used = 0;  // a prefix of the input was taken
    std::size_t made = 0;  // a prefix of the output was filled
    bool failed = false;   // undecodable; the connection ends
  };
  virtual ~Decoder() = default;
  // `out` is not empty. With less than all of the input used, `out` is full or the step failed; after a step that neither used
  // nor made anything the decoder waits for more input.
  virtual Step decode(ConstBuf in, MutBuf out) = 0;
  // The input ends inside a unit of the format that makes no output yet; false where the format does not tell.
  virtual bool midway() const { return false; }
};

std::unique_ptr<Encoder> snappy_encoder();
std::unique_ptr<Decoder> snappy_decoder();
std::unique_ptr<Encoder> deflate_encoder(int level);  // 1 to 9
std::unique_ptr<Decoder> deflate_decoder();

}  // namespace rq::codec
