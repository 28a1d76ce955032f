// Frames of the live feed's transport, against RFC 6455.
#include "core/ws/frame.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/ws/client_frames.h"

namespace rq::ws {
namespace {

using Kind = Incoming::Kind;

struct Seen {
  std::vector<Incoming> got;
  std::uint16_t failure = 0;
};

Seen parse(std::string_view bytes, std::size_t piece, std::size_t message_bytes_max = 65'536) {
  FrameParser parser(message_bytes_max);
  Seen seen;
  for (std::size_t at = 0; at < bytes.size() && parser.failure() == 0; at += piece) {
    ConstBuf input = bytes_of(bytes.substr(at, piece));
    while (!input.empty() && parser.failure() == 0) {
      input = input.subspan(parser.feed(input));
      if (Incoming incoming = parser.take(); incoming.kind != Kind::none) seen.got.push_back(std::move(incoming));
    }
  }
  seen.failure = parser.failure();
  return seen;
}

void expect_failure(std::string_view bytes, std::uint16_t code) {
  for (const std::size_t piece : {std::size_t{1}, std::size_t{3}, bytes.size()}) EXPECT_EQ(parse(bytes, piece).failure, code);
}

TEST(WsFrame, HeadersHaveTheShortestLength) {
  const auto header = [](std::uint64_t bytes) {
    std::string out;
    put_frame_header(out, Opcode::binary, bytes);
    return out;
  };
  EXPECT_EQ(header(5), std::string("\x82\x05", 2));
  EXPECT_EQ(header(125), std::string("\x82\x7d", 2));
  EXPECT_EQ(header(126), std::string("\x82\x7e\x00\x7e", 4));
  EXPECT_EQ(header(65'535), std::string("\x82\x7e\xff\xff", 4));
  EXPECT_EQ(header(65'536), std::string("\x82\x7f\0\0\0\0\0\x01\0\0", 10));
}

TEST(WsFrame, ACloseHasItsCodeAndAReasonThatFits) {
  std::string out;
  put_close(out, 1008, "E_WS_CONTROL");
  EXPECT_EQ(out, std::string("\x88\x0e\x03\xf0", 4) + "E_WS_CONTROL");
  out.clear();
  put_close(out, 1001, std::string(500, 'x'));
  EXPECT_EQ(out.size(), 2u + kControlBytesMax);
  out.clear();
  put_close(out, 0, "");
  EXPECT_EQ(out, std::string("\x88\0", 2));
}

TEST(WsFrame, TheExampleOfTheRfcIsRead) {
  const Seen seen = parse(std::string("\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58", 11), 100);  // section 5.7
  ASSERT_EQ(seen.got.size(), 1u);
  EXPECT_EQ(seen.got[0].kind, Kind::text);
  EXPECT_EQ(seen.got[0].payload, "Hello");
}

TEST(WsFrame, AFragmentedMessageIsOneAndControlFramesMayStandBetween) {
  const std::string bytes = client_frame(1, "one ", false) + client_frame(9, "are you there") + client_frame(0, "two ", false) +
                            client_frame(10, "") + client_frame(0, "three") + client_frame(8, std::string("\x03\xe8") + "bye");
  for (std::size_t piece = 1; piece < 20; ++piece) {
    const Seen seen = parse(bytes, piece);
    EXPECT_EQ(seen.failure, 0);
    ASSERT_EQ(seen.got.size(), 4u);
    EXPECT_EQ(seen.got[0].payload, "are you there");
    EXPECT_EQ(seen.got[1].kind, Kind::pong);
    EXPECT_EQ(seen.got[2].kind, Kind::text);
    EXPECT_EQ(seen.got[2].payload, "one two three");
    EXPECT_EQ(seen.got[3].close_code, 1000);
    EXPECT_EQ(seen.got[3].payload, "bye");
  }
}

TEST(WsFrame, WhatBreaksTheProtocolIsRefused) {
  expect_failure(std::string("\x81\x05Hello", 7), kCloseProtocol);  // not masked
  expect_failure(client_frame(3, ""), kCloseProtocol);
  expect_failure(client_frame(11, ""), kCloseProtocol);
  expect_failure(client_frame(0, "x"), kCloseProtocol);  // continues nothing
  expect_failure(client_frame(1, "x", false) + client_frame(1, "y"), kCloseProtocol);
  expect_failure(client_frame(9, "x", false), kCloseProtocol);
  expect_failure(client_frame(9, std::string(126, 'x')), kCloseProtocol);
  expect_failure(client_frame(8, "x"), kCloseProtocol);
  expect_failure(client_frame(8, std::string("\x03\xed")), kCloseProtocol);  // 1005 is never sent
  std::string reserved = client_frame(1, "x");
  reserved[0] = static_cast<char>(reserved[0] | 0x40);
  expect_failure(reserved, kCloseProtocol);
}

TEST(WsFrame, AMessageOverTheLimitIsRefusedAtItsHeader) {
  EXPECT_EQ(parse(client_frame(1, std::string(1'000, 'x')), 7, 1'000).failure, 0);
  expect_failure(client_frame(1, std::string(65'537, 'x')).substr(0, 14), kCloseTooBig);
  EXPECT_EQ(parse(client_frame(1, std::string(600, 'x'), false) + client_frame(0, std::string(401, 'x')), 50, 1'000).failure,
            kCloseTooBig);
  expect_failure(std::string("\x82\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x02\x03\x04", 14), kCloseTooBig);
}

RC_GTEST_PROP(WsFrame, WhateverIsSentIsReadHoweverItIsCut, (std::vector<std::string> messages)) {
  std::string bytes;
  for (const std::string& message : messages) {
    const std::size_t cut = *rc::gen::inRange<std::size_t>(0, message.size() + 1);
    bytes += client_frame(2, message.substr(0, cut), false) + client_frame(0, message.substr(cut));
  }
  const Seen seen = parse(bytes, *rc::gen::inRange<std::size_t>(1, 64));
  RC_ASSERT(seen.failure == 0);
  RC_ASSERT(seen.got.size() == messages.size());
  for (std::size_t i = 0; i < messages.size(); ++i) RC_ASSERT(seen.got[i].payload == messages[i]);
}

}  // namespace
}  // namespace rq::ws
