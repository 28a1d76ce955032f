// POST /v1/storage/scrub (page 31 section 5.8).
#include "tests/broker/http_test_support.h"

namespace rq::sim {
namespace {

void small_segments(broker::Config& config) {
  config.queue.max_message_bytes = 600;
  config.limits.max_body_bytes = 600;
  config.storage.max_segment_bytes = 1'000;
}

TEST(HttpScrub, AnswersWithTheNumberOfRecordsWhenDone) {
  BrokerHarness h(1, small_segments);
  ASSERT_TRUE(h.start());
  for (int i = 0; i < 9; ++i) ASSERT_EQ(h.http("POST", "/pub?topic=t", std::string(400, 'x')).status, 200);
  const HttpReply reply = h.http("POST", "/v1/storage/scrub");
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.body, R"({"status":"ok","records_checked":8})");
  EXPECT_NE(h.http("GET", "/metrics").body.find("rustqueue_storage_scrub_duration_seconds_count 1"), std::string::npos);
  EXPECT_EQ(h.http("GET", "/v1/storage/scrub").status, 405);
}

TEST(HttpScrub, DamageIsAnsweredWith503AndTheBrokerEnds) {
  BrokerHarness h(2, small_segments);
  ASSERT_TRUE(h.start());
  for (int i = 0; i < 9; ++i) ASSERT_EQ(h.http("POST", "/pub?topic=t", std::string(400, 'x')).status, 200);
  ASSERT_TRUE(h.disk().rot("data/topics/74/segments/segment-00000000000000000001.rqlog", 200));
  EXPECT_EQ(result_of(h.http("POST", "/v1/storage/scrub")), "503 E_STORAGE");
  ASSERT_TRUE(h.run_until([&] { return !h.running(); }));
  EXPECT_EQ(h.last_exit(), broker::Broker::Exit::failed);
  EXPECT_NE(h.last_exit_reason().find("segment-00000000000000000001.rqlog at offset"), std::string::npos) << h.last_exit_reason();
}

}  // namespace
}  // namespace rq::sim
