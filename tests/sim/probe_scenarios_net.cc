#include <gtest/gtest.h>

#include "sim/harness.h"
#include "tests/sim/probe_scenarios.h"

namespace rq::sim::scenarios {

// Out of descriptors the Broker waits and accepts later (D-37).
void accept_without_handles() {
  BrokerHarness h(201);
  ASSERT_TRUE(h.start());
  h.world().net().no_handles = 1024;
  Client& client = h.connect();
  client.pub("t", "body");
  h.run_for(500);
  EXPECT_TRUE(client.frames().empty());
  EXPECT_TRUE(h.running());
  h.world().net().no_handles = 0;
  EXPECT_EQ(client.answer().payload, "OK");
}

// A connection whose byte budget is used up is not read further, and goes on later (D-18).
void connection_budget() {
  BrokerHarness h(202, [](broker::Config& c) {
    c.queue.max_message_bytes = c.limits.max_body_bytes = 1 << 20;
    c.limits.connection_publish_inflight_bytes = 10 << 20;
  });
  ASSERT_TRUE(h.start());
  h.disk().faults.latency_ns_min = h.disk().faults.latency_ns_max = 100 * kMillisecond;
  Client& client = h.connect();
  for (int i = 0; i < 30; ++i) client.pub("t", std::string(1 << 20, 'x'));
  ASSERT_TRUE(client.wait_frames(30, 60'000));
  for (const Frame& frame : client.frames()) EXPECT_EQ(frame.payload, "OK");
}

// A body that does not come: heartbeats go on, then the connection ends; one over HTTP is answered with 408.
void stalled_body() {
  BrokerHarness h(203);
  ASSERT_TRUE(h.start());
  Client& client = h.connect();
  std::string half = pub_command("t", "0123456789");
  half.resize(half.size() - 5);
  client.send(half);
  EXPECT_TRUE(client.wait_closed(130'000));
  const std::string reply = h.http_raw("POST /pub?topic=t HTTP/1.1\r\nHost: b\r\nContent-Length: 10\r\n\r\n12345", false, 60'000);
  EXPECT_NE(reply.find(" 408 "), std::string::npos) << reply;
  // A barrier that never seems to end: the answer is owed past the progress limit.
  h.disk().faults.latency_ns_min = h.disk().faults.latency_ns_max = 200 * kSecond;
  Client& waiting = h.connect();
  waiting.pub("t", "slow");
  EXPECT_TRUE(waiting.wait_closed(130'000));
}

// A consumer that stops reading: the output backs up and the write deadline closes it; what it held is offered again.
void reader_that_stopped() {
  BrokerHarness h(204);
  ASSERT_TRUE(h.start());
  for (int i = 0; i < 40; ++i) ASSERT_EQ(h.publish("t", std::string(60'000, 'x')), "OK");
  Client& stopped = h.consumer("t", "c", 100, R"({"heartbeat_interval":1000,"msg_timeout":60000})");
  stopped.stop_reading(true);
  // It goes on sending, so that it is its output that gives it away and not its silence.
  for (int i = 0; i < 20; ++i) {
    stopped.send("NOP\n");
    h.run_for(500);
  }
  h.run_for(10'000);
  EXPECT_EQ(h.broker().tcp_connections(), 1u) << "only the publisher is left";
  Client& other = h.consumer("t", "c", 100);
  EXPECT_TRUE(other.wait_messages(40));
}

void silent_client() {
  BrokerHarness h(205);
  ASSERT_TRUE(h.start());
  Client& client = h.connect();
  client.identify(R"({"heartbeat_interval":1000})");
  client.answer();
  client.answer_heartbeats(false);
  EXPECT_TRUE(client.wait_closed(5'000));
  EXPECT_FALSE(client.frames().size() > 0) << "without a frame";
}

// What a process that stood still did not ask, or did not read, is nobody's silence (D-15).
void broker_that_stood_still() {
  BrokerHarness h(207);
  ASSERT_TRUE(h.start());
  Client& client = h.connect();
  client.identify(R"({"heartbeat_interval":1000})");
  client.answer();
  h.process().stand_still(5 * kSecond);
  h.run_for(10'000);
  EXPECT_FALSE(client.closed());
}

// TOUCH extends up to the maximum message timeout counted from the delivery (D-07).
void touch_to_the_limit() {
  BrokerHarness h(206, [](broker::Config& c) {
    c.queue.message_timeout_ms = 2'000;
    c.queue.max_message_timeout_ms = 5'000;
  });
  ASSERT_TRUE(h.start());
  ASSERT_EQ(h.publish("t", "x"), "OK");
  Client& client = h.consumer("t", "c");
  const auto first = client.message();
  ASSERT_TRUE(first);
  for (int i = 0; i < 6; ++i) {
    h.run_for(900);
    client.touch(first->id);
  }
  const auto again = client.message();
  ASSERT_TRUE(again);
  EXPECT_EQ(again->attempts, 2);
  EXPECT_GE(again->at - first->at, 4'900 * kMillisecond);
  EXPECT_LE(again->at - first->at, 5'600 * kMillisecond);
}

void sampling() {
  BrokerHarness h(207);
  ASSERT_TRUE(h.start());
  Client& client = h.consumer("t", "c", 200, R"({"sample_rate":25})");
  Client& producer = h.connect();
  for (int i = 0; i < 200; ++i) producer.pub("t", std::to_string(i));
  ASSERT_TRUE(producer.wait_frames(200));
  h.run_for(2'000);
  EXPECT_EQ(client.messages().size(), 50u);
}

void http_limits() {
  BrokerHarness h(208, [](broker::Config& c) {
    c.limits.max_http_connections = 2;
    c.queue.max_message_bytes = 1'000;
    c.limits.max_body_bytes = 1'000;
    c.limits.connection_publish_inflight_bytes = c.limits.node_publish_inflight_bytes = 9 << 20;
  });
  ASSERT_TRUE(h.start());
  Client& first = h.client();
  Client& second = h.client();
  ASSERT_TRUE(first.connect(h.http_address(), ""));
  ASSERT_TRUE(second.connect(h.http_address(), ""));
  Client& third = h.client();
  third.connect(h.http_address(), "");
  EXPECT_TRUE(third.wait_closed(1'000));
  second.close();
  h.run_for(100);
  // A body over the limit is refused before it is read; the rest is read and dropped, so that the answer arrives.
  const std::string reply = h.http_raw(
      "POST /pub?topic=t HTTP/1.1\r\nHost: b\r\nConnection: close\r\nContent-Length: 5000\r\n\r\n" + std::string(2'000, 'x'));
  EXPECT_NE(reply.find(" 413 "), std::string::npos) << reply;
  // The budget of the node holds one batch: the second one is throttled while the first waits for its barrier.
  h.disk().faults.latency_ns_min = h.disk().faults.latency_ns_max = 500 * kMillisecond;
  first.send("POST /mpub?topic=t HTTP/1.1\r\nHost: b\r\nContent-Length: 1000\r\n\r\n" + std::string(500, 'y'));
  h.run_for(100);
  ASSERT_GT(h.broker().publish_bytes_in_flight(), 0u);
  const std::uint64_t rest = h.config().limits.node_publish_inflight_bytes - h.broker().publish_bytes_in_flight();
  ASSERT_TRUE(h.broker().reserve_publish_bytes(rest));
  const HttpReply throttled = h.http("POST", "/pub?topic=t", "x");
  EXPECT_EQ(throttled.status, 429) << throttled.body;
  h.broker().release_publish_bytes(rest);
}

void http_bad_requests() {
  BrokerHarness h(209);
  ASSERT_TRUE(h.start());
  EXPECT_NE(h.http_raw("no request at all\r\n\r\n").find(" 400 "), std::string::npos);
  EXPECT_NE(h.http_raw("GET /ping HTTP/1.1\r\nHost: b\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n").find(" 400 "),
            std::string::npos);
  EXPECT_EQ(h.http("GET", "/ping").body, "OK");
}

// Disk pressure throttles publishing only, over TCP without closing (D-13), and ends when space is back.
void publishing_to_a_full_disk() {
  BrokerHarness h(210);
  h.config().storage.disk_high_watermark_percent = 85;
  h.config().storage.disk_low_watermark_percent = 75;
  ASSERT_TRUE(h.start());
  ASSERT_EQ(h.publish("t", std::string(60'000, 'b')), "OK");
  const std::uint64_t plenty = h.disk().capacity;
  h.disk().capacity = h.disk().used() + h.disk().used() / 10;  // 90 %, with room for a Channel and its FINs
  ASSERT_TRUE(h.run_until([&] { return h.broker().disk_pressure(); }, 10'000));
  EXPECT_TRUE(h.publish("t", "refused").starts_with("E_THROTTLED PUB disk pressure"));
  EXPECT_EQ(h.http("POST", "/pub?topic=t", "x").status, 429);
  Client& consumer = h.consumer("t", "c", 10);
  const auto message = consumer.message();
  ASSERT_TRUE(message);
  consumer.fin(message->id);
  h.disk().capacity = plenty;
  ASSERT_TRUE(h.run_until([&] { return !h.broker().disk_pressure(); }, 10'000));
  EXPECT_EQ(h.publish("t", "after"), "OK");
  ASSERT_TRUE(consumer.wait_messages(1));
  EXPECT_EQ(consumer.messages()[0].body, "after");
}

}  // namespace rq::sim::scenarios
