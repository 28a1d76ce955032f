// /v1/observe/head and /v1/observe: who may read them, and every key of page 31 section 5.7.
#include "tests/broker/http_test_support.h"

namespace rq::sim {
namespace {

using Keys = std::vector<std::string>;
using Headers = std::vector<std::pair<std::string, std::string>>;

Keys keys_of(const boost::json::value& value) {
  Keys keys;
  for (const auto& pair : value.as_object()) keys.emplace_back(pair.key());
  return keys;
}

const Keys kHead = {"schema_version", "registry_revision", "collected_at_ms", "node",  "readiness",
                    "disk",           "runtime",           "delivery_budget", "limits"};
const Keys kRuntime = {"tcp_connections",
                       "websocket_connections",
                       "websocket_messages",
                       "websocket_bytes",
                       "websocket_auth_failures",
                       "websocket_capacity_rejections",
                       "websocket_slow_disconnects",
                       "websocket_non_ttl_rejections",
                       "publish_messages",
                       "publish_bytes",
                       "publish_inflight_bytes",
                       "publish_throttled_requests",
                       "publish_throttled_bytes",
                       "delivered_messages",
                       "fetch_requests",
                       "fetch_empty",
                       "fetch_batches",
                       "fetch_messages",
                       "fetch_bytes",
                       "finished_messages",
                       "requeued_messages",
                       "dead_letter_messages",
                       "retention_expired_messages",
                       "protocol_errors",
                       "auth_failures",
                       "storage_errors",
                       "disk_total_bytes",
                       "disk_available_bytes",
                       "disk_used_percent",
                       "disk_pressure",
                       "protective_evictions",
                       "protective_evicted_messages"};
const Keys kLatency = {"fsync",
                       "group_commit_wait",
                       "publish_topic_lock_wait",
                       "publish_topic_lock_hold",
                       "publish_ack",
                       "delivery_topic_lock_wait",
                       "delivery_topic_lock_hold",
                       "channel_fsync",
                       "channel_group_commit_wait",
                       "channel_ack",
                       "payload_read",
                       "scrub",
                       "gc"};
const Keys kCommitters = {"commits", "requests", "max_batch_requests", "active_workers", "retired_workers", "rejected_workers"};

TEST(HttpObserve, TheHeadHasItsKeys) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  h.publish("t", "hello");
  const boost::json::value head = json_of(h.http("GET", "/v1/observe/head"));
  EXPECT_EQ(keys_of(head), kHead);
  EXPECT_EQ(head.at("schema_version").as_int64(), 1);
  const boost::json::value registry = json_of(h.http("GET", "/v1/registry/head"));
  EXPECT_EQ(head.at("registry_revision"), registry.at("revision"));
  EXPECT_EQ(keys_of(head.at("node")), (Keys{"id", "address", "version", "data_format", "compatibility"}));
  EXPECT_EQ(keys_of(head.at("node").at("compatibility")), (Keys{"binary", "storage"}));
  EXPECT_EQ(keys_of(head.at("readiness")), (Keys{"process_ready", "storage_healthy", "disk_ready", "publish_ready",
                                                 "consume_ready", "draining", "management_fences_ready"}));
  EXPECT_EQ(keys_of(head.at("disk")),
            (Keys{"total_bytes", "available_bytes", "used_percent", "pressure", "high_watermark_percent", "low_watermark_percent",
                  "min_free_bytes", "protective_eviction_enabled"}));
  EXPECT_EQ(keys_of(head.at("runtime")), kRuntime);
  for (const auto& row : head.at("runtime").as_object()) EXPECT_TRUE(row.value().is_int64()) << row.key();
  EXPECT_EQ(head.at("runtime").at("publish_bytes").as_int64(), 5);
  EXPECT_EQ(keys_of(head.at("delivery_budget")), (Keys{"in_flight_bytes", "in_flight_messages", "waiters", "waits_total"}));
  EXPECT_EQ(keys_of(head.at("limits")),
            (Keys{"max_message_bytes", "publish_ack_mode", "relaxed_sync_messages", "relaxed_sync_bytes",
                  "relaxed_sync_interval_ms", "message_index_cache_bytes", "max_connections"}));
  EXPECT_EQ(head.at("limits").at("publish_ack_mode").as_string(), "durable");
}

TEST(HttpObserve, TheWholeFormAddsTheQueues) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  h.http("POST", "/topic/create?topic=t");
  h.http("POST", "/channel/create?topic=t&channel=c");
  h.publish("t", "hello");
  const boost::json::value whole = json_of(h.http("GET", "/v1/observe"));
  Keys wanted = kHead;
  for (const char* more : {"storage", "catalog_collected_at_ms", "queue"}) wanted.emplace_back(more);
  EXPECT_EQ(keys_of(whole), wanted);
  EXPECT_EQ(keys_of(whole.at("storage")), (Keys{"segment_count", "segment_bytes"}));
  const boost::json::value& queue = whole.at("queue");
  EXPECT_EQ(keys_of(queue), (Keys{"publish_group_commit", "channel_group_commit", "latency", "delivery_budget", "aggregate",
                                  "ttl_discarded_messages", "topics"}));
  EXPECT_EQ(keys_of(queue.at("publish_group_commit")), kCommitters);
  EXPECT_EQ(keys_of(queue.at("channel_group_commit")), kCommitters);
  EXPECT_EQ(keys_of(queue.at("latency")), kLatency);
  for (const std::string& name : kLatency) {
    const boost::json::value& histogram = queue.at("latency").at(name);
    EXPECT_EQ(keys_of(histogram), (Keys{"buckets", "count", "sum_us"}));
    std::int64_t sum = 0;
    for (const auto& count : histogram.at("buckets").as_array()) sum += count.as_int64();
    EXPECT_EQ(histogram.at("buckets").as_array().size(), 17u) << name;
    EXPECT_EQ(histogram.at("count").as_int64(), sum) << name;
  }
  EXPECT_EQ(queue.at("latency").at("publish_ack").at("count").as_int64(), 1);
  EXPECT_EQ(keys_of(queue.at("aggregate")),
            (Keys{"topic_count", "message_count", "segment_count", "segment_bytes", "unsynced_messages", "unsynced_bytes",
                  "sync_lag_ms", "channel_count", "channel_depth", "channel_in_flight", "channel_deferred", "channel_ack_gap"}));
  EXPECT_EQ(queue.at("aggregate").at("channel_depth").as_int64(), 1);
  EXPECT_EQ(queue.at("topics"), json_of(h.http("GET", "/v1/stats")).at("topics"));
}

TEST(HttpObserve, B_69_NoByteOfABodyIsShown) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  h.http("POST", "/topic/create?topic=t");
  h.http("POST", "/channel/create?topic=t&channel=c");
  for (int i = 0; i < 50; ++i) ASSERT_EQ(h.publish("t", "MARKER-MARKER-MARKER"), "OK");
  for (const char* route : {"/v1/observe", "/v1/observe/head"}) {
    const HttpReply reply = h.http("GET", route);
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(reply.body.find("MARKER"), std::string::npos);
  }
}

TEST(HttpObserve, ReadinessFollowsTheDrain) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  h.http("POST", "/v1/drain", R"({"freeze_deliveries":true})", {{"Content-Type", "application/json"}});
  const boost::json::value readiness = json_of(h.http("GET", "/v1/observe/head")).at("readiness");
  for (const char* yes : {"process_ready", "storage_healthy", "disk_ready", "draining", "management_fences_ready"})
    EXPECT_TRUE(readiness.at(yes).as_bool()) << yes;
  for (const char* no : {"publish_ready", "consume_ready"}) EXPECT_FALSE(readiness.at(no).as_bool()) << no;
}

TEST(HttpObserve, OnlyTheConsoleTokenOpensIt) {
  BrokerHarness h(1, [](broker::Config& config) {
    config.security.admin_token_file = "tokens/admin";
    config.security.registry_token_file = "tokens/registry";
    config.security.console_token_file = "tokens/console";
  });
  for (const char* name : {"admin", "registry", "console"}) h.disk().put(std::string("tokens/") + name, name);
  ASSERT_TRUE(h.start());
  for (const char* route : {"/v1/observe", "/v1/observe/head"}) {
    EXPECT_EQ(result_of(h.http("GET", route)), "401 E_UNAUTHORIZED");
    for (const std::string name : {"admin", "registry", "console"})
      EXPECT_EQ(h.http("GET", route, "", Headers{{"Authorization", "Bearer " + name}}).status, name == "console" ? 200 : 401)
          << route << name;
  }
}

TEST(HttpObserve, WithIsolatedStorageHeadsAnswerAndTheOthersSayIt) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  h.publish("t", "x");
  // Connected before, since a Broker with a fault lives for a moment only.
  struct Row {
    const char* target;
    int status;
  };
  const Row rows[] = {{"/v1/observe", 503},      {"/v1/observe/head", 200}, {"/v1/registry", 503}, {"/v1/registry/head", 200},
                      {"/v1/capabilities", 200}, {"/v1/drain", 503},        {"/stats", 503},       {"/metrics", 503},
                      {"/v1/stats", 503},        {"/v1/health", 503},       {"/info", 200},        {"/ping", 200}};
  std::vector<Client*> clients;
  for (std::size_t i = 0; i < std::size(rows); ++i) {
    clients.push_back(&h.client());
    ASSERT_TRUE(clients.back()->connect(h.http_address(), ""));
  }
  h.disk().faults.write_io_error = 1'024;
  Client& publisher = h.connect();
  publisher.pub("t", "y");
  ASSERT_TRUE(h.run_until([&] { return h.running() && h.broker().engine().fault() != nullptr; }));
  for (std::size_t i = 0; i < std::size(rows); ++i) clients[i]->send(http_request("GET", rows[i].target, "", {}));
  h.run_until([&] { return !h.running(); });
  for (std::size_t i = 0; i < std::size(rows); ++i) {
    const auto reply = parse_reply(clients[i]->raw(), true);
    ASSERT_TRUE(reply.has_value()) << rows[i].target;
    EXPECT_EQ(reply->status, rows[i].status) << rows[i].target;
    if (rows[i].target != std::string("/v1/observe/head")) continue;
    EXPECT_FALSE(json_of(*reply).at("readiness").at("storage_healthy").as_bool());
  }
}

}  // namespace
}  // namespace rq::sim
