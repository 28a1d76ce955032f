// The JSON documents of a data directory, and dead-letter intents: what is accepted, encoded and read again is the same.
#include <cstdlib>
#include <string>

#include "core/storage/management_files.h"
#include "core/storage/manifest.h"
#include "core/storage/outbox.h"

using namespace rq;
using namespace rq::storage;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const ConstBuf input = std::as_bytes(std::span(data, size));
  if (const auto manifest = decode_manifest(input)) {
    const auto again = decode_manifest(bytes_of(encode_manifest(*manifest)));
    if (!again || *again != *manifest) std::abort();
  }
  if (const auto meta = decode_broker_meta(input)) {
    const auto again = decode_broker_meta(bytes_of(encode_broker_meta(*meta)));
    if (!again || *again != *meta) std::abort();
  }
  if (const auto compatibility = decode_compatibility(input)) {
    const auto again = decode_compatibility(bytes_of(encode_compatibility(*compatibility)));
    if (!again || *again != *compatibility) std::abort();
  }
  if (const auto entry = decode_outbox(input)) {
    if (encode_outbox(*entry) != text_of(input)) std::abort();
  }
  (void)check_format(input);
  if (const auto fences = decode_fences(input)) {
    const auto again = decode_fences(bytes_of(encode_fences(*fences)));
    if (!again || *again != *fences) std::abort();
  }
  if (const auto operations = decode_operations(input)) {
    const auto again = decode_operations(bytes_of(encode_operations(*operations)));
    if (!again || *again != *operations) std::abort();
  }
  return 0;
}
