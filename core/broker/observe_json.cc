#include "core/broker/observe_json.h"

#include "core/base/json_writer.h"
#include "core/broker/disk_guard.h"
#include "core/broker/native_json.h"
#include "core/broker/native_topics.h"
#include "core/broker/queue_totals.h"

namespace rq::broker {
namespace {

using queue::EngineMetrics;

void put_node(JsonWriter& json, ServerView& view) {
  const Config& config = view.config();
  json.key("node").begin_object().key("id").value(config.node.id).key("address").value(config.node.broadcast_address);
  json.key("version").value(RQ_VERSION).key("data_format").value(storage::kDataFormat).key("compatibility");
  put_capabilities(json, view.engine().identity());
  json.end_object();
}

void put_readiness(JsonWriter& json, ServerView& view) {
  const queue::Engine& engine = view.engine();
  json.key("readiness").begin_object();
  json.key("process_ready").value(engine.state() == queue::EngineState::open);
  json.key("storage_healthy").value(engine.fault() == nullptr).key("disk_ready").value(!view.disk_pressure());
  json.key("publish_ready").value(publish_ready(view)).key("consume_ready").value(head_consume_ready(view));
  json.key("draining").value(!view.accepting()).key("management_fences_ready").value(engine.fences_ready());
  json.end_object();
}

void put_disk(JsonWriter& json, ServerView& view) {
  const Config::Storage& storage = view.config().storage;
  const io::DiskUsage& usage = view.disk_usage();
  json.key("disk").begin_object().key("total_bytes").value(usage.total).key("available_bytes").value(usage.available);
  json.key("used_percent").value(used_percent(usage)).key("pressure").value(view.disk_pressure());
  json.key("high_watermark_percent").value(storage.disk_high_watermark_percent);
  json.key("low_watermark_percent").value(storage.disk_low_watermark_percent);
  json.key("min_free_bytes").value(storage.min_free_bytes);
  json.key("protective_eviction_enabled").value(storage.protective_eviction_enabled).end_object();
}

void put_runtime(JsonWriter& json, ServerView& view) {
  const BrokerCounters& n = view.counters();
  const EngineMetrics& engine = view.engine().metrics();
  const io::DiskUsage& usage = view.disk_usage();
  const struct {
    const char* key;
    std::uint64_t value;
  } rows[] = {
      {"tcp_connections", view.tcp_connections()},
      {"websocket_connections", view.websocket_connections()},
      {"websocket_messages", n.websocket_messages},
      {"websocket_bytes", n.websocket_bytes},
      {"websocket_auth_failures", n.websocket_auth_failures},
      {"websocket_capacity_rejections", n.websocket_capacity_rejections},
      {"websocket_slow_disconnects", n.websocket_slow_disconnects},
      {"websocket_non_ttl_rejections", n.websocket_non_ttl_rejections},
      {"publish_messages", n.publish_messages},
      {"publish_bytes", n.publish_bytes},
      {"publish_inflight_bytes", view.publish_bytes_in_flight()},
      {"publish_throttled_requests", n.publish_throttled_requests},
      {"publish_throttled_bytes", n.publish_throttled_bytes},
      {"delivered_messages", n.delivered_messages},
      {"fetch_requests", engine.fetch_requests},
      {"fetch_empty", engine.fetch_empty},
      {"fetch_batches", engine.fetch_batches},
      {"fetch_messages", engine.fetch_messages},
      {"fetch_bytes", engine.fetch_bytes},
      {"finished_messages", engine.finished_messages},
      {"requeued_messages", engine.requeued_messages},
      {"dead_letter_messages", engine.dead_letter_messages},
      {"retention_expired_messages", engine.retention_expired_messages},
      {"protocol_errors", n.protocol_errors},
      {"auth_failures", n.auth_failures},
      {"storage_errors", n.storage_errors},
      {"disk_total_bytes", usage.total},
      {"disk_available_bytes", usage.available},
      {"disk_used_percent", used_percent(usage)},
      {"disk_pressure", view.disk_pressure() ? std::uint64_t{1} : std::uint64_t{0}},
      {"protective_evictions", engine.protective_evictions},
      {"protective_evicted_messages", engine.protective_evicted_messages},
  };
  json.key("runtime").begin_object();
  for (const auto& row : rows) json.key(row.key).value(row.value);
  json.end_object();
}

void put_delivery_budget(JsonWriter& json, const EngineMetrics& engine) {
  json.key("delivery_budget").begin_object().key("in_flight_bytes").value(engine.delivery_bytes);
  json.key("in_flight_messages").value(engine.in_flight_messages).key("waiters").value(engine.delivery_waiters);
  json.key("waits_total").value(engine.delivery_waits).end_object();
}

void put_limits(JsonWriter& json, const Config& config) {
  json.key("limits").begin_object().key("max_message_bytes").value(config.queue.max_message_bytes);
  json.key("publish_ack_mode").value(config_value_text(config, "queue.publish_ack_mode"));
  json.key("relaxed_sync_messages").value(config.queue.relaxed_sync_messages);
  json.key("relaxed_sync_bytes").value(config.queue.relaxed_sync_bytes);
  json.key("relaxed_sync_interval_ms").value(config.queue.relaxed_sync_interval_ms);
  json.key("message_index_cache_bytes").value(config.storage.message_index_cache_bytes);
  json.key("max_connections").value(config.limits.max_connections).end_object();
}

void put_head(JsonWriter& json, ServerView& view, WallTime now) {
  json.key("schema_version").value(1).key("registry_revision").value(view.engine().registry_revision());
  json.key("collected_at_ms").value(now.ms());
  put_node(json, view);
  put_readiness(json, view);
  put_disk(json, view);
  put_runtime(json, view);
  put_delivery_budget(json, view.engine().metrics());
  put_limits(json, view.config());
}

struct Committers {
  std::uint64_t commits, requests, largest, active, retired, rejected;
};
void put_committers(JsonWriter& json, std::string_view name, const Committers& n) {
  json.key(name).begin_object().key("commits").value(n.commits).key("requests").value(n.requests);
  json.key("max_batch_requests").value(n.largest).key("active_workers").value(n.active);
  json.key("retired_workers").value(n.retired).key("rejected_workers").value(n.rejected).end_object();
}

void put_latency(JsonWriter& json, const EngineMetrics& engine) {
  static const Histogram kNever;  // as in metrics.cc
  const struct {
    const char* key;
    const Histogram& values;
  } rows[] = {
      {"fsync", engine.barrier_us},
      {"group_commit_wait", engine.publish_wait_us},
      {"publish_topic_lock_wait", kNever},
      {"publish_topic_lock_hold", kNever},
      {"publish_ack", engine.publish_ack_us},
      {"delivery_topic_lock_wait", kNever},
      {"delivery_topic_lock_hold", kNever},
      {"channel_fsync", engine.channel_barrier_us},
      {"channel_group_commit_wait", engine.channel_wait_us},
      {"channel_ack", engine.channel_ack_us},
      {"payload_read", engine.payload_read_us},
      {"scrub", engine.scrub_us},
      {"gc", engine.gc_us},
  };
  json.key("latency").begin_object();
  for (const auto& row : rows) {
    json.key(row.key).begin_object().key("buckets").begin_array();
    for (const std::uint64_t count : row.values.buckets) json.value(count);
    json.end_array().key("count").value(row.values.count).key("sum_us").value(row.values.sum_us).end_object();
  }
  json.end_object();
}

void put_aggregate(JsonWriter& json, const QueueTotals& sums) {
  json.key("aggregate").begin_object().key("topic_count").value(sums.topics).key("message_count").value(sums.messages);
  json.key("segment_count").value(sums.segments).key("segment_bytes").value(sums.segment_bytes);
  json.key("unsynced_messages").value(sums.unsynced_messages).key("unsynced_bytes").value(sums.unsynced_bytes);
  json.key("sync_lag_ms").value(sums.sync_lag_ms).key("channel_count").value(sums.channels);
  json.key("channel_depth").value(sums.depth).key("channel_in_flight").value(sums.in_flight);
  json.key("channel_deferred").value(sums.deferred).key("channel_ack_gap").value(sums.ack_gap).end_object();
}

class Observe final : public NativeTopics {
 public:
  Observe(ServerView& server, WallTime now, std::vector<queue::TopicStats> topics)
      : NativeTopics(std::move(topics)), server_(server), now_(now) {}

 private:
  void begin() override {
    const EngineMetrics& engine = server_.engine().metrics();
    const QueueTotals sums = totals_of(view_.topics);
    json_.begin_object();
    put_head(json_, server_, now_);
    json_.key("storage").begin_object().key("segment_count").value(sums.segments);
    json_.key("segment_bytes").value(sums.segment_bytes).end_object();
    json_.key("catalog_collected_at_ms").value(now_.ms()).key("queue").begin_object();
    put_committers(json_, "publish_group_commit",
                   {engine.publish_commits, engine.publish_requests, engine.publish_group_max, engine.publish_workers,
                    engine.publish_workers_retired, engine.publish_workers_rejected});
    put_committers(json_, "channel_group_commit",
                   {engine.channel_commits, engine.channel_requests, engine.channel_group_max, 0, 0, 0});
    put_latency(json_, engine);
    put_delivery_budget(json_, engine);
    put_aggregate(json_, sums);
    json_.key("ttl_discarded_messages").value(engine.ttl_discarded_messages).key("topics").begin_array();
  }
  void end() override { json_.end_array().end_object().end_object(); }

  ServerView& server_;
  const WallTime now_;
};

}  // namespace

std::string observe_head_json(ServerView& view, WallTime now) {
  std::string out;
  JsonWriter json(out);
  json.begin_object();
  put_head(json, view, now);
  json.end_object();
  return out;
}

std::unique_ptr<Rendering> observe_json(ServerView& view, WallTime now, std::vector<queue::TopicStats> topics) {
  return std::make_unique<Observe>(view, now, std::move(topics));
}

}  // namespace rq::broker
