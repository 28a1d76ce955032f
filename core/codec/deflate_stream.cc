// Raw DEFLATE (RFC 1951) without head or checksum, one stream for the life of a direction, with a sync flush behind everything
// that is sent (page 10 section 3.4).
//
// An idle connection keeps its windows. For what is sent they are small (8 KiB, hash tables to match: about 100 KiB in all
// instead of 260), since messages repeat themselves within a few KiB; for what is received the format fixes 32 KiB. A producer
// gets nothing but small answers: until something larger is sent they go as stored blocks, and there is no window at all.
#include <zlib.h>

#include <algorithm>
#include <limits>

#include "core/base/check.h"
#include "core/codec/codec.h"

namespace rq::codec {
namespace {

constexpr int kWindowBitsSent = 13, kMemoryLevelSent = 7, kWindowBitsReceived = 15;
constexpr std::size_t kStepBytes = 16 * 1024;
constexpr std::size_t kStoredBytesMax = 128;
constexpr std::string_view kSyncMarker("\0\0\0\xff\xff", 5);  // an empty stored block

// zlib does not write to its input, but its interface says so.
Bytef* input_of(ConstBuf bytes) { return reinterpret_cast<Bytef*>(const_cast<std::byte*>(bytes.data())); }

class DeflateEncoder final : public Encoder {
 public:
  explicit DeflateEncoder(int level) : level_(level) { RQ_CHECK(level >= 1 && level <= 9); }
  ~DeflateEncoder() override {
    if (begun_) deflateEnd(&stream_);
  }

  void encode(std::span<const ConstBuf> pieces, std::string& out) override {
    if (!begun_) {
      std::size_t bytes = 0;
      for (const ConstBuf piece : pieces) bytes += piece.size();
      if (bytes <= kStoredBytesMax) return put_stored(pieces, bytes, out);
      begin();
    }
    std::size_t end = out.size();
    for (const ConstBuf piece : pieces) {
      RQ_CHECK(piece.size() <= std::numeric_limits<uInt>::max());
      stream_.next_in = input_of(piece);
      stream_.avail_in = static_cast<uInt>(piece.size());
      run(Z_NO_FLUSH, out, end);
    }
    run(Z_SYNC_FLUSH, out, end);
    out.resize(end);
  }

 private:
  // What was stored before is in no window of the stream that begins here, so it never refers to it.
  void begin() {
    const int result = deflateInit2(&stream_, level_, Z_DEFLATED, -kWindowBitsSent, kMemoryLevelSent, Z_DEFAULT_STRATEGY);
    RQ_CHECK(result == Z_OK);
    begun_ = true;
  }

  // Type 0, length, its complement, bytes. The marker behind it makes decoders hand them out.
  static void put_stored(std::span<const ConstBuf> pieces, std::size_t bytes, std::string& out) {
    static_assert(kStoredBytesMax <= 0xff);
    const auto length = static_cast<char>(bytes);
    out.append({'\0', length, '\0', static_cast<char>(~length), '\xff'});
    for (const ConstBuf piece : pieces) put_bytes(out, piece);
    out.append(kSyncMarker);
  }

  // Writes from `end` on, which moves; `out` is longer, so that its room is cleared once for all pieces.
  void run(int flush, std::string& out, std::size_t& end) {
    do {
      if (out.size() == end) out.resize(end + kStepBytes);
      const auto room = static_cast<uInt>(out.size() - end);
      stream_.next_out = reinterpret_cast<Bytef*>(out.data() + end);
      stream_.avail_out = room;
      const int result = deflate(&stream_, flush);
      RQ_CHECK(result == Z_OK || result == Z_BUF_ERROR);  // the latter: there was nothing to do
      end += room - stream_.avail_out;
    } while (stream_.avail_out == 0);
  }

  const int level_;
  bool begun_ = false;
  z_stream stream_{};
};

class DeflateDecoder final : public Decoder {
 public:
  DeflateDecoder() { RQ_CHECK(inflateInit2(&stream_, -kWindowBitsReceived) == Z_OK); }
  ~DeflateDecoder() override { inflateEnd(&stream_); }

  Step decode(ConstBuf in, MutBuf out) override {
    RQ_CHECK(!out.empty());
    constexpr std::size_t kMost = std::numeric_limits<uInt>::max();
    const auto in_bytes = static_cast<uInt>(std::min(in.size(), kMost));
    const auto out_bytes = static_cast<uInt>(std::min(out.size(), kMost));
    stream_.next_in = input_of(in);
    stream_.avail_in = in_bytes;
    stream_.next_out = reinterpret_cast<Bytef*>(out.data());
    stream_.avail_out = out_bytes;
    // The stream lives as long as the connection: its end is an error like any other.
    const int result = inflate(&stream_, Z_SYNC_FLUSH);
    Step step;
    step.used = in_bytes - stream_.avail_in;
    step.made = out_bytes - stream_.avail_out;
    step.failed = result != Z_OK && result != Z_BUF_ERROR;
    return step;
  }

 private:
  z_stream stream_{};
};

}  // namespace

std::unique_ptr<Encoder> deflate_encoder(int level) { return std::make_unique<DeflateEncoder>(level); }
std::unique_ptr<Decoder> deflate_decoder() { return std::make_unique<DeflateDecoder>(); }

}  // namespace rq::codec
