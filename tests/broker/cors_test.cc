// /lookup read by a page of another origin (page 31 section 6.8).
#include "core/broker/cors.h"

#include "tests/broker/http_test_support.h"

namespace rq::sim {
namespace {

using Headers = std::vector<std::pair<std::string, std::string>>;

class Cors : public testing::Test {
 protected:
  Cors() : h(1, [](broker::Config& c) { c.websocket.allowed_origins = {"https://ok.example", "http://other:8080"}; }) {}
  void SetUp() override {
    ASSERT_TRUE(h.start());
    ASSERT_EQ(h.publish("t", "x"), "OK");
  }
  HttpReply ask(const char* method, const std::string& target, const std::string& origin) {
    Headers headers = {{"Accept", "application/vnd.nsq; version=1.0"}};
    if (!origin.empty()) headers.emplace_back("Origin", origin);
    if (std::string(method) == "OPTIONS") headers.emplace_back("Access-Control-Request-Method", "GET");
    return h.http(method, target, "", headers);
  }
  BrokerHarness h;
};

TEST_F(Cors, B_87_AnAllowedOriginMayReadLookupAndOthersMayNot) {
  for (const char* origin : {"https://ok.example", "http://other:8080"}) {
    const HttpReply reply = ask("GET", "/lookup?topic=t", origin);
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(reply.header("access-control-allow-origin"), origin);
    EXPECT_EQ(reply.header("vary"), "Origin");
    const HttpReply preflight = ask("OPTIONS", "/lookup?topic=t", origin);
    EXPECT_EQ(preflight.status, 200);
    EXPECT_EQ(preflight.header("access-control-allow-origin"), origin);
    EXPECT_EQ(preflight.header("access-control-allow-methods"), "GET");
    EXPECT_EQ(preflight.header("access-control-allow-headers"), "Accept");
    EXPECT_EQ(preflight.header("access-control-max-age"), "600");
  }
  for (const char* origin : {"https://OK.example", "https://ok.example:443", "null", ""}) {
    const HttpReply reply = ask("GET", "/lookup?topic=t", origin);
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(reply.header("access-control-allow-origin"), "") << origin;
    EXPECT_EQ(ask("OPTIONS", "/lookup", origin).header("access-control-allow-methods"), "") << origin;
  }
}

TEST_F(Cors, ErrorsOfLookupCarryItAndOtherRoutesDoNot) {
  const HttpReply missing = ask("GET", "/lookup?topic=missing", "https://ok.example");
  EXPECT_EQ(missing.status, 404);
  EXPECT_EQ(missing.header("access-control-allow-origin"), "https://ok.example");
  for (const char* route : {"/topics", "/stats", "/ping", "/lookup/x"})
    EXPECT_EQ(ask("GET", route, "https://ok.example").header("access-control-allow-origin"), "") << route;
}

}  // namespace
}  // namespace rq::sim
