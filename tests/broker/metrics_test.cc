// /metrics against page 31 section 7: every name with its type, buckets, detailed series and their budget, label escaping.
#include "core/broker/metrics.h"

#include <map>
#include <set>
#include <sstream>

#include "core/broker/metrics_text.h"
#include "tests/broker/http_test_support.h"

namespace rq::sim {
namespace {

using Names = std::vector<std::string>;

// Page 31 sections 7.1 to 7.3, names without "rustqueue_".
const Names kHistograms = {
    "storage_fsync_duration_seconds",
    "group_commit_wait_duration_seconds",
    "publish_topic_lock_wait_duration_seconds",
    "publish_topic_lock_hold_duration_seconds",
    "publish_ack_duration_seconds",
    "delivery_topic_lock_wait_duration_seconds",
    "delivery_topic_lock_hold_duration_seconds",
    "channel_fsync_duration_seconds",
    "channel_group_commit_wait_duration_seconds",
    "channel_ack_duration_seconds",
    "payload_read_duration_seconds",
    "storage_scrub_duration_seconds",
    "storage_gc_duration_seconds",
};
const Names kCounters = {
    "websocket_messages_total",
    "websocket_bytes_total",
    "websocket_auth_failures_total",
    "websocket_capacity_rejections_total",
    "websocket_slow_disconnects_total",
    "websocket_non_ttl_rejections_total",
    "publish_messages_total",
    "publish_bytes_total",
    "publish_throttled_requests_total",
    "publish_throttled_bytes_total",
    "delivered_messages_total",
    "consumer_fetch_requests_total",
    "consumer_fetch_empty_total",
    "consumer_fetch_batches_total",
    "consumer_fetch_messages_total",
    "consumer_fetch_bytes_total",
    "finished_messages_total",
    "requeued_messages_total",
    "dead_letter_messages_total",
    "retention_expired_messages_total",
    "protocol_errors_total",
    "auth_failures_total",
    "storage_errors_total",
    "protective_evictions_total",
    "protective_evicted_messages_total",
    "publish_group_commits_total",
    "publish_group_requests_total",
    "publish_workers_retired_total",
    "publish_workers_rejected_total",
    "channel_group_commits_total",
    "channel_group_requests_total",
    "channel_commit_workers_retired_total",
    "channel_commit_workers_rejected_total",
    "ttl_discarded_messages_total",
    "delivery_budget_waits_total",
};
const Names kGauges = {
    "tcp_connections",
    "websocket_connections",
    "publish_inflight_bytes",
    "disk_total_bytes",
    "disk_available_bytes",
    "disk_used_percent",
    "disk_pressure",
    "publish_group_max_requests",
    "publish_workers",
    "channel_group_max_requests",
    "channel_commit_workers",
    "topics",
    "channels",
    "topic_messages_total",
    "publish_unsynced_messages",
    "publish_unsynced_bytes",
    "publish_sync_lag_seconds",
    "channel_depth_total",
    "channel_in_flight_total",
    "channel_deferred_total",
    "channel_ack_gap_total",
    "delivery_inflight_bytes",
    "delivery_inflight_messages",
    "delivery_budget_waiters",
    "detailed_queue_metric_series",
    "detailed_queue_metric_series_omitted",
};

// A scrape, taken apart; families must stand together and every sample must belong to the family above it.
struct Scrape {
  explicit Scrape(const std::string& text) {
    std::istringstream lines(text);
    std::string line, family;
    while (std::getline(lines, line)) {
      std::istringstream words(line);
      std::string hash, what, name, rest;
      if (line.starts_with("# ")) {
        words >> hash >> what >> name >> rest;
        if (what == "TYPE") {
          EXPECT_TRUE(types.emplace(name, rest).second) << "twice: " << name;
        } else {
          EXPECT_TRUE(helped.insert(name).second) << "twice: " << name;
        }
        family = name;
        continue;
      }
      const std::size_t end = line.rfind(' ');
      const std::string sample = line.substr(0, end);
      name = sample.substr(0, sample.find('{'));
      const bool part =
          types[family] == "histogram" && (name == family + "_bucket" || name == family + "_sum" || name == family + "_count");
      EXPECT_TRUE(part || name == family) << line << " under " << family;
      EXPECT_TRUE(values.emplace(sample, std::stod(line.substr(end + 1))).second) << "twice: " << sample;
    }
  }
  double at(const std::string& name) const {
    const auto found = values.find("rustqueue_" + name);
    EXPECT_NE(found, values.end()) << name;
    return found == values.end() ? -1 : found->second;
  }
  std::map<std::string, std::string> types;
  std::set<std::string> helped;
  std::map<std::string, double> values;
};

Scrape scrape(BrokerHarness& h) { return Scrape(h.http("GET", "/metrics").body); }

// A Topic with a Channel, messages published, taken, finished, given back.
void work(BrokerHarness& h) {
  h.http("POST", "/topic/create?topic=t");
  h.http("POST", "/channel/create?topic=t&channel=c");
  for (int i = 0; i < 4; ++i) ASSERT_EQ(h.publish("t", "12345"), "OK");
  Client& consumer = h.consumer("t", "c", 3);
  ASSERT_TRUE(consumer.wait_messages(3));
  const std::vector<Message> messages = consumer.messages();
  consumer.fin(messages[1].id);
  consumer.req(messages[2].id, 60'000);
  ASSERT_TRUE(consumer.wait_messages(4));
  h.run_for(100);
}

TEST(Metrics, B_88_EveryFamilyOfThePageIsThereOnceWithItsTypeAfterAWorkload) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  work(h);
  const Scrape seen = scrape(h);
  for (const auto& [names, type] :
       {std::pair{kHistograms, "histogram"}, std::pair{kCounters, "counter"}, std::pair{kGauges, "gauge"}}) {
    for (const std::string& name : names) {
      const auto found = seen.types.find("rustqueue_" + name);
      ASSERT_NE(found, seen.types.end()) << name;
      EXPECT_EQ(found->second, type) << name;
      if (std::string(type) == "histogram") continue;
      seen.at(name);
    }
  }
  for (const auto& [name, type] : seen.types) EXPECT_TRUE(seen.helped.contains(name)) << name;
}

TEST(Metrics, TheWorkloadStandsInTheNumbers) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  work(h);
  const Scrape seen = scrape(h);
  const std::pair<const char*, double> rows[] = {
      {"tcp_connections", 2},
      {"publish_messages_total", 4},
      {"publish_bytes_total", 20},
      {"delivered_messages_total", 4},
      {"finished_messages_total", 1},
      {"requeued_messages_total", 1},
      {"consumer_fetch_messages_total", 4},
      {"consumer_fetch_bytes_total", 20},
      {"publish_group_requests_total", 4},
      {"publish_workers", 1},
      {"channel_group_requests_total", 2},
      {"topics", 1},
      {"channels", 1},
      {"topic_messages_total", 4},
      {"channel_depth_total", 3},
      {"channel_in_flight_total", 2},
      {"channel_deferred_total", 1},
      {"channel_ack_gap_total", 1},
      {"delivery_inflight_messages", 2},
      {"disk_pressure", 0},
      {"publish_ack_duration_seconds_count", 4},
      {"group_commit_wait_duration_seconds_count", 4},
      {"channel_ack_duration_seconds_count", 2},
      {"channel_group_commit_wait_duration_seconds_count", 2},
  };
  for (const auto& [name, value] : rows) EXPECT_EQ(seen.at(name), value) << name;
  for (const char* positive :
       {"consumer_fetch_requests_total", "consumer_fetch_batches_total", "disk_total_bytes", "disk_available_bytes",
        "storage_fsync_duration_seconds_count", "channel_fsync_duration_seconds_count", "payload_read_duration_seconds_count"})
    EXPECT_GT(seen.at(positive), 0) << positive;
  EXPECT_EQ(seen.at("consumer_fetch_requests_total"),
            seen.at("consumer_fetch_batches_total") + seen.at("consumer_fetch_empty_total"));
}

TEST(Metrics, AnIdlePublisherGivesItsSlotBackAndOneWithoutASlotIsCounted) {
  BrokerHarness h(1, [](broker::Config& c) {
    c.queue.max_publish_workers = 1;
    c.queue.publish_worker_idle_seconds = 2;
    c.storage.maintenance_startup_delay_seconds = 0;
  });
  ASSERT_TRUE(h.start());
  ASSERT_EQ(h.publish("t", "x"), "OK");
  EXPECT_EQ(h.http("POST", "/pub?topic=other", "x").status, 429);
  EXPECT_EQ(scrape(h).at("publish_workers_rejected_total"), 1);
  h.run_for(10'000);
  const Scrape seen = scrape(h);
  EXPECT_EQ(seen.at("publish_workers"), 0);
  EXPECT_EQ(seen.at("publish_workers_retired_total"), 1);
}

TEST(Metrics, TheRemovalOfASegmentIsMeasured) {
  BrokerHarness h(1, [](broker::Config& c) {
    c.storage.maintenance_startup_delay_seconds = 0;
    c.queue.bootstrap_retention_seconds = 1;
  });
  ASSERT_TRUE(h.start());
  h.http("POST", "/topic/create?topic=t");
  h.http("POST", "/channel/create?topic=t&channel=c");
  ASSERT_EQ(h.publish("t", "x"), "OK");
  EXPECT_EQ(drain(h, "t", "c"), Names{"x"});
  h.run_for(20'000);
  EXPECT_GT(scrape(h).at("storage_gc_duration_seconds_count"), 0);
}

TEST(Metrics, B_89_DetailedSeriesKeepToTheirBudget) {
  struct Row {
    bool detailed;
    std::uint64_t budget;
    double emitted, omitted;
    bool topic_series, channel_series;
  };
  const Row rows[] = {{false, 1'000, 0, 10, false, false},
                      {true, 5, 0, 10, false, false},
                      {true, 6, 6, 4, true, false},
                      {true, 9, 6, 4, true, false},
                      {true, 10, 10, 0, true, true}};
  for (const Row& row : rows) {
    BrokerHarness h(1, [&](broker::Config& c) {
      c.metrics.detailed_queue_metrics = row.detailed;
      c.metrics.max_detailed_series = row.budget;
    });
    ASSERT_TRUE(h.start());
    h.http("POST", "/topic/create?topic=t");
    h.http("POST", "/channel/create?topic=t&channel=c");
    const Scrape seen = scrape(h);
    EXPECT_EQ(seen.at("detailed_queue_metric_series"), row.emitted);
    EXPECT_EQ(seen.at("detailed_queue_metric_series_omitted"), row.omitted);
    for (const char* name :
         {"topic_messages", "topic_last_durable_position", "topic_publish_unsynced_messages", "topic_publish_unsynced_bytes",
          "topic_publish_sync_lag_seconds", "topic_ttl_discarded_messages_total"})
      EXPECT_EQ(seen.values.contains(std::string("rustqueue_") + name + "{topic=\"t\"}"), row.topic_series) << name;
    for (const char* name : {"channel_depth", "channel_in_flight", "channel_deferred", "channel_ack_gap"})
      EXPECT_EQ(seen.values.contains(std::string("rustqueue_") + name + "{topic=\"t\",channel=\"c\"}"), row.channel_series)
          << name;
  }
}

TEST(Metrics, ATopicThatDoesNotFitTakesItsChannelsWithItAndTheNextMayFit) {
  std::vector<queue::TopicStats> topics(3);
  topics[0].name = "a";
  topics[0].channels.resize(1);
  topics[1].name = "b";
  topics[1].channels.resize(2);
  topics[2].name = "c";
  std::string text;
  broker::MetricsText out(text);
  broker::DetailedSeries series(out, topics, 17);
  while (series.step(out)) {
  }
  const Scrape seen(text);
  EXPECT_EQ(seen.at("detailed_queue_metric_series"), 16);
  EXPECT_EQ(seen.at("detailed_queue_metric_series_omitted"), 30 - 16);
  EXPECT_TRUE(seen.values.contains("rustqueue_topic_messages{topic=\"b\"}"));
  EXPECT_FALSE(seen.values.contains("rustqueue_topic_messages{topic=\"c\"}"));
}

TEST(Metrics, B_90_AnObservationCountsInItsBucketAndAllAbove) {
  Histogram histogram;
  histogram.add_us(300);
  histogram.add_us(100);         // equal to a bound
  histogram.add_us(20'000'000);  // over the last one
  std::string text;
  broker::MetricsText(text).histogram("rustqueue_h", "Help.", histogram);
  const Scrape seen(text);
  const std::pair<const char*, double> rows[] = {{"0.0001", 1}, {"0.00025", 1}, {"0.0005", 2}, {"0.001", 2}, {"0.0025", 2},
                                                 {"0.005", 2},  {"0.01", 2},    {"0.025", 2},  {"0.05", 2},  {"0.1", 2},
                                                 {"0.25", 2},   {"0.5", 2},     {"1", 2},      {"2.5", 2},   {"5", 2},
                                                 {"10", 2},     {"+Inf", 3}};
  for (const auto& [le, count] : rows) EXPECT_EQ(seen.at(std::string("h_bucket{le=\"") + le + "\"}"), count) << le;
  EXPECT_EQ(seen.values.size(), 19u);
  EXPECT_EQ(seen.at("h_count"), 3);
  EXPECT_DOUBLE_EQ(seen.at("h_sum"), 20.0004);
}

TEST(Metrics, B_91_MessagesHeldBySlowConsumersOccupySlotsAndAFinFreesOne) {
  BrokerHarness h(1, [](broker::Config& c) { c.limits.node_delivery_inflight_messages = 3; });
  ASSERT_TRUE(h.start());
  h.http("POST", "/topic/create?topic=t");
  h.http("POST", "/channel/create?topic=t&channel=c");
  for (int i = 0; i < 5; ++i) ASSERT_EQ(h.publish("t", "x"), "OK");
  Client& one = h.consumer("t", "c", 2);
  ASSERT_TRUE(one.wait_messages(2));
  Client& two = h.consumer("t", "c", 2);
  ASSERT_TRUE(two.wait_messages(1));
  h.run_for(1'000);
  EXPECT_EQ(two.messages().size(), 1u);
  EXPECT_EQ(scrape(h).at("delivery_inflight_messages"), 3);
  one.fin(one.messages()[0].id);
  EXPECT_TRUE(h.run_until([&] { return one.messages().size() + two.messages().size() == 4; }));
  h.run_for(1'000);
  EXPECT_EQ(scrape(h).at("delivery_inflight_messages"), 3);
}

TEST(Metrics, B_92_NamesWithQuotesCannotExistAndLabelsAreEscapedAnyway) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  for (const char* name : {"a%22b", "a%5Cb", "a%0Ab"})
    EXPECT_EQ(h.http("POST", std::string("/topic/create?topic=") + name).status, 400) << name;
  EXPECT_EQ(broker::metrics_label("a\"b\\c\nd"), R"(a\"b\\c\nd)");
}

TEST(Metrics, B_70_AFailedReadOfMetadataIsAnErrorAndTheEndOfTheProcess) {
  BrokerHarness h(1, [](broker::Config& c) {
    c.storage.max_segment_bytes = 4'096;
    c.queue.max_message_bytes = 1'024;
    c.limits.max_body_bytes = 2'048;
  });
  ASSERT_TRUE(h.start());
  h.http("POST", "/topic/create?topic=t");
  h.http("POST", "/channel/create?topic=t&channel=c");
  for (int i = 0; i < 20; ++i) ASSERT_EQ(h.http("POST", "/pub?topic=t&defer=600000", std::string(300, 'x')).status, 200);
  ASSERT_TRUE(h.restart());
  h.disk().faults.read_io_error = 1'024;  // the page of the deferred messages is read for their count
  const HttpReply reply = h.http("GET", "/metrics");
  EXPECT_EQ(result_of(reply), "503 E_STORAGE");
  EXPECT_TRUE(h.run_until([&] { return !h.running(); }));
  EXPECT_EQ(h.last_exit(), broker::Broker::Exit::failed);
}

}  // namespace
}  // namespace rq::sim
