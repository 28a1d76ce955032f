// Live feeds whose reader does not read.
#include <gtest/gtest.h>

#include "core/broker/live_feeds.h"
#include "sim/harness.h"
#include "tests/sim/probe_scenarios.h"

namespace rq::sim::scenarios {

void live_feeds() {
  BrokerHarness h(230, [](broker::Config& config) {
    config.websocket.enabled = true;
    config.queue.max_message_bytes = 1 << 20;
    config.websocket.frame_inflight_bytes = (1 << 20) + 24;  // of one message
    config.limits.tcp_command_timeout_ms = 3'000;
  });
  ASSERT_TRUE(h.start());
  const auto configure = [&](std::uint64_t ttl_seconds) {
    h.broker().engine().configure("t", {true, ttl_seconds}, true, queue::WaiterId::none, h.process().turn().now());
    h.process().poke();
    h.run_for(500);
  };
  const auto stuck = [&]() -> Client& {
    Client& client = h.client();
    EXPECT_TRUE(client.connect(h.http_address(), ""));
    client.send(
        "GET /v1/ws/topics/t HTTP/1.1\r\nHost: b\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: k\r\n"
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: rustqueue.live.v1\r\n\r\n");
    EXPECT_TRUE(h.run_until([&] { return client.raw().find("\"ready\"") != std::string::npos; }));
    client.stop_reading(true);
    return client;
  };
  configure(3'600);
  stuck();
  stuck();
  ASSERT_EQ(h.publish("t", std::string(1 << 20, 'x')), "OK");
  h.run_for(2'000);
  EXPECT_EQ(h.broker().counters().websocket_capacity_rejections, 1u);
  h.run_for(3'000);
  EXPECT_EQ(h.broker().counters().websocket_slow_disconnects, 1u);
  EXPECT_EQ(h.broker().live_feeds().size(), 0u);
  configure(1);
  stuck();
  ASSERT_EQ(h.publish("t", std::string(1 << 20, 'x')), "OK");
  h.run_for(2'000);
  EXPECT_EQ(h.broker().live_feeds().size(), 0u);
  EXPECT_EQ(h.broker().counters().websocket_slow_disconnects, 1u);
  h.broker().check_invariants();
  stuck().stop_reading(false);
  h.process().stand_still(2 * static_cast<std::int64_t>(h.broker().config().limits.heartbeat_interval_ms) * kMillisecond);
  h.run_for(2 * static_cast<std::int64_t>(h.broker().config().limits.heartbeat_interval_ms) + 1'000);
  EXPECT_EQ(h.broker().live_feeds().size(), 1u);
}

}  // namespace rq::sim::scenarios
