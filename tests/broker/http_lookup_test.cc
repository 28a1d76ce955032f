// /lookup, /topics, /channels and /nodes of a Broker (page 31 section 4.3, page 10 section 7, D-32).
#include "tests/broker/http_test_support.h"

namespace rq::sim {
namespace {

constexpr std::string_view kSelf =
    R"({"remote_address":"127.0.0.1:4150","hostname":"127.0.0.1","broadcast_address":"127.0.0.1","tcp_port":4150,"http_port":4151,)"
    R"("version":")";

class HttpLookup : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(h.start());
    for (const char* target : {"/topic/create?topic=b", "/topic/create?topic=a", "/channel/create?topic=a&channel=two",
                               "/channel/create?topic=a&channel=one"})
      ASSERT_EQ(h.http("POST", target).status, 200) << target;
  }
  std::string body(const std::string& target) {
    const HttpReply reply = h.http("GET", target);
    EXPECT_EQ(reply.status, 200) << target;
    EXPECT_EQ(reply.header("x-nsq-content-type"), "nsq; version=1.0") << target;
    return reply.body;
  }
  BrokerHarness h;
};

TEST_F(HttpLookup, NamesTheBrokerAsTheOneProducerOfItsTopics) {
  const std::string answer = body("/lookup?topic=a");
  EXPECT_TRUE(answer.starts_with(R"({"channels":["one","two"],"producers":[)" + std::string(kSelf))) << answer;
  EXPECT_TRUE(json_of(h.http("GET", "/lookup?topic=a")).at("producers").at(0).at("version").as_string().starts_with("1.3.0+"));
  EXPECT_EQ(body("/topics"), R"({"topics":["a","b"]})");
  EXPECT_EQ(body("/channels?topic=a"), R"({"channels":["one","two"]})");
  EXPECT_EQ(body("/channels?topic=b"), R"({"channels":[]})");
  const std::string nodes = body("/nodes");
  EXPECT_TRUE(nodes.starts_with(R"({"producers":[)" + std::string(kSelf))) << nodes;
  EXPECT_TRUE(nodes.ends_with(R"("tombstones":[false,false],"topics":["a","b"]}]})")) << nodes;
}

TEST_F(HttpLookup, ATopicThatIsNotThereIsNotFound) {
  EXPECT_EQ(h.http("GET", "/lookup?topic=none").body, R"({"message":"TOPIC_NOT_FOUND"})");
  EXPECT_EQ(result_of(h.http("GET", "/lookup?topic=none")), "404 TOPIC_NOT_FOUND");
  EXPECT_EQ(result_of(h.http("GET", "/lookup?topic=a$")), "404 TOPIC_NOT_FOUND");
  EXPECT_EQ(result_of(h.http("GET", "/lookup")), "400 MISSING_ARG_TOPIC");
  EXPECT_EQ(result_of(h.http("GET", "/channels")), "400 MISSING_ARG_TOPIC");
  EXPECT_EQ(result_of(h.http("GET", "/channels?topic=none")), "404 TOPIC_NOT_FOUND");
  EXPECT_EQ(h.http("POST", "/lookup?topic=a").header("allow"), "GET, OPTIONS");
}

TEST_F(HttpLookup, B_51_C_98_ADrainingBrokerNamesChannelsAndNoProducersAndAnswersPing) {
  h.broker().set_drain(true, false);
  EXPECT_EQ(body("/lookup?topic=a"), R"({"channels":["one","two"],"producers":[]})");
  EXPECT_EQ(body("/lookup?topic=b"), R"({"channels":[],"producers":[]})");
  EXPECT_EQ(body("/nodes"), R"({"producers":[]})");
  EXPECT_EQ(h.http("GET", "/ping").body, "OK");
  h.broker().set_drain(false, false);
  EXPECT_NE(body("/lookup?topic=a").find(kSelf), std::string::npos);
}

}  // namespace
}  // namespace rq::sim
