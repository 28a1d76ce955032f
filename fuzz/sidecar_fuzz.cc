// Sidecars: a header that is accepted describes exactly the file, and nothing outside it is touched.
#include <cstdlib>
#include <string>

#include "core/base/crc32c.h"
#include "core/storage/sidecar.h"

using namespace rq;
using namespace rq::storage;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string input(reinterpret_cast<const char*>(data), size);
  if (size >= kSidecarHeaderBytes && (data[5] & 1) != 0)  // a right checksum lets mutations through
    store32(reinterpret_cast<std::byte*>(input.data()) + 56, crc32c(bytes_of(input).first(56)));
  const ConstBuf file = bytes_of(input);
  if (size < kSidecarHeaderBytes) return 0;
  const std::uint64_t segment_bytes = load64(file.data() + 8);
  SidecarHeader header;
  if (decode_sidecar_header(file.first(kSidecarHeaderBytes), size, segment_bytes, header) != nullptr) return 0;
  if (header.file_bytes() != size) std::abort();
  ActiveSegment segment;
  segment.info.bytes = segment_bytes;
  segment.info.crc = header.segment_crc;
  bool complete = true;
  for (std::uint32_t i = 0; i < header.location_count; ++i) {
    RecordIndex location;
    const ConstBuf entry = file.subspan(kSidecarHeaderBytes + std::size_t{kLocationBytes} * i, kLocationBytes);
    if (decode_location(entry, header, i, location) != nullptr) complete = false;
    segment.records.push_back(location);
  }
  std::uint32_t messages = 0;
  if (decode_metadata_header(file.subspan(header.metadata_offset()), header, messages) != nullptr) return 0;
  if (header.entry_offset(messages) != size) std::abort();
  for (std::uint32_t i = 0; i < messages; ++i) {
    MessageMeta meta;
    if (decode_metadata_entry(file.subspan(header.entry_offset(i), kMetadataEntryBytes), segment_bytes, meta) != nullptr)
      complete = false;
    else if (meta.body_offset + meta.body_bytes > segment_bytes)
      std::abort();
    segment.messages.push_back(meta);
  }
  if (!complete) return 0;
  const std::string again = encode_sidecar(segment);
  if (again.size() != size || again.substr(kSidecarHeaderBytes) != input.substr(kSidecarHeaderBytes)) std::abort();
  return 0;
}
