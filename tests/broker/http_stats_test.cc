// /stats in both forms, /v1/stats, /v1/health, /metrics.
#include "tests/broker/http_test_support.h"

namespace rq::sim {
namespace {

std::vector<std::string> keys_of(const boost::json::object& object) {
  std::vector<std::string> keys;
  for (const auto& pair : object) keys.emplace_back(pair.key());
  return keys;
}

std::int64_t number(const boost::json::object& object, std::string_view key) { return object.at(key).to_number<std::int64_t>(); }

TEST(HttpStats, C_92_UnknownOrNoTopicsGiveEmptyArrays) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  EXPECT_NE(h.http("GET", "/stats?format=json").body.find("\"topics\":[]"), std::string::npos);
  h.publish("t", "x");
  const std::string missing = h.http("GET", "/stats?format=json&topic=missing").body;
  EXPECT_NE(missing.find("\"topics\":[]"), std::string::npos) << missing;
  EXPECT_NE(h.http("GET", "/stats?format=json&topic=t&channel=none").body.find("\"topics\":[]"), std::string::npos);
}

TEST(HttpStats, C_93_OnlyExactlyJsonIsJsonAndClientsCanBeLeftOut) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  h.consumer("t", "c");
  h.consumer("t", "c");
  const HttpReply text = h.http("GET", "/stats?format=JSON");
  EXPECT_EQ(text.header("content-type"), "text/plain; charset=utf-8");
  EXPECT_TRUE(text.body.starts_with("nsqd v1.3.0"));
  const boost::json::value value = json_of(h.http("GET", "/stats?format=json&include_clients=false"));
  EXPECT_TRUE(first_channel(value).at("clients").as_array().empty());
  EXPECT_EQ(number(first_channel(value), "client_count"), 2);
  EXPECT_TRUE(value.at("producers").as_array().empty());
  const boost::json::value with = json_of(h.http("GET", "/stats?format=json&include_clients=maybe&include_mem=0"));
  EXPECT_EQ(first_channel(with).at("clients").as_array().size(), 2u);
  EXPECT_FALSE(with.as_object().contains("memory"));
}

TEST(HttpStats, EveryStandardFieldIsThereInOrder) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  Client& consumer = h.consumer("t", "c", 5, R"({"client_id":"me","hostname":"host","user_agent":"agent/1"})");
  h.publish("t", "hello");
  ASSERT_TRUE(consumer.wait_messages(1));
  const boost::json::value stats = json_of(h.http("GET", "/stats?format=json"));
  const auto& top = stats.as_object();
  EXPECT_EQ(keys_of(top), (std::vector<std::string>{"version", "health", "start_time", "topics", "memory", "producers"}));
  EXPECT_EQ(top.at("health").as_string(), "OK");
  EXPECT_EQ(
      keys_of(top.at("memory").as_object()),
      (std::vector<std::string>{"heap_objects", "heap_idle_bytes", "heap_in_use_bytes", "heap_released_bytes",
                                "gc_pause_usec_100", "gc_pause_usec_99", "gc_pause_usec_95", "next_gc_bytes", "gc_total_runs"}));
  const auto& topic = first_topic(stats);
  EXPECT_EQ(keys_of(topic),
            (std::vector<std::string>{"topic_name", "channels", "depth", "backend_depth", "message_count", "message_bytes",
                                      "paused", "e2e_processing_latency", "name", "memory_depth"}));
  EXPECT_EQ(number(topic, "message_count"), 1);
  EXPECT_EQ(number(topic, "message_bytes"), 5);
  const auto& channel = first_channel(stats);
  EXPECT_EQ(keys_of(channel),
            (std::vector<std::string>{"channel_name", "depth", "backend_depth", "in_flight_count", "deferred_count",
                                      "message_count", "requeue_count", "timeout_count", "client_count", "clients", "paused",
                                      "e2e_processing_latency", "name", "memory_depth", "blocked_by_ack_window"}));
  EXPECT_EQ(number(channel, "in_flight_count"), 1);
  EXPECT_EQ(number(channel, "depth"), 0);
  const auto& client = channel.at("clients").as_array().at(0).as_object();
  EXPECT_EQ(client.at("client_id").as_string(), "me");
  EXPECT_EQ(client.at("hostname").as_string(), "host");
  EXPECT_EQ(client.at("user_agent").as_string(), "agent/1");
  EXPECT_EQ(client.at("version").as_string(), "V2");
  EXPECT_EQ(number(client, "ready_count"), 5);
  EXPECT_EQ(number(client, "in_flight_count"), 1);
  EXPECT_FALSE(client.at("tls").as_bool());
  EXPECT_EQ(client.at("tls_version").as_string(), "");
  const auto& producers = top.at("producers").as_array();
  ASSERT_EQ(producers.size(), 1u);
  EXPECT_EQ(number(producers.at(0).as_object().at("pub_counts").as_array().at(0).as_object(), "count"), 1);
}

// D-36: what was published since the pause counts in the Topic's depth and in no Channel's.
TEST(HttpStats, APausedTopicHoldsBackWhatItsChannelsDoNotShow) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  h.http("POST", "/topic/create?topic=t");
  h.http("POST", "/channel/create?topic=t&channel=c");
  ASSERT_EQ(h.publish("t", "before"), "OK");
  h.http("POST", "/topic/pause?topic=t");
  ASSERT_EQ(h.publish("t", "since"), "OK");
  ASSERT_EQ(h.publish("t", "since"), "OK");
  const auto shows = [&](std::int64_t topic, std::int64_t channel) {
    const boost::json::value stats = json_of(h.http("GET", "/stats?format=json"));
    EXPECT_EQ(number(first_topic(stats), "depth"), topic);
    EXPECT_EQ(number(first_channel(stats), "depth"), channel);
    EXPECT_EQ(number(first_channel(stats), "message_count"), channel);
    EXPECT_NE(h.http("GET", "/stats").body.find("depth: " + std::to_string(channel)), std::string::npos);
  };
  shows(2, 1);
  h.http("POST", "/topic/unpause?topic=t");
  shows(0, 3);
}

// D-36: a delayed message that a paused Topic holds back is the Topic's, not the Channel's.
TEST(HttpStats, ADelayedMessageOfAPausedTopicIsCountedOnce) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  h.http("POST", "/topic/create?topic=t");
  h.http("POST", "/channel/create?topic=t&channel=c");
  ASSERT_EQ(h.publish("t", "before"), "OK");
  ASSERT_EQ(h.http("POST", "/pub?topic=t&defer=60000", "later").body, "OK");
  h.http("POST", "/topic/pause?topic=t");
  ASSERT_EQ(h.http("POST", "/pub?topic=t&defer=60000", "later still").body, "OK");
  const auto shows = [&](std::int64_t topic, std::int64_t deferred) {
    const boost::json::value stats = json_of(h.http("GET", "/stats?format=json"));
    EXPECT_EQ(number(first_topic(stats), "depth"), topic);
    EXPECT_EQ(number(first_channel(stats), "depth"), 1);
    EXPECT_EQ(number(first_channel(stats), "deferred_count"), deferred);
    EXPECT_NE(h.http("GET", "/stats").body.find("def: " + std::to_string(deferred)), std::string::npos);
  };
  shows(1, 1);
  h.http("POST", "/topic/unpause?topic=t");
  shows(0, 2);
}

TEST(HttpStats, AFilterLeavesOnlyItsTopicOfWhatAProducerPublished) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  Client& producer = h.connect();
  for (const char* topic : {"a", "b"}) producer.pub(topic, "x");
  h.run_for(100);
  h.http("POST", "/topic/create?topic=c");
  EXPECT_NE(h.http("GET", "/stats").body.find("msgs: 2        topics: a=1,b=1"), std::string::npos);
  EXPECT_NE(h.http("GET", "/stats?topic=a").body.find("msgs: 1        topics: a=1 "), std::string::npos);
  EXPECT_NE(h.http("GET", "/stats?topic=c").body.find("state: 0 inflt: 0"), std::string::npos);
}

TEST(HttpStats, ATopicThatIsNotThereHasNoProducers) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  ASSERT_EQ(h.publish("t", "x"), "OK");
  EXPECT_EQ(json_of(h.http("GET", "/stats?format=json&topic=t")).at("producers").as_array().size(), 1u);
  EXPECT_EQ(json_of(h.http("GET", "/stats?format=json&topic=none")).at("producers").as_array().size(), 0u);
}

TEST(HttpStats, EveryTopicAndChannelHasALatencyObject) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  for (const char* topic : {"a", "b"}) h.http("POST", std::string("/topic/create?topic=") + topic);
  h.http("POST", "/channel/create?topic=b&channel=c");
  const boost::json::value stats = json_of(h.http("GET", "/stats?format=json"));
  ASSERT_EQ(stats.at("topics").as_array().size(), 2u);
  for (const auto& topic : stats.at("topics").as_array()) {
    EXPECT_TRUE(topic.at("e2e_processing_latency").is_object());
    for (const auto& channel : topic.at("channels").as_array()) EXPECT_TRUE(channel.at("e2e_processing_latency").is_object());
  }
}

TEST(HttpStats, B_50_DepthIsWithoutFlightAndDeferredInOneFormAndWithThemInTheOther) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  h.http("POST", "/topic/create?topic=t");
  h.http("POST", "/channel/create?topic=t&channel=c");
  Client& consumer = h.consumer("t", "c", 2);
  for (int i = 0; i < 4; ++i) h.publish("t", "now");
  ASSERT_TRUE(consumer.wait_messages(2));
  for (int i = 0; i < 3; ++i) ASSERT_EQ(h.http("POST", "/pub?topic=t&defer=60000", "later").body, "OK");
  const boost::json::value stats = json_of(h.http("GET", "/stats?format=json"));
  EXPECT_EQ(number(first_channel(stats), "depth"), 2);
  EXPECT_EQ(number(first_channel(stats), "in_flight_count"), 2);
  EXPECT_EQ(number(first_channel(stats), "deferred_count"), 3);
  const boost::json::value native = json_of(h.http("GET", "/v1/stats"));
  EXPECT_EQ(number(first_channel(native), "depth"), 7);
}

TEST(HttpStats, NativeStatisticsHaveTheirKeys) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  h.http("POST", "/topic/create?topic=t");
  h.http("POST", "/channel/create?topic=t&channel=c");
  h.publish("t", "x");
  const boost::json::value stats = json_of(h.http("GET", "/v1/stats"));
  EXPECT_EQ(keys_of(stats.as_object()), (std::vector<std::string>{"complete", "node_id", "collected_at_ms", "topics"}));
  EXPECT_TRUE(stats.at("complete").as_bool());
  EXPECT_EQ(
      keys_of(first_topic(stats)),
      (std::vector<std::string>{"name", "paused", "delivery_mode", "message_ttl_seconds", "ttl_discarded_messages",
                                "published_count", "message_count", "segment_count", "segment_bytes", "last_durable_position",
                                "unsynced_messages", "unsynced_bytes", "sync_lag_ms", "channels"}));
  EXPECT_EQ(first_topic(stats).at("delivery_mode").as_string(), "RELIABLE");
  EXPECT_TRUE(first_topic(stats).at("message_ttl_seconds").is_null());
  EXPECT_EQ(number(first_topic(stats), "published_count"), 1);
  EXPECT_EQ(number(first_topic(stats), "last_durable_position"), 1);
  EXPECT_EQ(keys_of(first_channel(stats)),
            (std::vector<std::string>{"name", "depth", "message_count", "in_flight_count", "deferred_count", "requeue_count",
                                      "timeout_count", "paused", "ephemeral", "ack_cursor", "ack_gap"}));
  EXPECT_EQ(number(first_channel(stats), "depth"), 1);
}

TEST(HttpStats, HealthIsReadyWithItsKeys) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  const HttpReply reply = h.http("GET", "/v1/health");
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.body, R"({"status":"ready","node_id":1,"storage":"healthy","mode":"share-nothing","data_format":7})");
}

TEST(HttpStats, TextIsLaidOutInColumns) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  EXPECT_NE(h.http("GET", "/stats?include_mem=false").body.find("\nHealth: OK\n\nTopics: None\n\nProducers: None\n"),
            std::string::npos);
  h.http("POST", "/topic/create?topic=aa");
  h.http("POST", "/channel/create?topic=aa&channel=c1");
  h.http("POST", "/topic/pause?topic=aa");
  h.http("POST", "/channel/pause?topic=aa&channel=c1");
  h.http("POST", "/topic/create?topic=st");
  const std::string text = h.http("GET", "/stats").body;
  EXPECT_NE(text.find("\nMemory:\n   heap_objects             \t0\n"), std::string::npos) << text;
  EXPECT_NE(
      text.find("\nTopics:\n*P [aa             ] depth: 0     be-depth: 0     msgs: 0        e2e%: \n"
                "   *P [c1                       ] depth: 0     be-depth: 0     inflt: 0    def: 0    re-q: 0     timeout: 0  "
                "   msgs: 0        e2e%: \n"
                "\n   [st             ] depth: 0"),
      std::string::npos)
      << text;
}

TEST(HttpStats, MetricsHaveTypesAndTheHistogramsOfTheBroker) {
  BrokerHarness h(1, [](broker::Config& c) { c.metrics.detailed_queue_metrics = true; });
  ASSERT_TRUE(h.start());
  h.http("POST", "/topic/create?topic=t");
  h.http("POST", "/channel/create?topic=t&channel=c");
  h.publish("t", "x");
  const HttpReply reply = h.http("GET", "/metrics");
  EXPECT_EQ(reply.header("content-type"), "text/plain; version=0.0.4");
  for (const char* part :
       {"# TYPE rustqueue_publish_messages_total counter\nrustqueue_publish_messages_total 1\n",
        "# TYPE rustqueue_storage_fsync_duration_seconds histogram\n",
        "rustqueue_storage_fsync_duration_seconds_bucket{le=\"0.0001\"} ",
        "rustqueue_storage_fsync_duration_seconds_bucket{le=\"+Inf\"} ", "rustqueue_disk_pressure 0\n", "rustqueue_topics 1\n",
        "rustqueue_channel_depth_total 1\n", "rustqueue_channel_depth{topic=\"t\",channel=\"c\"} 1\n",
        "rustqueue_detailed_queue_metric_series 10\n"})
    EXPECT_NE(reply.body.find(part), std::string::npos) << part;
}

}  // namespace
}  // namespace rq::sim
