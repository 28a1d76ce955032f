// Snappy's framing format (page 10 section 3.4). A stream is a row of chunks:
//
//   offset 0   uint8    type: 00 compressed, 01 uncompressed, 80..fe skipped, ff stream identifier
//   offset 1   uint24   length of what follows, little-endian
//   offset 4   uint32   data chunks: masked CRC-32C of the uncompressed bytes, little-endian
//   offset 8            data chunks: at most 65,536 bytes uncompressed
//
// The identifier stands first and may come again at any time. Types 02..7f end the stream.
#include <snappy.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "core/base/check.h"
#include "core/base/crc32c.h"
#include "core/codec/codec.h"

namespace rq::codec {
namespace {

constexpr std::size_t kChunkBytesMax = 65'536;        // uncompressed, by the format
constexpr std::size_t kCompressedBytesMax = 76'490;   // snappy::MaxCompressedLength(kChunkBytesMax)
constexpr std::size_t kOutputChunkBytes = 16 * 1024;  // what we send: pynsq reads in pieces of that size
constexpr std::size_t kCompressibleBytesMin = 16;     // Snappy itself makes one literal of less
constexpr std::size_t kHeadBytes = 4, kSumBytes = 4;
constexpr std::string_view kIdentifier("\xff\x06\x00\x00sNaPpY", 10);
constexpr std::uint8_t kCompressed = 0x00, kUncompressed = 0x01, kSkippedFirst = 0x80, kStreamIdentifier = 0xff;

std::uint32_t masked_sum(ConstBuf bytes) {
  const std::uint32_t sum = crc32c(bytes);
  return ((sum >> 15) | (sum << 17)) + 0xa282ead8u;
}

void store_little(char* at, std::uint32_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) at[i] = static_cast<char>(value >> (8 * i) & 0xff);
}
std::uint32_t load_little(const std::byte* at, int bytes) {
  std::uint32_t value = 0;
  for (int i = 0; i < bytes; ++i) value |= std::to_integer<std::uint32_t>(at[i]) << (8 * i);
  return value;
}
const char* chars(const std::byte* at) { return reinterpret_cast<const char*>(at); }

class SnappyEncoder final : public Encoder {
 public:
  void encode(std::span<const ConstBuf> pieces, std::string& out) override {
    if (!begun_) out.append(kIdentifier);
    begun_ = true;
    std::string gathered;
    for (ConstBuf piece : pieces) {
      while (!piece.empty()) {
        if (gathered.empty() && piece.size() >= kOutputChunkBytes) {
          put_chunk(piece.first(kOutputChunkBytes), out);
          piece = piece.subspan(kOutputChunkBytes);
          continue;
        }
        const std::size_t part = std::min(piece.size(), kOutputChunkBytes - gathered.size());
        put_bytes(gathered, piece.first(part));
        piece = piece.subspan(part);
        if (gathered.size() < kOutputChunkBytes) continue;
        put_chunk(bytes_of(gathered), out);
        gathered.clear();
      }
    }
    if (!gathered.empty()) put_chunk(bytes_of(gathered), out);
  }

 private:
  // Bytes that do not shrink by an eighth go as they are; of so few that they cannot, compression is not tried.
  static void put_chunk(ConstBuf bytes, std::string& out) {
    const std::size_t head = out.size(), data = head + kHeadBytes + kSumBytes;
    out.resize(data + snappy::MaxCompressedLength(bytes.size()));
    std::size_t length = bytes.size();
    if (length >= kCompressibleBytesMin) snappy::RawCompress(chars(bytes.data()), bytes.size(), out.data() + data, &length);
    const bool shrinks = length < bytes.size() - bytes.size() / 8;
    if (!shrinks) {
      length = bytes.size();
      std::memcpy(out.data() + data, bytes.data(), length);
    }
    out.resize(data + length);
    store_little(out.data() + head, shrinks ? kCompressed : kUncompressed, 1);
    store_little(out.data() + head + 1, static_cast<std::uint32_t>(kSumBytes + length), 3);
    store_little(out.data() + head + kHeadBytes, masked_sum(bytes), 4);
  }

  bool begun_ = false;
};

class SnappyDecoder final : public Decoder {
 public:
  Step decode(ConstBuf in, MutBuf out) override {
    RQ_CHECK(!out.empty());
    Step step;
    for (;;) {
      if (ready_at_ < ready_.size()) {
        const std::size_t part = std::min(ready_.size() - ready_at_, out.size() - step.made);
        std::memcpy(out.data() + step.made, ready_.data() + ready_at_, part);
        ready_at_ += part;
        step.made += part;
        if (ready_at_ < ready_.size()) return step;
        release(ready_);
        ready_at_ = 0;
      }
      if (step.made == out.size() || step.used == in.size()) return step;
      if (!take(in, step, out)) {
        step.failed = true;
        return step;
      }
    }
  }
  bool midway() const override { return head_filled_ > 0; }

 private:
  // Takes some input; false when it is not Snappy.
  bool take(ConstBuf in, Step& step, MutBuf out) {
    const ConstBuf rest = in.subspan(step.used);
    if (head_filled_ < kHeadBytes) {
      const std::size_t part = std::min(kHeadBytes - head_filled_, rest.size());
      std::memcpy(head_.data() + head_filled_, rest.data(), part);
      head_filled_ += part;
      step.used += part;
      return head_filled_ < kHeadBytes || begin_chunk();
    }
    const std::size_t part = std::min(left_, rest.size());
    step.used += part;
    left_ -= part;
    if (type_ == kStreamIdentifier || type_ <= kUncompressed) {
      if (left_ == 0 && body_.empty()) return end_chunk(rest.first(part), step, out);  // all of it in one piece
      put_bytes(body_, rest.first(part));
    }
    if (left_ > 0) return true;
    const bool good =
        type_ >= kSkippedFirst && type_ != kStreamIdentifier ? end_skipped() : end_chunk(bytes_of(body_), step, out);
    release(body_);
    return good;
  }

  // The head of a chunk is there: what it announces is checked before any of it is kept.
  bool begin_chunk() {
    type_ = std::to_integer<std::uint8_t>(head_[0]);
    left_ = load_little(head_.data() + 1, 3);
    if (type_ == kStreamIdentifier) return left_ == kIdentifier.size() - kHeadBytes;
    if (!identified_) return false;
    if (type_ == kCompressed) return left_ > kSumBytes && left_ <= kSumBytes + kCompressedBytesMax;
    if (type_ == kUncompressed) return left_ >= kSumBytes && left_ <= kSumBytes + kChunkBytesMax;
    if (type_ < kSkippedFirst) return false;
    if (left_ == 0) end_skipped();
    return true;
  }

  bool end_skipped() {
    head_filled_ = 0;
    return true;
  }

  bool end_chunk(ConstBuf body, Step& step, MutBuf out) {
    head_filled_ = 0;
    if (type_ == kStreamIdentifier) {
      identified_ = true;
      return text_of(body) == kIdentifier.substr(kHeadBytes);
    }
    const std::uint32_t sum = load_little(body.data(), 4);
    const ConstBuf data = body.subspan(kSumBytes);
    std::size_t length = data.size();
    if (type_ == kCompressed) {
      if (!snappy::GetUncompressedLength(chars(data.data()), data.size(), &length)) return false;
      if (length > kChunkBytesMax) return false;
    }
    // Straight to its place when it fits there, otherwise by way of ready_.
    const bool fits = length <= out.size() - step.made;
    if (!fits) ready_.resize(length);
    char* to = fits ? reinterpret_cast<char*>(out.data() + step.made) : ready_.data();
    if (type_ == kUncompressed) {
      std::memcpy(to, data.data(), length);
    } else if (!snappy::RawUncompress(chars(data.data()), data.size(), to)) {
      return false;
    }
    if (masked_sum(bytes_of({to, length})) != sum) return false;
    if (fits) step.made += length;
    return true;
  }

  static void release(std::string& buffer) {
    buffer.clear();
    if (buffer.capacity() > 4'096) buffer = std::string();
  }

  std::array<std::byte, kHeadBytes> head_{};
  std::size_t head_filled_ = 0;
  std::uint8_t type_ = 0;
  std::size_t left_ = 0;  // of the chunk's body
  bool identified_ = false;
  std::string body_;   // of a chunk that comes in pieces
  std::string ready_;  // decoded and not handed out
  std::size_t ready_at_ = 0;
};

}  // namespace

std::unique_ptr<Encoder> snappy_encoder() { return std::make_unique<SnappyEncoder>(); }
std::unique_ptr<Decoder> snappy_decoder() { return std::make_unique<SnappyDecoder>(); }

}  // namespace rq::codec
