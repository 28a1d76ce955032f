#include "core/nsq/frames.h"

#include <gtest/gtest.h>

namespace rq::nsq {
namespace {

TEST(Frames, FixedFramesAreByteExact) {
  std::string out;
  put_frame(out, FrameType::response, kOk);
  EXPECT_EQ(out, std::string("\0\0\0\x06\0\0\0\0OK", 10));
  out.clear();
  put_frame(out, FrameType::response, kHeartbeat);
  EXPECT_EQ(out, std::string("\0\0\0\x0f\0\0\0\0_heartbeat_", 19));
  out.clear();
  put_frame(out, FrameType::error, "E_BAD_PROTOCOL");
  EXPECT_EQ(out, std::string("\0\0\0\x12\0\0\0\x01"
                             "E_BAD_PROTOCOL",
                             22));
}

TEST(Frames, AMessageHeaderHoldsSizeTypeTimestampAttemptsAndId) {
  std::string out;
  put_message_header(out, 0x0102030405060708, 0x090a, 0x0001000000100001, 5);
  const std::string wanted(
      "\0\0\0\x23\0\0\0\x02\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a"
      "0001000000100001",
      34);
  EXPECT_EQ(out, wanted);
}

TEST(Frames, OnlySixteenLowerCaseHexDigitsAreAnId) {
  EXPECT_EQ(parse_message_id("0001000000000002"), 0x0001000000000002u);
  EXPECT_FALSE(parse_message_id("zzzz%%%%6789abcd"));
  EXPECT_FALSE(parse_message_id("000100000000000A"));
  EXPECT_FALSE(parse_message_id("00010000000000021"));
}

}  // namespace
}  // namespace rq::nsq
