// The rules V1..V30 of page 31 section 2.12, in their order. The first that is violated is reported, naming its keys.
#include <algorithm>
#include <limits>

#include "core/broker/admission.h"
#include "core/broker/config.h"
#include "core/storage/types.h"

namespace rq::broker {
namespace {

using Failure = std::optional<std::string>;

constexpr std::uint64_t kI64Max = std::numeric_limits<std::int64_t>::max();
constexpr std::uint64_t kSemaphoreMax = 2'305'843'009'213'693'951;                          // V20, V24
constexpr std::uint64_t kPublishPermitsMax = std::uint64_t{4'294'967'295} * 4'096;          // V8, V9
constexpr std::uint64_t kU32Max = std::numeric_limits<std::uint32_t>::max();                // V10, V20
constexpr std::uint64_t kIndexCacheBytesMin = 65'536;                                       // D-27
constexpr std::uint64_t kRecordBytesMax = 167'772'160, kRecordBytesMaxLevel1 = 75'497'472;  // V30
constexpr std::uint64_t kBatchOverheadBytes = 1'048'576;
// A duration may be added to any monotonic time below 146 years without leaving 64 signed bits of nanoseconds.
constexpr std::uint64_t kTimerMsMax = kI64Max / 2 / 1'000'000;

Failure at_least(const char* rule, const char* key, std::uint64_t value, std::uint64_t least) {
  if (value >= least) return std::nullopt;
  return std::string(rule) + ": " + key + " must be at least " + std::to_string(least) + ", is " + std::to_string(value);
}
Failure at_most(const char* rule, const char* key, std::uint64_t value, std::uint64_t most) {
  if (value <= most) return std::nullopt;
  return std::string(rule) + ": " + key + " must be at most " + std::to_string(most) + ", is " + std::to_string(value);
}
Failure between(const char* rule, const char* key, std::uint64_t value, std::uint64_t least, std::uint64_t most) {
  if (Failure failure = at_least(rule, key, value, least)) return failure;
  return at_most(rule, key, value, most);
}
// a <= b, naming both keys.
Failure ordered(const char* rule, const char* key, std::uint64_t value, const char* other_key, std::uint64_t other) {
  if (value <= other) return std::nullopt;
  return std::string(rule) + ": " + key + " (" + std::to_string(value) + ") must be at most " + other_key + " (" +
         std::to_string(other) + ")";
}
Failure fail(const char* rule, std::string text) { return std::string(rule) + ": " + text; }

Failure first_of(std::initializer_list<Failure> failures) {
  for (const Failure& failure : failures)
    if (failure) return failure;
  return std::nullopt;
}

bool blank(std::string_view text) { return text.find_first_not_of(" \t\r\n\v\f") == std::string_view::npos; }

Failure node_rules(const Config& c) {
  if (Failure failure = between("V1", "node.id", c.node.id, 1, 65'535)) return failure;
  if (blank(c.node.broadcast_address)) return fail("V2", "node.broadcast_address must not be blank");
  return std::nullopt;
}

Failure queue_rules(const Config& c) {
  const auto& q = c.queue;
  const bool relaxed = q.publish_ack_mode != rq::queue::AckMode::durable;
  return first_of({
      between("V3", "queue.max_message_bytes", q.max_message_bytes, 1, kMessageBytesCeiling),
      ordered("V3", "queue.max_message_bytes", q.max_message_bytes, "limits.max_body_bytes", c.limits.max_body_bytes),
      at_least("V4", "queue.bootstrap_retention_seconds", q.bootstrap_retention_seconds, 1),
      at_least("V5", "queue.message_timeout_ms", q.message_timeout_ms, 1),
      between("V5", "queue.max_message_timeout_ms", q.max_message_timeout_ms, 1'000, kI64Max),
      ordered("V5", "queue.message_timeout_ms", q.message_timeout_ms, "queue.max_message_timeout_ms", q.max_message_timeout_ms),
      at_most("V5", "queue.max_defer_ms", q.max_defer_ms, kI64Max),
      at_least("V6", "queue.max_ack_gap", q.max_ack_gap, 1),
      at_least("V6", "queue.max_topics", q.max_topics, 1),
      at_least("V6", "queue.max_publish_workers", q.max_publish_workers, 1),
      at_least("V6", "queue.publish_worker_idle_seconds", q.publish_worker_idle_seconds, 1),
      at_least("V6", "queue.relaxed_sync_messages", q.relaxed_sync_messages, relaxed ? 1 : 0),
      at_least("V6", "queue.relaxed_sync_bytes", q.relaxed_sync_bytes, relaxed ? 4'096 : 0),
      at_least("V6", "queue.relaxed_sync_interval_ms", q.relaxed_sync_interval_ms, relaxed ? 1 : 0),
      at_least("V6", "queue.ephemeral_queue_messages", q.ephemeral_queue_messages, 1),
  });
}

// W of V8: the largest publish as it is charged, in bytes.
std::uint64_t publish_working_set(const Config& c) {
  return std::max(publish_working_bytes(c.limits.max_body_bytes, storage::kBatchMessagesMax),
                  publish_working_bytes(c.queue.max_message_bytes, 1));
}

Failure budget_rules(const Config& c) {
  const auto& l = c.limits;
  if (Failure failure = between("V7", "limits.max_body_bytes", l.max_body_bytes, 1, kBatchBytesCeiling)) return failure;
  const bool large = c.storage.feature_level >= 2;
  const std::uint64_t largest = large ? kMessageBytesCeiling : c.queue.max_message_bytes;
  const std::uint64_t connection = l.connection_delivery_inflight_bytes;
  return first_of({
      at_least("V8", "limits.connection_publish_inflight_bytes", l.connection_publish_inflight_bytes, publish_working_set(c)),
      ordered("V8", "limits.connection_publish_inflight_bytes", l.connection_publish_inflight_bytes,
              "limits.node_publish_inflight_bytes", l.node_publish_inflight_bytes),
      at_most("V8", "limits.node_publish_inflight_bytes", l.node_publish_inflight_bytes, kPublishPermitsMax),
      at_most("V9", "limits.auth_memory_bytes", l.auth_memory_bytes, kPublishPermitsMax),
      ordered("V9", "limits.auth_response_bytes", l.auth_response_bytes, "a quarter of limits.auth_memory_bytes",
              l.auth_memory_bytes / 4),
      at_least("V10", "limits.connection_delivery_inflight_bytes", connection, largest),
      ordered("V10", "limits.connection_delivery_inflight_bytes", connection, "half of limits.node_delivery_inflight_bytes",
              l.node_delivery_inflight_bytes / 2),
      at_most("V10", "limits.node_delivery_inflight_bytes", l.node_delivery_inflight_bytes, kU32Max),
  });
}

Failure suffix_rule(const Config& c) {
  constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
  const std::string& suffix = c.queue.dead_letter_suffix;
  if (suffix.empty() || suffix.size() > 16 || suffix.find_first_not_of(kAlphabet) != std::string::npos)
    return fail("V13", "queue.dead_letter_suffix must be 1 to 16 bytes of A-Za-z0-9._-");
  return std::nullopt;
}

Failure storage_rules(const Config& c) {
  const auto& s = c.storage;
  if (Failure failure = first_of({
          at_least("V11", "storage.entry_cache_bytes", s.entry_cache_bytes, 1),
          at_least("V11", "storage.message_index_cache_bytes", s.message_index_cache_bytes, kIndexCacheBytesMin),
          at_least("V12", "queue.max_delivery_attempts", c.queue.max_delivery_attempts, 1),
          suffix_rule(c),
          at_least("V14", "storage.max_segment_bytes", s.max_segment_bytes, c.limits.max_body_bytes + 64),
          between("V15", "storage.feature_level", s.feature_level, 1, kWriterLevelMax),
          at_least("V16", "storage.scrub_interval_seconds", s.scrub_interval_seconds, 1),
          at_least("V16", "storage.scrub_bytes_per_second", s.scrub_bytes_per_second, 1),
          at_least("V16", "storage.payload_read_queue", s.payload_read_queue, 1),
          at_most("V17", "storage.disk_high_watermark_percent", s.disk_high_watermark_percent, 100),
      }))
    return failure;
  if (s.disk_low_watermark_percent < s.disk_high_watermark_percent) return std::nullopt;
  return fail("V17", "storage.disk_low_watermark_percent must be below storage.disk_high_watermark_percent");
}

Failure positive_rules(const Config& c) {
  const auto& l = c.limits;
  return first_of({
      at_least("V18", "limits.client_handshake_timeout_ms", l.client_handshake_timeout_ms, 1),
      at_least("V18", "limits.tcp_command_timeout_ms", l.tcp_command_timeout_ms, 1),
      at_least("V18", "limits.auth_timeout_ms", l.auth_timeout_ms, 1),
      at_least("V18", "limits.http_body_timeout_ms", l.http_body_timeout_ms, 1),
      at_least("V18", "limits.auth_max_ttl_seconds", l.auth_max_ttl_seconds, 1),
      at_least("V18", "limits.auth_cache_max_entries", l.auth_cache_max_entries, 1),
      at_least("V18", "limits.auth_memory_bytes", l.auth_memory_bytes, 1),
      at_least("V18", "limits.auth_response_bytes", l.auth_response_bytes, 1),
      at_least("V18", "limits.max_connections", l.max_connections, 1),
      at_least("V18", "limits.max_http_connections", l.max_http_connections, 1),
      at_least("V18", "limits.max_rdy_count", l.max_rdy_count, 1),
      at_least("V18", "limits.node_ephemeral_bytes", l.node_ephemeral_bytes, 1),
      at_least("V18a", "shutdown.grace_seconds", c.shutdown.grace_seconds, 1),
      at_least("V18b", "metrics.max_detailed_series", c.metrics.max_detailed_series, 1),
      between("V19", "network.max_deflate_level", c.network.max_deflate_level, 1, 9),
      at_most("V19a", "network.io_threads", c.network.io_threads, kIoThreadsMax),
  });
}

bool is_origin(std::string_view text) {
  for (std::string_view scheme : {std::string_view("http://"), std::string_view("https://")}) {
    if (!text.starts_with(scheme)) continue;
    const std::string_view authority = text.substr(scheme.size());
    return !authority.empty() && authority.find_first_of("/?#,* \t\r\n") == std::string_view::npos;
  }
  return false;
}

Failure websocket_rules(const Config& c) {
  const auto& w = c.websocket;
  if (Failure failure = first_of({
          between("V20", "websocket.max_connections", w.max_connections, 1, kSemaphoreMax),
          at_least("V20", "websocket.max_connections_per_topic", w.max_connections_per_topic, 1),
          ordered("V20", "websocket.max_connections_per_topic", w.max_connections_per_topic, "websocket.max_connections",
                  w.max_connections),
          between("V20", "websocket.frame_inflight_bytes", w.frame_inflight_bytes, c.queue.max_message_bytes + 24, kU32Max),
      }))
    return failure;
  for (const std::string& origin : w.allowed_origins)
    if (!is_origin(origin))
      return fail("V21", "websocket.allowed_origins: \"" + origin + "\" is not http:// or https:// with an authority alone");
  return std::nullopt;
}

Failure kodo_rules(const Config& c) {
  if (c.security.kodo_cleanup_enabled) return fail("V22", "security.kodo_cleanup_enabled must be false");
  if (c.network.kodo_http_address) return fail("V22", "network.kodo_http_address must stay unset");
  return std::nullopt;
}

Failure session_rules(const Config& c) {
  const auto& l = c.limits;
  return first_of({
      at_least("V23", "limits.heartbeat_interval_ms", l.heartbeat_interval_ms, 1'000),
      ordered("V23", "limits.heartbeat_interval_ms", l.heartbeat_interval_ms, "limits.max_heartbeat_interval_ms",
              l.max_heartbeat_interval_ms),
      at_most("V23", "limits.max_heartbeat_interval_ms", l.max_heartbeat_interval_ms, kI64Max),
      at_least("V23", "limits.output_buffer_size", l.output_buffer_size, 64),
      ordered("V23", "limits.output_buffer_size", l.output_buffer_size, "limits.max_output_buffer_size",
              l.max_output_buffer_size),
      at_most("V23", "limits.max_output_buffer_size", l.max_output_buffer_size, kI64Max),
      at_least("V23", "limits.min_output_buffer_timeout_ms", l.min_output_buffer_timeout_ms, 1),
      ordered("V23", "limits.min_output_buffer_timeout_ms", l.min_output_buffer_timeout_ms, "limits.output_buffer_timeout_ms",
              l.output_buffer_timeout_ms),
      ordered("V23", "limits.output_buffer_timeout_ms", l.output_buffer_timeout_ms, "limits.max_output_buffer_timeout_ms",
              l.max_output_buffer_timeout_ms),
      at_most("V23", "limits.max_output_buffer_timeout_ms", l.max_output_buffer_timeout_ms, kI64Max),
      at_most("V24", "limits.max_connections", l.max_connections, kSemaphoreMax),
      at_most("V24", "limits.max_http_connections", l.max_http_connections, kSemaphoreMax),
      between("V24", "limits.node_delivery_inflight_messages", l.node_delivery_inflight_messages, 1, kSemaphoreMax),
  });
}

Failure timer_rules(const Config& c) {
  const auto& l = c.limits;
  const std::pair<const char*, std::uint64_t> millis[] = {
      {"queue.max_message_timeout_ms", c.queue.max_message_timeout_ms},
      {"queue.max_defer_ms", c.queue.max_defer_ms},
      {"queue.relaxed_sync_interval_ms", c.queue.relaxed_sync_interval_ms},
      {"limits.client_handshake_timeout_ms", l.client_handshake_timeout_ms},
      {"limits.tcp_command_timeout_ms", l.tcp_command_timeout_ms},
      {"limits.max_output_buffer_timeout_ms", l.max_output_buffer_timeout_ms},
      {"limits.auth_timeout_ms", l.auth_timeout_ms},
      {"limits.http_body_timeout_ms", l.http_body_timeout_ms},
  };
  for (const auto& [key, value] : millis)
    if (Failure failure = at_most("V25", key, value, kTimerMsMax)) return failure;
  const std::pair<const char*, std::uint64_t> seconds[] = {
      {"storage.scrub_interval_seconds", c.storage.scrub_interval_seconds},
      {"storage.maintenance_startup_delay_seconds", c.storage.maintenance_startup_delay_seconds},
      {"storage.disk_pressure_grace_seconds", c.storage.disk_pressure_grace_seconds},
      {"queue.publish_worker_idle_seconds", c.queue.publish_worker_idle_seconds},
      {"queue.bootstrap_retention_seconds", c.queue.bootstrap_retention_seconds},
      {"queue.message_retention_seconds", c.queue.message_retention_seconds},
      {"limits.auth_max_ttl_seconds", l.auth_max_ttl_seconds},
      {"shutdown.grace_seconds", c.shutdown.grace_seconds},
  };
  for (const auto& [key, value] : seconds)
    if (Failure failure = at_most("V25", key, value, kTimerMsMax / 1'000)) return failure;
  if (Failure failure = at_most("V25", "limits.max_heartbeat_interval_ms", l.max_heartbeat_interval_ms, kTimerMsMax / 128))
    return failure;
  if (c.queue.max_message_timeout_ms <= kTimerMsMax - l.max_output_buffer_timeout_ms) return std::nullopt;
  return fail("V25", "queue.max_message_timeout_ms plus limits.max_output_buffer_timeout_ms is too large for a timer");
}

Failure file_rules(const Config& c, const PathProbe* paths) {
  if (c.log_format != "text" && c.log_format != "json") return fail("V26", "log_format must be text or json");
  if (paths == nullptr) return std::nullopt;
  const auto& t = c.security.tls;
  if (t.present) {
    if (!paths->exists(t.certificate_file)) return fail("V27", "security.tls.certificate_file does not exist");
    if (!paths->exists(t.private_key_file)) return fail("V27", "security.tls.private_key_file does not exist");
    const bool verify = t.effective_client_auth() == ClientAuth::require_verify;
    if (verify && (!t.client_ca_file || !paths->exists(*t.client_ca_file)))
      return fail("V27", "security.tls.client_ca_file does not exist, and client certificates are required");
  }
  const std::pair<const char*, const std::optional<std::string>*> tokens[] = {
      {"security.admin_token_file", &c.security.admin_token_file},
      {"security.publish_token_file", &c.security.publish_token_file},
      {"security.registry_token_file", &c.security.registry_token_file},
      {"security.console_token_file", &c.security.console_token_file},
      {"security.kodo_cleanup_token_file", &c.security.kodo_cleanup_token_file},
  };
  for (const auto& [key, path] : tokens)
    if (*path && !paths->regular_file(**path)) return fail("V28", std::string(key) + " is not a regular file");
  return std::nullopt;
}

Failure last_rules(const Config& c) {
  if (c.security.console_management_enabled && !c.security.console_token_file)
    return fail("V29", "security.console_management_enabled needs security.console_token_file");
  const std::uint64_t record = std::max(c.queue.max_message_bytes + 24, c.limits.max_body_bytes + kBatchOverheadBytes);
  const std::uint64_t most = c.storage.feature_level >= 2 ? kRecordBytesMax : kRecordBytesMaxLevel1;
  if (record <= most) return std::nullopt;
  return fail("V30", "the largest record of queue.max_message_bytes and limits.max_body_bytes is " + std::to_string(record) +
                         " bytes, at storage.feature_level " + std::to_string(c.storage.feature_level) + " at most " +
                         std::to_string(most));
}

}  // namespace

std::optional<std::string> validate(const Config& config, const PathProbe* paths) {
  // One after the other: later rules compute with values that earlier ones have bounded.
  if (Failure failure = node_rules(config)) return failure;
  if (Failure failure = queue_rules(config)) return failure;
  if (Failure failure = budget_rules(config)) return failure;
  if (Failure failure = storage_rules(config)) return failure;
  if (Failure failure = positive_rules(config)) return failure;
  if (Failure failure = websocket_rules(config)) return failure;
  if (Failure failure = kodo_rules(config)) return failure;
  if (Failure failure = session_rules(config)) return failure;
  if (Failure failure = timer_rules(config)) return failure;
  if (Failure failure = file_rules(config, paths)) return failure;
  return last_rules(config);
}

}  // namespace rq::broker
