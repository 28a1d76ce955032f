// The checks before a live feed (page 31 section 6.1, rows 1 to 7), each by itself: a request that fails one of them and all
// behind it gets the answer of that one.
#include "core/broker/live_handshake.h"
#include "tests/broker/fake_view.h"

namespace rq::broker::test {
namespace {

struct Case {
  http::Request request;
  std::string topic = "t";
};

Case good() {
  Case c;
  c.request.method = "GET";
  c.request.target = "/v1/ws/topics/t";
  c.request.connection = "keep-alive, Upgrade";
  c.request.upgrade = "websocket";
  c.request.websocket_key = "dGhlIHNhbXBsZSBub25jZQ==";
  c.request.websocket_version = "13";
  c.request.websocket_protocols = "rustqueue.live.v1";
  return c;
}

struct Row {
  const char* what;
  void (*spoil)(Case&, FakeView&);
  int status;
  const char* code;  // within the body
};

const Row kRows[] = {
    {"a method that does not read", [](Case& c, FakeView&) { c.request.method = "POST"; }, 405, "GET"},
    {"no upgrade", [](Case& c, FakeView&) { c.request.connection = "keep-alive"; }, 426, "version 13"},
    {"a query", [](Case& c, FakeView&) { c.request.target += "?"; }, 400, "E_WS_QUERY_FORBIDDEN"},
    {"an origin that is not listed", [](Case& c, FakeView&) { c.request.origin = "https://other"; }, 403, "E_WS_ORIGIN"},
    {"another protocol", [](Case& c, FakeView&) { c.request.websocket_protocols = "rustqueue.live.v2"; }, 400,
     "E_WS_SUBPROTOCOL"},
    {"a name that is none", [](Case& c, FakeView&) { c.topic = "a/b"; }, 400, "E_BAD_TOPIC"},
    {"a stop", [](Case&, FakeView& v) { v.stops = true; }, 503, "E_SHUTDOWN"},
};

std::string refused(const Case& c, FakeView& view) {
  const auto refusal = refuse_live_feed(c.request, c.topic, view);
  return refusal ? std::to_string(refusal->status) + " " + refusal->body : "";
}

TEST(LiveRefusal, EachCheckComesBeforeTheNext) {
  FakeView view;
  for (std::size_t first = std::size(kRows); first-- > 0;) {
    Case spoilt = good();
    for (std::size_t row = first; row < std::size(kRows); ++row) kRows[row].spoil(spoilt, view);
    const std::string answer = refused(spoilt, view);
    EXPECT_TRUE(answer.starts_with(std::to_string(kRows[first].status))) << kRows[first].what << ": " << answer;
    EXPECT_NE(answer.find(kRows[first].code), std::string::npos) << kRows[first].what << ": " << answer;
  }
}

TEST(LiveRefusal, TheTopicAndItsPolicyComeLastAndOnlyThatRowCounts) {
  FakeView view;
  EXPECT_TRUE(refused(good(), view).starts_with("404 ")) << "no such Topic";
  ASSERT_TRUE(view.world.publish_and_wait("t", {"x"}) == queue::Code::ok);
  EXPECT_TRUE(refused(good(), view).starts_with("409 ")) << "RELIABLE";
  EXPECT_EQ(view.counted.websocket_non_ttl_rejections, 1u);
  ASSERT_EQ(view.world.configure("live", {true, 60}, true).code, queue::Code::ok);
  Case live = good();
  live.topic = "live";
  EXPECT_EQ(refused(live, view), "");
  for (bool FakeView::*gate : {&FakeView::accepts, &FakeView::delivers}) {
    view.*gate = false;
    EXPECT_TRUE(refused(live, view).starts_with("503 ")) << "a drain";
    view.*gate = true;
  }
  EXPECT_EQ(view.counted.websocket_non_ttl_rejections, 1u);
}

TEST(LiveRefusal, AnOriginIsWantedAsItIsListedAndNoneIsAllowed) {
  FakeView view;
  view.settings.websocket.allowed_origins = {"https://a.example"};
  ASSERT_EQ(view.world.configure("t", {true, 60}, true).code, queue::Code::ok);
  Case c = good();
  EXPECT_EQ(refused(c, view), "");
  c.request.origin = "https://a.example";
  EXPECT_EQ(refused(c, view), "");
  for (const char* other : {"https://A.example", "https://a.example/", "https://a.example, https://a.example", ""}) {
    c.request.origin = other;
    EXPECT_TRUE(refused(c, view).starts_with("403 ")) << other;
  }
}

}  // namespace
}  // namespace rq::broker::test
