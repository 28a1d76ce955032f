// Cases of page 31 section 10.3 in the form that page 05 gives them: where nsqd has the condition, its status and code.
#include "tests/broker/http_test_support.h"

namespace rq::sim {
namespace {

using Bodies = std::vector<std::string>;

TEST(HttpCases, B_13_AFailedSyncIsAFaultThatEndsTheProcessAndLosesNothingAcknowledged) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  ASSERT_EQ(h.http("POST", "/pub?topic=t", "kept").body, "OK");
  Client& client = h.client();
  ASSERT_TRUE(client.connect(h.http_address(), ""));
  h.disk().faults.sync_fail = 1'024;
  client.send("POST /pub?topic=t HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nxGET /v1/health HTTP/1.1\r\nHost: a\r\n\r\n");
  ASSERT_TRUE(h.run_until([&] { return !h.running(); }));
  EXPECT_NE(client.raw().find("\"reason\":\"storage_fault\""), std::string::npos) << client.raw();
  EXPECT_EQ(h.last_exit(), broker::Broker::Exit::failed);
  h.disk().faults.sync_fail = 0;
  ASSERT_TRUE(h.start());
  const Bodies after = drain(h, "t", "c");
  ASSERT_FALSE(after.empty());
  EXPECT_EQ(after.front(), "kept");
}

TEST(HttpCases, B_43_PublishErrorsHaveNsqdsCodes) {
  BrokerHarness h(1, [](broker::Config& c) { c.queue.max_message_bytes = 100; });
  ASSERT_TRUE(h.start());
  EXPECT_EQ(result_of(h.http("POST", "/pub", "x")), "400 MISSING_ARG_TOPIC");
  EXPECT_EQ(result_of(h.http("POST", "/pub?topic=t")), "400 MSG_EMPTY");
  // Nothing of the body was sent, and the answer is there.
  const std::string raw = h.http_raw("POST /pub?topic=t HTTP/1.1\r\nHost: a\r\nContent-Length: 101\r\n\r\n");
  EXPECT_EQ(result_of(*parse_reply(raw, true)), "413 MSG_TOO_BIG");
}

TEST(HttpCases, B_44_TheLargestDeferIsTheConfiguredOne) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  EXPECT_EQ(result_of(h.http("POST", "/pub?topic=t&defer=3600001", "x")), "400 INVALID_DEFER");
  EXPECT_EQ(h.http("POST", "/pub?topic=t&defer=3600000", "x").body, "OK");
}

TEST(HttpCases, B_46_ABatchOfLinesKeepsCarriageReturnsAndMayBeEmpty) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  EXPECT_EQ(h.http("POST", "/mpub?topic=t", "a\n\nb\r\n").body, "OK");
  EXPECT_EQ(drain(h, "t", "c"), (Bodies{"a", "b\r"}));
  EXPECT_EQ(h.http("POST", "/mpub?topic=t", "\n\n\n").body, "OK");
  EXPECT_EQ(drain(h, "t", "c"), Bodies{});
}

TEST(HttpCases, B_47_BytesBehindABinaryBatchAreIgnored) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  EXPECT_EQ(h.http("POST", "/mpub?topic=t&binary=true", std::string("\0\0\0\1\0\0\0\1a!", 10)).body, "OK");
  EXPECT_EQ(drain(h, "t", "c"), (Bodies{"a"}));
}

// I-05 as nsqd has it (D-30).
TEST(HttpCases, B_48_MissingTopicsAreNotFound) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  EXPECT_EQ(result_of(h.http("POST", "/topic/delete?topic=t")), "404 TOPIC_NOT_FOUND");
  EXPECT_EQ(result_of(h.http("POST", "/topic/pause?topic=t")), "404 TOPIC_NOT_FOUND");
  EXPECT_EQ(result_of(h.http("POST", "/channel/create?topic=t&channel=c")), "404 TOPIC_NOT_FOUND");
  EXPECT_FALSE(h.broker().engine().has_topic("t"));
}

TEST(HttpCases, B_49_StatisticsOfAnUnknownTopicAreAnEmptyList) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  const HttpReply reply = h.http("GET", "/stats?format=json&topic=none");
  EXPECT_EQ(reply.status, 200);
  EXPECT_TRUE(json_of(reply).at("topics").as_array().empty());
}

TEST(HttpCases, B_52_TheNsqHeaderIsAlwaysThere) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  EXPECT_EQ(h.http("GET", "/stats").header("x-nsq-content-type"), "nsq; version=1.0");
  EXPECT_EQ(h.http("GET", "/stats", "", {{"Accept", "application/vnd.nsq; version=1.0"}}).header("x-nsq-content-type"),
            "nsq; version=1.0");
  EXPECT_EQ(h.http("GET", "/none").header("x-nsq-content-type"), "nsq; version=1.0");
}

TEST(HttpCases, B_53_WrongMethodsAndUnknownOptions) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  EXPECT_EQ(result_of(h.http("GET", "/pub")), "405 METHOD_NOT_ALLOWED");
  EXPECT_EQ(result_of(h.http("GET", "/config/x")), "400 INVALID_OPTION");
}

}  // namespace
}  // namespace rq::sim
