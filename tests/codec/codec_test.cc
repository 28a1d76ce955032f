// The compressions as transforms of byte streams (page 10 section 3.4): what they send, what they refuse, and that the cut of a
// stream into pieces changes nothing.
#include "core/codec/codec.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "core/base/crc32c.h"

namespace rq::codec {
namespace {

struct Codec {
  const char* name;
  std::unique_ptr<Encoder> (*encoder)();
  std::unique_ptr<Decoder> (*decoder)();
};
const Codec kCodecs[] = {
    {"snappy", [] { return snappy_encoder(); }, [] { return snappy_decoder(); }},
    {"deflate1", [] { return deflate_encoder(1); }, [] { return deflate_decoder(); }},
    {"deflate6", [] { return deflate_encoder(6); }, [] { return deflate_decoder(); }},
    {"deflate9", [] { return deflate_encoder(9); }, [] { return deflate_decoder(); }},
};

std::string encoded(Encoder& encoder, std::string_view text) {
  std::string out;
  const ConstBuf piece = bytes_of(text);
  encoder.encode(std::span(&piece, 1), out);
  return out;
}

struct Decoded {
  std::string text;
  bool failed = false;
};
// Hands the bytes over in pieces of `piece` and asks for `room` bytes at a time.
Decoded decoded(Decoder& decoder, std::string_view bytes, std::size_t piece, std::size_t room) {
  Decoded out;
  std::string buffer(room, '\0');
  const auto step = [&](ConstBuf in) {
    const Decoder::Step s = decoder.decode(in, std::as_writable_bytes(std::span(buffer)));
    EXPECT_LE(s.used, in.size());
    EXPECT_LE(s.made, room);
    out.text.append(buffer, 0, s.made);
    out.failed = s.failed;
    return s;
  };
  for (std::size_t at = 0; at < bytes.size() && !out.failed; at += piece) {
    ConstBuf in = bytes_of(bytes.substr(at, piece));
    for (;;) {
      const Decoder::Step s = step(in);
      in = in.subspan(s.used);
      if (s.failed || (in.empty() && s.made < room)) break;
    }
  }
  return out;
}
Decoded decoded(Decoder& decoder, std::string_view bytes) { return decoded(decoder, bytes, bytes.size(), 65'536); }

std::string random_text() {
  // Runs of repeated words between noise, so that both compressible and incompressible chunks occur.
  std::string text;
  const int parts = *rc::gen::inRange(1, 6);
  for (int i = 0; i < parts; ++i) {
    const auto noise = *rc::gen::container<std::string>(rc::gen::arbitrary<char>());
    const int repeats = *rc::gen::element(0, 1, 20, 5'000);
    text += noise;
    for (int k = 0; k < repeats; ++k) text += noise.size() < 200 ? noise + "word " : "w";
  }
  return text + "end";
}

RC_GTEST_PROP(Codecs, AnyCutOfTheStreamDecodesToTheSameBytes, ()) {
  const Codec& codec = *rc::gen::elementOf(std::vector<Codec>(std::begin(kCodecs), std::end(kCodecs)));
  const auto encoder = codec.encoder();
  std::string text, bytes;
  const int writes = *rc::gen::inRange(1, 5);
  for (int i = 0; i < writes; ++i) {
    const std::string part = random_text();
    text += part;
    bytes += encoded(*encoder, part);
  }
  const auto piece = *rc::gen::element<std::size_t>(1, 2, 3, 7, 100, 4'096, 1 << 20);
  const auto room = *rc::gen::element<std::size_t>(1, 5, 1'000, 65'536);
  const auto decoder = codec.decoder();
  const Decoded out = decoded(*decoder, bytes, piece, room);
  RC_ASSERT(!out.failed);
  RC_ASSERT(out.text == text);
}

RC_GTEST_PROP(Codecs, EachFlushIsDecodableByItself, ()) {
  const Codec& codec = *rc::gen::elementOf(std::vector<Codec>(std::begin(kCodecs), std::end(kCodecs)));
  const auto encoder = codec.encoder();
  const auto decoder = codec.decoder();
  for (int i = 0; i < 5; ++i) {
    const std::string part = random_text();
    RC_ASSERT(decoded(*decoder, encoded(*encoder, part)).text == part);
  }
}

RC_GTEST_PROP(Codecs, AnyBytesAreDecodedOrRefusedWithinTheirBounds, ()) {
  const Codec& codec = *rc::gen::elementOf(std::vector<Codec>(std::begin(kCodecs), std::end(kCodecs)));
  std::string bytes = codec.name[0] == 's' ? std::string("\xff\x06\x00\x00sNaPpY", 10) : "";
  bytes += *rc::gen::container<std::string>(rc::gen::arbitrary<char>());
  const auto decoder = codec.decoder();
  decoded(*decoder, bytes, *rc::gen::inRange<std::size_t>(1, 20), 64);
}

constexpr std::string_view kId("\xff\x06\x00\x00sNaPpY", 10);
constexpr std::string_view kOkFrame("\0\0\0\x06\0\0\0\0OK", 10);

// A data chunk of that type around a payload that claims to stand for `plain`.
std::string chunk(char type, std::string_view payload, std::string_view plain) {
  const std::uint32_t sum = crc32c(bytes_of(plain));
  const std::uint32_t masked = ((sum >> 15) | (sum << 17)) + 0xa282ead8u;
  const std::size_t length = payload.size() + 4;
  std::string out(1, type);
  for (int i = 0; i < 3; ++i) out.push_back(static_cast<char>(length >> (8 * i)));
  for (int i = 0; i < 4; ++i) out.push_back(static_cast<char>(masked >> (8 * i)));
  return out + std::string(payload);
}
bool refused(std::string bytes) {
  const auto decoder = snappy_decoder();
  return decoded(*decoder, bytes).failed;
}

TEST(Snappy, TheFirstFrameIsTheIdentifierAndOneUncompressedChunk) {
  const auto encoder = snappy_encoder();
  const std::string bytes = encoded(*encoder, kOkFrame);
  EXPECT_EQ(bytes, std::string(kId) + std::string("\x01\x0e\0\0\x26\x98\x2b\xcf", 8) + std::string(kOkFrame));
  EXPECT_EQ(encoded(*encoder, kOkFrame), bytes.substr(kId.size())) << "the identifier comes once";
}

TEST(Snappy, ChunksHoldAtMost16KiB) {
  const auto encoder = snappy_encoder();
  const std::string bytes = encoded(*encoder, std::string(40'000, 'x'));
  int chunks = 0;
  for (std::size_t at = kId.size(); at < bytes.size(); ++chunks) {
    const auto byte = [&](std::size_t i) { return static_cast<std::size_t>(static_cast<unsigned char>(bytes[at + i])); };
    at += 4 + byte(1) + (byte(2) << 8) + (byte(3) << 16);
  }
  EXPECT_EQ(chunks, 3);
}

TEST(Snappy, C_31_TheIdentifierAndSkippedChunksMayComeAtAnyTime) {
  const std::string padding("\xfe\x03\0\0abc", 7), skippable("\x80\0\0\0", 4);
  const std::string data = chunk('\x01', "NOP\n", "NOP\n");
  const auto decoder = snappy_decoder();
  const Decoded out = decoded(*decoder, std::string(kId) + data + std::string(kId) + padding + data + skippable + data);
  EXPECT_FALSE(out.failed);
  EXPECT_EQ(out.text, "NOP\nNOP\nNOP\n");
}

// The format allows a chunk of nothing, and nsqd takes it.
TEST(Snappy, AnEmptyChunkIsNothingAndNoFault) {
  const std::string plain = chunk('\x01', "", ""), packed = chunk('\x00', std::string("\0", 1), "");
  const auto decoder = snappy_decoder();
  const Decoded out = decoded(*decoder, std::string(kId) + plain + packed + chunk('\x01', "NOP\n", "NOP\n"));
  EXPECT_FALSE(out.failed);
  EXPECT_EQ(out.text, "NOP\n");
  EXPECT_FALSE(decoder->midway());
  EXPECT_TRUE(refused(std::string(kId) + std::string("\x01\x03\0\0abc", 7))) << "no room for a checksum";
}

TEST(Snappy, ADecoderIsMidwayFromTheFirstByteOfAChunkToItsLast) {
  const auto decoder = snappy_decoder();
  EXPECT_FALSE(decoder->midway());
  const std::string bytes = std::string(kId) + chunk('\x01', "NOP\n", "NOP\n");
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    decoded(*decoder, bytes.substr(i, 1));
    EXPECT_EQ(decoder->midway(), i + 1 != kId.size() && i + 1 != bytes.size()) << i;
  }
}

TEST(Snappy, WhatIsNotSnappyIsRefused) {
  EXPECT_TRUE(refused("CLS\nplain text"));
  EXPECT_TRUE(refused(chunk('\x01', "x", "x"))) << "no identifier";
  EXPECT_TRUE(refused(std::string(kId) + chunk('\x01', "x", "y"))) << "checksum";
  EXPECT_TRUE(refused(std::string(kId) + chunk('\x02', "x", "x"))) << "reserved type";
  EXPECT_TRUE(refused(std::string(kId) + chunk('\x7f', "x", "x"))) << "reserved type";
  EXPECT_TRUE(refused(std::string(kId) + chunk('\x01', std::string(65'537, 'x'), std::string(65'537, 'x')))) << "too long";
  EXPECT_TRUE(refused(std::string(kId) + chunk('\x00', "\x81\x80\x04z", "z"))) << "65,537 bytes announced";
  EXPECT_TRUE(refused(std::string("\xff\x06\0\0sNaPpX", 10)));
  EXPECT_FALSE(refused(std::string(kId) + chunk('\x01', std::string(65'536, 'x'), std::string(65'536, 'x'))));
}

TEST(Deflate, EachFlushEndsWithTheSyncMarker) {
  const auto encoder = deflate_encoder(6);
  for (int i = 0; i < 3; ++i) {
    const std::string bytes = encoded(*encoder, kOkFrame);
    ASSERT_GE(bytes.size(), 4u);
    EXPECT_EQ(bytes.substr(bytes.size() - 4), std::string("\0\0\xff\xff", 4));
  }
}

// RFC 1951 section 3.2.4: no compressor, and no memory for one, until there is something to compress.
TEST(Deflate, SmallFramesAreStoredUntilALargerOneComes) {
  const auto encoder = deflate_encoder(6);
  const auto decoder = deflate_decoder();
  const auto round = [&](const std::string& text) {
    const std::string bytes = encoded(*encoder, text);
    EXPECT_EQ(decoded(*decoder, bytes).text, text);
    return bytes;
  };
  const std::string stored = std::string("\0\x0a\0\xf5\xff", 5) + std::string(kOkFrame) + std::string("\0\0\0\xff\xff", 5);
  EXPECT_EQ(round(std::string(kOkFrame)), stored);
  EXPECT_EQ(round(std::string(kOkFrame)), stored);
  EXPECT_EQ(round(std::string(128, 's')).size(), 138u);
  EXPECT_LT(round(std::string(129, 's')).size(), 20u);
  EXPECT_LT(round(std::string(kOkFrame)).size(), stored.size());
}

TEST(Deflate, WhatIsNotDeflateAndTheEndOfTheStreamAreRefused) {
  const auto plain = deflate_decoder();
  EXPECT_TRUE(decoded(*plain, "PUB topic\nplain text").failed);
  const auto ended = deflate_decoder();
  const Decoded out = decoded(*ended, std::string("\x4b\x04\x00", 3) + "more");  // a final block with one letter
  EXPECT_TRUE(out.failed);
  EXPECT_EQ(out.text, "a");
  const auto last = deflate_decoder();  // nothing behind it: refused all the same, however it was cut
  std::string room(8, 'x');
  const Decoder::Step step = last->decode(bytes_of(std::string_view("\x4b\x04\x00", 3)), std::as_writable_bytes(std::span(room)));
  EXPECT_TRUE(step.failed);
  EXPECT_EQ(step.made, 1u);
}

// 10 MB of zeros in 10 KB: each call makes what it has room for, and takes input only as it goes.
TEST(Codecs, ABombIsDecodedOnlyAsFarAsItIsAskedFor) {
  for (const Codec& codec : kCodecs) {
    SCOPED_TRACE(codec.name);
    const std::string bomb = encoded(*codec.encoder(), std::string(10'000'000, '\0'));
    ASSERT_LT(bomb.size(), 600'000u);
    const auto decoder = codec.decoder();
    std::string room(65'536, 'x');
    const Decoder::Step step = decoder->decode(bytes_of(bomb), std::as_writable_bytes(std::span(room)));
    EXPECT_FALSE(step.failed);
    EXPECT_EQ(step.made, room.size());
    EXPECT_LT(step.used, bomb.size());
  }
}

}  // namespace
}  // namespace rq::codec
