#include "core/nsq/identify.h"

#include <gtest/gtest.h>

namespace rq::nsq {
namespace {

bool decodes(std::string_view json) {
  Identify wish;
  return decode_identify(json, wish);
}
Identify decoded(std::string_view json) {
  Identify wish;
  EXPECT_TRUE(decode_identify(json, wish)) << json;
  return wish;
}
std::string refusal(std::string_view json) {
  const IdentifyLimits limits;
  const auto granted = negotiate(decoded(json), defaults(limits), limits);
  return granted ? "" : granted.error();
}

TEST(IdentifyJson, OnlyAnObjectOrNullDecodes) {
  EXPECT_TRUE(decodes("{}"));
  EXPECT_TRUE(decodes("null"));
  EXPECT_TRUE(decodes(" \t\r\n{ } \n"));
  for (const char* bad : {"", " ", "[]", "\"x\"", "1", "true", "{} x", "{}{}", "{", "{\"a\":}", "nul", "{'a':1}", "{\"a\":1,}"}) {
    EXPECT_FALSE(decodes(bad)) << bad;
  }
}

TEST(IdentifyJson, KeysMatchWithoutCaseAndTheLastOneWins) {
  EXPECT_TRUE(decoded(R"({"Feature_NEGOTIATION":true})").feature_negotiation);
  EXPECT_EQ(decoded(R"({"client_id":"a","CLIENT_ID":"b"})").client_id, "b");
  EXPECT_EQ(decoded(R"({"client_id":"a","client_id":"c"})").client_id, "c");
  EXPECT_EQ(decoded("{\"ho\xc5\xbftname\":\"b\"}").hostname, "b") << "U+017F is a small s";
  EXPECT_TRUE(decoded("{\"tl\xc5\xbf_v1\":true}").tls_v1);
  EXPECT_TRUE(decoded("{\"tl\\u017F_v1\":true,\"\xe2\x84\xaa\":1}").tls_v1);
}

TEST(IdentifyJson, NullIsAbsentAndUnknownKeysMayHoldAnything) {
  const Identify wish =
      decoded(R"({"client_id":"a","client_id":null,"x":{"client_id":1,"y":[{},[1.5,"z"]]},"short_id":1e3,"msg_timeout":null})");
  EXPECT_EQ(wish.client_id, "a");
  EXPECT_EQ(wish.msg_timeout, 0);
}

TEST(IdentifyJson, WrongTypesAndNotationsFail) {
  for (const char* bad :
       {R"({"client_id":1})", R"({"heartbeat_interval":"1000"})", R"({"heartbeat_interval":1000.0})",
        R"({"heartbeat_interval":1e3})", R"({"heartbeat_interval":9223372036854775808})", R"({"sample_rate":2147483648})",
        R"({"sample_rate":-2147483649})", R"({"tls_v1":1})", R"({"snappy":"true"})", R"({"client_id":{}})", R"({"client_id":[]})",
        R"({"deflate":[true]})", R"({"client_id":1,"client_id":"x"})"}) {
    EXPECT_FALSE(decodes(bad)) << bad;
  }
}

TEST(IdentifyJson, DepthIsLimited) {
  std::string deep = "{\"x\":";
  deep += std::string(1'000, '[') + std::string(1'000, ']') + "}";
  EXPECT_FALSE(decodes(deep));
}

TEST(IdentifyJson, TextIsKeptValidAndBounded) {
  EXPECT_EQ(decoded("{\"user_agent\":\"a\xff\"}").user_agent, "a\xef\xbf\xbd");
  EXPECT_EQ(decoded("{\"user_agent\":\"" + std::string(5'000, 'x') + "\"}").user_agent.size(), kIdentifyTextBytesMax);
  EXPECT_EQ(decoded(R"({"hostname":"a\u00e9\n"})").hostname, "a\xc3\xa9\n");
  EXPECT_EQ(decoded(R"({"hostname":"\ud83d","user_agent":"\udE00\ud83d\uD83D\uDE00\\ud83d"})").user_agent,
            "\xef\xbf\xbd\xef\xbf\xbd\xf0\x9f\x98\x80\\ud83d")
      << "half a pair is replaced";
  EXPECT_FALSE(decodes(R"({"hostname":"\ud83"})"));
}

TEST(IdentifyLimits, TheFirstFieldOutOfRangeIsNamed) {
  EXPECT_EQ(refusal(R"({"heartbeat_interval":999,"output_buffer_timeout":1,"sample_rate":100})"),
            "E_BAD_BODY IDENTIFY heartbeat interval (999) is invalid");
  EXPECT_EQ(refusal(R"({"output_buffer_timeout":24,"output_buffer_size":1})"),
            "E_BAD_BODY IDENTIFY output buffer timeout (24) is invalid");
  EXPECT_EQ(refusal(R"({"output_buffer_size":63,"sample_rate":100})"), "E_BAD_BODY IDENTIFY output buffer size (63) is invalid");
  EXPECT_EQ(refusal(R"({"sample_rate":-1,"msg_timeout":1})"), "E_BAD_BODY IDENTIFY sample rate (-1) is invalid");
  EXPECT_EQ(refusal(R"({"msg_timeout":-1})"), "E_BAD_BODY IDENTIFY msg timeout (-1) is invalid");
}

TEST(IdentifyReply, TheDefaultIsByteExact) {
  const IdentifyLimits limits;
  const auto granted = negotiate(decoded(R"({"feature_negotiation":true})"), defaults(limits), limits);
  ASSERT_TRUE(granted);
  EXPECT_EQ(identify_reply(*granted, limits),
            R"({"max_rdy_count":2500,"version":"1.3.0+rustqueue.)" RQ_VERSION
            R"(","max_msg_timeout":900000,"msg_timeout":60000,"tls_v1":false,"deflate":false,"deflate_level":6,)"
            R"("max_deflate_level":6,"snappy":false,"sample_rate":0,"auth_required":false,"output_buffer_size":16384,)"
            R"("output_buffer_timeout":250})");
}

}  // namespace
}  // namespace rq::nsq
