// IDENTIFY over a connection (page 10 section 10, C-13 to C-27).
#include "tests/broker/tcp_support.h"

namespace rq::broker::test {
namespace {

constexpr std::string_view kDefaultReply =
    R"({"max_rdy_count":2500,"version":"1.3.0+rustqueue.)" RQ_VERSION
    R"(","max_msg_timeout":900000,"msg_timeout":60000,"tls_v1":false,"deflate":false,"deflate_level":6,)"
    R"("max_deflate_level":6,"snappy":false,"sample_rate":0,"auth_required":false,"output_buffer_size":16384,)"
    R"("output_buffer_timeout":250})";

class TcpIdentify : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(h.start()); }
  void accepted(std::string_view json) {
    SCOPED_TRACE(std::string(json));
    Client& client = h.connect();
    client.identify(json);
    EXPECT_RESPONSE(client, "OK");
    EXPECT_USABLE(client);
  }
  void refused(std::string_view json, std::string_view text) { expect_fatal(h, identify(json), text); }
  // The reply to a negotiating IDENTIFY with that field.
  std::string reply(std::string_view fields) {
    Client& client = h.connect();
    client.identify("{\"feature_negotiation\":true," + std::string(fields) + "}");
    return client.answer().payload;
  }
  BrokerHarness h;
};

TEST_F(TcpIdentify, C_13_AnObjectOrNullIsAnsweredWithOkAndAnArrayIsRefused) {
  accepted("{}");
  accepted("null");
  refused("[]", "E_BAD_BODY IDENTIFY failed to decode JSON body");
}

TEST_F(TcpIdentify, C_14_NegotiationAnswersWithEveryKeyInOrder) {
  Client& client = h.connect();
  client.identify(R"({"feature_negotiation":true})");
  EXPECT_RESPONSE(client, kDefaultReply);
  h.run_for(1'000);
  EXPECT_TRUE(client.take_frames().empty());
}

TEST_F(TcpIdentify, C_15_WithoutNegotiationNothingIsUpgraded) {
  accepted(R"({"feature_negotiation":false,"tls_v1":true,"snappy":true})");
}

TEST_F(TcpIdentify, C_16_B_26_HeartbeatIntervalBounds) {
  refused(R"({"heartbeat_interval":999})", "E_BAD_BODY IDENTIFY heartbeat interval (999) is invalid");
  refused(R"({"heartbeat_interval":60001})", "E_BAD_BODY IDENTIFY heartbeat interval (60001) is invalid");
  refused(R"({"heartbeat_interval":-2})", "E_BAD_BODY IDENTIFY heartbeat interval (-2) is invalid");
  for (const char* good : {"1000", "60000", "0", "-1"}) accepted("{\"heartbeat_interval\":" + std::string(good) + "}");
}

TEST_F(TcpIdentify, C_17_OutputBufferBounds) {
  refused(R"({"output_buffer_timeout":24})", "E_BAD_BODY IDENTIFY output buffer timeout (24) is invalid");
  refused(R"({"output_buffer_timeout":30001})", "E_BAD_BODY IDENTIFY output buffer timeout (30001) is invalid");
  for (const char* good : {"25", "30000", "-1", "0"}) accepted("{\"output_buffer_timeout\":" + std::string(good) + "}");
  refused(R"({"output_buffer_size":63})", "E_BAD_BODY IDENTIFY output buffer size (63) is invalid");
  refused(R"({"output_buffer_size":65537})", "E_BAD_BODY IDENTIFY output buffer size (65537) is invalid");
  for (const char* good : {"64", "65536", "-1", "0"}) accepted("{\"output_buffer_size\":" + std::string(good) + "}");
}

TEST_F(TcpIdentify, C_18_AnUnbufferedConnectionShowsSizeOneAndNoTimeout) {
  const std::string text = reply(R"("output_buffer_size":-1)");
  EXPECT_NE(text.find(R"("output_buffer_size":1,"output_buffer_timeout":0})"), std::string::npos) << text;
}

TEST_F(TcpIdentify, C_19_SampleRateBounds) {
  accepted(R"({"sample_rate":99})");
  refused(R"({"sample_rate":100})", "E_BAD_BODY IDENTIFY sample rate (100) is invalid");
}

TEST_F(TcpIdentify, C_20_MessageTimeoutBounds) {
  accepted(R"({"msg_timeout":0})");
  for (const char* bad : {"999", "-1", "900001"}) {
    refused("{\"msg_timeout\":" + std::string(bad) + "}",
            "E_BAD_BODY IDENTIFY msg timeout (" + std::string(bad) + ") is invalid");
  }
  EXPECT_NE(reply(R"("msg_timeout":1000)").find(R"("msg_timeout":1000,"tls_v1")"), std::string::npos);
}

TEST_F(TcpIdentify, C_21_TheHeartbeatErrorIsReportedFirst) {
  refused(R"({"msg_timeout":1,"sample_rate":100,"output_buffer_size":1,"output_buffer_timeout":1,"heartbeat_interval":1})",
          "E_BAD_BODY IDENTIFY heartbeat interval (1) is invalid");
}

TEST_F(TcpIdentify, C_22_TheDeflateLevelIsClamped) {
  EXPECT_NE(reply(R"("deflate":true,"deflate_level":9)").find(R"("deflate_level":6,)"), std::string::npos);
  EXPECT_NE(reply(R"("deflate":true,"deflate_level":0)").find(R"("deflate_level":6,)"), std::string::npos);
  EXPECT_NE(reply(R"("deflate":true,"deflate_level":-1)").find(R"("deflate_level":6,)"), std::string::npos);
  EXPECT_NE(reply(R"("deflate":true,"deflate_level":1)").find(R"("deflate_level":1,)"), std::string::npos);
}

TEST_F(TcpIdentify, C_23_BothCompressionsAreRefused) {
  refused(R"({"feature_negotiation":true,"snappy":true,"deflate":true})",
          "E_IDENTIFY_FAILED cannot enable both deflate and snappy compression");
}

TEST_F(TcpIdentify, C_24_WrongTypesAreDecodeErrorsAndUnknownKeysAreIgnored) {
  refused(R"({"heartbeat_interval":1000.0})", "E_BAD_BODY IDENTIFY failed to decode JSON body");
  refused(R"({"heartbeat_interval":"1000"})", "E_BAD_BODY IDENTIFY failed to decode JSON body");
  accepted(R"({"short_id":1,"long_id":{"a":[1,2]},"x":null,"y":1e300})");
}

TEST_F(TcpIdentify, C_25_BodySizesAreChecked) {
  expect_fatal(h, "IDENTIFY\n" + int32(0), "E_BAD_BODY IDENTIFY invalid body size 0");
  expect_fatal(h, "IDENTIFY\n" + int32(1'048'577), "E_BAD_BODY IDENTIFY body too big 1048577 > 1048576");
  expect_fatal(h, "IDENTIFY\n" + int32(0xffffffff), "E_BAD_BODY IDENTIFY invalid body size -1");
}

TEST_F(TcpIdentify, C_26_IdentifyMayBeRepeatedUntilSub) {
  Client& client = h.connect();
  for (int i = 0; i < 3; ++i) client.identify("{}");
  for (int i = 0; i < 3; ++i) EXPECT_RESPONSE(client, "OK");
  client.sub("t", "c");
  EXPECT_RESPONSE(client, "OK");
  client.identify("{}");
  EXPECT_FATAL(client, "E_INVALID cannot IDENTIFY in current state");
}

TEST_F(TcpIdentify, C_27_TlsWithoutACertificateStaysPlain) {
  Client& client = h.connect();
  client.identify(R"({"feature_negotiation":true,"tls_v1":true})");
  EXPECT_RESPONSE(client, kDefaultReply);
  EXPECT_USABLE(client);
}

TEST_F(TcpIdentify, C_77_AuthIsNotAvailable) {
  expect_fatal(h, "AUTH\n" + int32(1) + "s", "E_AUTH_DISABLED AUTH disabled");
  expect_fatal(h, "AUTH x\n", "E_INVALID AUTH invalid number of parameters");
}

// A client takes the first frame as the answer to its IDENTIFY, however late that is.
TEST(TcpIdentifyLate, NoHeartbeatComesBeforeTheFirstCommand) {
  BrokerHarness h(1, [](Config& c) { c.limits.heartbeat_interval_ms = 1'000; });
  ASSERT_TRUE(h.start());
  Client& client = h.connect();
  client.keep_heartbeats(true);
  h.run_for(4'500);
  EXPECT_TRUE(client.frames().empty());
  client.identify("{}");
  EXPECT_RESPONSE(client, "OK");
  EXPECT_RESPONSE(client, "_heartbeat_");
  Client& silent = h.connect();
  EXPECT_FATAL(silent, "E_INVALID command timed out");
}

}  // namespace
}  // namespace rq::broker::test
