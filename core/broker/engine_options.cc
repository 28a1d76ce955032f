#include "core/broker/engine_options.h"

#include <algorithm>

#include "core/storage/checkpoint.h"

namespace rq::broker {

queue::EngineOptions engine_options(const Config& config, const Process& process) {
  queue::EngineOptions o;
  o.maintenance_startup_delay_seconds = config.storage.maintenance_startup_delay_seconds;
  o.scrub_interval_seconds = config.storage.scrub_interval_seconds;
  o.scrub_bytes_per_second = config.storage.scrub_bytes_per_second;
  o.pid = process.id;
  o.write_handles_max = std::min(process.file_limit / 2, kWriteHandlesMax);
  o.data_path = config.storage.data_path;
  o.node_id = config.node.id;
  o.feature_level = static_cast<std::uint32_t>(config.storage.feature_level);
  o.max_segment_bytes = config.storage.max_segment_bytes;
  o.entry_cache_bytes = config.storage.entry_cache_bytes;
  o.message_index_cache_bytes = config.storage.message_index_cache_bytes;
  o.max_message_bytes = config.queue.max_message_bytes;
  o.max_topics = config.queue.max_topics;
  o.max_ack_gap = std::min(config.queue.max_ack_gap, storage::kAckGapMax);
  o.max_publish_workers = config.queue.max_publish_workers;
  o.publish_worker_idle_seconds = config.queue.publish_worker_idle_seconds;
  o.bootstrap_retention_seconds = config.queue.bootstrap_retention_seconds;
  o.max_defer_ms = static_cast<std::int64_t>(config.queue.max_defer_ms);
  o.max_message_timeout_ms = static_cast<std::int64_t>(config.queue.max_message_timeout_ms);
  o.node_delivery_inflight_bytes = config.limits.node_delivery_inflight_bytes;
  o.connection_delivery_inflight_bytes = config.limits.connection_delivery_inflight_bytes;
  o.payload_read_queue = config.storage.payload_read_queue;
  o.node_delivery_inflight_messages = config.limits.node_delivery_inflight_messages;
  o.dead_letters.max_delivery_attempts = config.queue.max_delivery_attempts;
  o.dead_letters.message_retention_seconds = config.queue.message_retention_seconds;
  o.dead_letters.suffix = config.queue.dead_letter_suffix;
  o.max_channel_consumers = config.limits.max_channel_consumers;
  o.ephemeral_queue_messages = config.queue.ephemeral_queue_messages;
  o.node_ephemeral_bytes = config.limits.node_ephemeral_bytes;
  o.console_management = config.security.console_management_enabled;
  o.ack_mode = config.queue.publish_ack_mode;
  o.relaxed_sync_messages = config.queue.relaxed_sync_messages;
  o.relaxed_sync_bytes = config.queue.relaxed_sync_bytes;
  o.relaxed_sync_interval_ms = static_cast<std::int64_t>(config.queue.relaxed_sync_interval_ms);
  return o;
}

}  // namespace rq::broker
