// Segment images: whatever the bytes are, the scanner stops where it says, and what it accepts is encoded to the same bytes.
#include <cstdlib>
#include <string>
#include <vector>

#include "core/storage/record.h"

using namespace rq;
using namespace rq::storage;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string input(reinterpret_cast<const char*>(data), size);
  // Checksums are made right for every second input, so that mutations reach the batch parser.
  if (size > kRecordHeaderBytes && (data[6] & 1) != 0) {
    auto* bytes = reinterpret_cast<std::byte*>(input.data());
    store32(bytes + 40, static_cast<std::uint32_t>(size - kRecordHeaderBytes));
    store32(bytes + 44, crc32c(bytes_of(input).subspan(kRecordHeaderBytes), crc32c(bytes_of(input).first(44))));
  }
  ConstBuf rest = bytes_of(input);
  for (;;) {
    RecordHeader header;
    ConstBuf payload;
    if (scan_record(rest, header, payload) != RecordScan::record) break;
    const std::size_t consumed = header.encoded_bytes();
    if (consumed > rest.size()) std::abort();
    if (header.kind == RecordKind::publish_batch) {
      std::vector<Slice> bodies;
      std::vector<BatchItem> items;
      bool empty = false;
      const char* defect = visit_batch(header, payload, [&](const BatchItem& item) {
        items.push_back(item);
        empty = empty || item.body_bytes == 0;
        bodies.push_back(Slice::copy_of(payload.subspan(item.payload_offset, item.body_bytes)));
      });
      // The same payload in two pieces gives the same answer.
      BatchParser parser(header);
      std::size_t seen = 0;
      const auto count = [&seen](const BatchItem&) { ++seen; };
      parser.feed(payload.first(payload.size() / 3), count);
      parser.feed(payload.subspan(payload.size() / 3), count);
      if ((parser.finish() == nullptr) != (defect == nullptr) || seen != items.size()) std::abort();
      if (defect == nullptr && !empty) {
        const BatchFields fields{header.index, header.timestamp_ns, header.first_id, header.available_at_ms, items[0].position};
        std::string frame, encoded;
        put_batch_frame(frame, fields, bodies);
        std::vector<ConstBuf> pieces;
        add_batch_pieces(pieces, bytes_of(frame), bodies);
        for (const ConstBuf piece : pieces) put_bytes(encoded, piece);
        if (encoded.substr(kRecordHeaderBytes) != text_of(payload)) std::abort();
      }
    }
    rest = rest.subspan(consumed);
  }
  return 0;
}
