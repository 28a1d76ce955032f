#include "core/broker/metrics.h"

#include <fmt/format.h>

#include "core/broker/disk_guard.h"
#include "core/broker/metrics_text.h"
#include "core/broker/queue_totals.h"

namespace rq::broker {
namespace {

void put_histograms(MetricsText& out, const queue::EngineMetrics& engine) {
  static const Histogram kNever;  // there is no Topic lock to wait for or to hold
  const struct {
    const char* name;
    const char* help;
    const Histogram& values;
  } histograms[] = {
      {"rustqueue_storage_fsync_duration_seconds", "Making one publish group durable.", engine.barrier_us},
      {"rustqueue_group_commit_wait_duration_seconds", "Publish request waiting for its group.", engine.publish_wait_us},
      {"rustqueue_publish_topic_lock_wait_duration_seconds", "Publish groups waiting for their Topic: never.", kNever},
      {"rustqueue_publish_topic_lock_hold_duration_seconds", "Publish groups keeping others from their Topic: never.", kNever},
      {"rustqueue_publish_ack_duration_seconds", "Whole publish inside the Broker.", engine.publish_ack_us},
      {"rustqueue_delivery_topic_lock_wait_duration_seconds", "Deliveries waiting for their Topic: never.", kNever},
      {"rustqueue_delivery_topic_lock_hold_duration_seconds", "Deliveries keeping others from their Topic: never.", kNever},
      {"rustqueue_channel_fsync_duration_seconds", "Making a FIN/REQ group durable.", engine.channel_barrier_us},
      {"rustqueue_channel_group_commit_wait_duration_seconds", "FIN or REQ waiting for its group.", engine.channel_wait_us},
      {"rustqueue_channel_ack_duration_seconds", "Whole FIN or REQ.", engine.channel_ack_us},
      {"rustqueue_payload_read_duration_seconds", "Payload from cache or disk.", engine.payload_read_us},
      {"rustqueue_storage_scrub_duration_seconds", "One scrub run.", engine.scrub_us},
      {"rustqueue_storage_gc_duration_seconds", "Compaction and eviction.", engine.gc_us},
  };
  for (const auto& each : histograms) out.histogram(each.name, each.help, each.values);
}

void put_runtime(MetricsText& out, const MetricsInput& input) {
  const BrokerCounters& n = input.counters;
  const queue::EngineMetrics& engine = input.engine;
  out.gauge("rustqueue_tcp_connections", "Open NSQ sessions.", input.tcp_connections);
  out.gauge("rustqueue_http_connections", "Open HTTP connections.", input.http_connections);
  out.counter("rustqueue_http_requests_total", "HTTP requests.", n.http_requests_total);
  out.gauge("rustqueue_websocket_connections", "Open live feeds.", input.websocket_connections);
  out.counter("rustqueue_websocket_messages_total", "Messages written to live feeds.", n.websocket_messages);
  out.counter("rustqueue_websocket_bytes_total", "Bodies written to live feeds.", n.websocket_bytes);
  out.counter("rustqueue_websocket_auth_failures_total", "Live feeds refused or ended by AUTH.", n.websocket_auth_failures);
  out.counter("rustqueue_websocket_capacity_rejections_total", "Live feeds refused or ended by a limit.",
              n.websocket_capacity_rejections);
  out.counter("rustqueue_websocket_slow_disconnects_total", "Live feeds ended because the peer was slow or silent.",
              n.websocket_slow_disconnects);
  out.counter("rustqueue_websocket_non_ttl_rejections_total", "Live feeds refused for a RELIABLE Topic.",
              n.websocket_non_ttl_rejections);
  out.counter("rustqueue_publish_messages_total", "Acknowledged messages.", n.publish_messages);
  out.counter("rustqueue_publish_bytes_total", "Bodies of acknowledged messages.", n.publish_bytes);
  out.gauge("rustqueue_publish_inflight_bytes", "Reserved publish bytes.", input.publish_bytes_in_flight);
  out.counter("rustqueue_publish_throttled_requests_total", "Publishes refused for want of room.", n.publish_throttled_requests);
  out.counter("rustqueue_publish_throttled_bytes_total", "Bytes that these would have reserved.", n.publish_throttled_bytes);
  out.counter("rustqueue_delivered_messages_total", "NSQ message frames written.", n.delivered_messages);
  out.counter("rustqueue_consumer_fetch_requests_total", "Looks for messages for a ready consumer.", engine.fetch_requests);
  out.counter("rustqueue_consumer_fetch_empty_total", "Those that found none.", engine.fetch_empty);
  out.counter("rustqueue_consumer_fetch_batches_total", "Those that found some.", engine.fetch_batches);
  out.counter("rustqueue_consumer_fetch_messages_total", "Messages fetched.", engine.fetch_messages);
  out.counter("rustqueue_consumer_fetch_bytes_total", "Bodies fetched.", engine.fetch_bytes);
  out.counter("rustqueue_finished_messages_total", "Durable FIN.", engine.finished_messages);
  out.counter("rustqueue_requeued_messages_total", "Durable REQ.", engine.requeued_messages);
  out.counter("rustqueue_dead_letter_messages_total", "Messages moved to dead letters.", engine.dead_letter_messages);
  out.counter("rustqueue_retention_expired_messages_total", "Messages moved for their age.", engine.retention_expired_messages);
  out.counter("rustqueue_protocol_errors_total", "Fatal protocol errors of clients.", n.protocol_errors);
  out.counter("rustqueue_auth_failures_total", "AUTH refused, on NSQ connections and live feeds.", n.auth_failures);
  out.counter("rustqueue_storage_errors_total", "Storage failures seen by clients.", n.storage_errors);
  out.gauge("rustqueue_disk_total_bytes", "Size of the volume.", input.disk.total);
  out.gauge("rustqueue_disk_available_bytes", "Free on the volume.", input.disk.available);
  out.gauge("rustqueue_disk_used_percent", "In use on the volume.", used_percent(input.disk));
  out.gauge("rustqueue_disk_pressure", "1 while publishes wait for space.", input.disk_pressure ? 1 : 0);
  out.counter("rustqueue_protective_evictions_total", "Segments given up for space.", engine.protective_evictions);
  out.counter("rustqueue_protective_evicted_messages_total", "Messages in them.", engine.protective_evicted_messages);
}

void put_aggregates(MetricsText& out, const MetricsInput& input) {
  const queue::EngineMetrics& engine = input.engine;
  const QueueTotals sums = totals_of(input.topics);
  out.counter("rustqueue_publish_group_commits_total", "Publish groups.", engine.publish_commits);
  out.counter("rustqueue_publish_group_requests_total", "Requests in them.", engine.publish_requests);
  out.gauge("rustqueue_publish_group_max_requests", "The largest so far.", engine.publish_group_max);
  out.gauge("rustqueue_publish_workers", "Topics that hold a publish slot.", engine.publish_workers);
  out.counter("rustqueue_publish_workers_retired_total", "Slots given up when idle.", engine.publish_workers_retired);
  out.counter("rustqueue_publish_workers_rejected_total", "Publishes without a slot.", engine.publish_workers_rejected);
  out.counter("rustqueue_channel_group_commits_total", "FIN/REQ groups.", engine.channel_commits);
  out.counter("rustqueue_channel_group_requests_total", "Commands in them.", engine.channel_requests);
  out.gauge("rustqueue_channel_group_max_requests", "The largest so far.", engine.channel_group_max);
  out.gauge("rustqueue_channel_commit_workers", "Always 0: commands need no slot.", 0);
  out.counter("rustqueue_channel_commit_workers_retired_total", "Always 0.", 0);
  out.counter("rustqueue_channel_commit_workers_rejected_total", "Always 0.", 0);
  out.gauge("rustqueue_topics", "Topics.", sums.topics);
  out.gauge("rustqueue_channels", "Channels.", sums.channels);
  out.gauge("rustqueue_topic_messages_total", "Stored messages.", sums.messages);
  out.counter("rustqueue_ttl_discarded_messages_total", "Messages discarded at their TTL.", engine.ttl_discarded_messages);
  out.gauge("rustqueue_publish_unsynced_messages", "Messages a power loss could take.", sums.unsynced_messages);
  out.gauge("rustqueue_publish_unsynced_bytes", "Their bytes.", sums.unsynced_bytes);
  out.seconds("rustqueue_publish_sync_lag_seconds", "Age of the oldest of them.", sums.sync_lag_ms * 1'000);
  out.gauge("rustqueue_channel_depth_total", "Outstanding messages of all Channels.", sums.depth);
  out.gauge("rustqueue_channel_in_flight_total", "In flight.", sums.in_flight);
  out.gauge("rustqueue_channel_deferred_total", "Deferred.", sums.deferred);
  out.gauge("rustqueue_channel_ack_gap_total", "Finished above the oldest unfinished one.", sums.ack_gap);
  out.gauge("rustqueue_delivery_inflight_bytes", "Delivery budget in use.", engine.delivery_bytes);
  out.gauge("rustqueue_delivery_inflight_messages", "Message slots in use.", engine.in_flight_messages);
  out.gauge("rustqueue_delivery_budget_waiters", "Batches waiting for the budget.", engine.delivery_waiters);
  out.counter("rustqueue_delivery_budget_waits_total", "Batches that ever waited.", engine.delivery_waits);
}

class Metrics final : public Rendering {
 public:
  explicit Metrics(MetricsInput input) : input_(std::move(input)) {}

 private:
  bool step() override {
    if (series_) return series_->step(out_);
    put_histograms(out_, input_.engine);
    put_runtime(out_, input_);
    put_aggregates(out_, input_);
    series_.emplace(out_, input_.topics, input_.detailed ? input_.max_detailed_series : 0);
    return true;
  }

  const MetricsInput input_;
  MetricsText out_{text_};
  std::optional<DetailedSeries> series_;
};

}  // namespace

std::unique_ptr<Rendering> metrics_text(MetricsInput input) { return std::make_unique<Metrics>(std::move(input)); }

}  // namespace rq::broker
