// Snappy streams: any bytes, in any pieces, decode or are refused; the pieces do not matter, and no step makes more than its
// room.
#include "core/codec/codec.h"
#include "fuzz/decoder_check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  rq::fuzz::check_decoder([] { return rq::codec::snappy_decoder(); }, data, size);
  return 0;
}
