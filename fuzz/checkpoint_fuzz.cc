// Checkpoints: what is accepted, encoded and read again is the same.
#include <cstdlib>
#include <string>

#include "core/storage/checkpoint.h"
#include "core/storage/frame.h"

using namespace rq;
using namespace rq::storage;

namespace {

void try_file(ConstBuf file) {
  const auto first = decode_checkpoint(file);
  if (!first) {
    if (first.error().empty()) std::abort();
    return;
  }
  const std::string encoded = encode_checkpoint(first->channel, first->ephemeral);
  const auto second = decode_checkpoint(bytes_of(encoded));
  if (!second || encode_checkpoint(second->channel, second->ephemeral) != encoded) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const ConstBuf input = std::as_bytes(std::span(data, size));
  try_file(input);
  std::string framed;
  put_frame(framed, "RCC7", input);
  try_file(bytes_of(framed));
  return 0;
}
