// Every key with its default and its variable, as page 31 sections 2.2 to 2.11 and page 05 name them, against the code's table;
// and the example file against both.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <set>

#include "core/broker/config_keys.h"

namespace rq::broker {
namespace {

struct Row {
  const char* key;
  const char* value;        // by default; "" for unset
  const char* environment;  // "" for none
};

// clang-format off
constexpr Row kRows[] = {
    {"log_format", "text", "RUSTQUEUE_LOG_FORMAT"},
    {"node.id", "1", "RUSTQUEUE_NODE_ID"},
    {"node.broadcast_address", "127.0.0.1", "RUSTQUEUE_BROADCAST_ADDRESS"},
    {"network.tcp_address", "0.0.0.0:4150", "RUSTQUEUE_TCP_ADDRESS"},
    {"network.http_address", "0.0.0.0:4151", "RUSTQUEUE_HTTP_ADDRESS"},
    {"network.kodo_http_address", "", "RUSTQUEUE_KODO_HTTP_ADDRESS"},
    {"network.advertised_tcp_port", "4150", ""},
    {"network.advertised_http_port", "4151", ""},
    {"network.snappy_enabled", "true", ""},
    {"network.deflate_enabled", "true", ""},
    {"network.max_deflate_level", "6", ""},
    {"websocket.enabled", "false", "RUSTQUEUE_WEBSOCKET_ENABLED"},
    {"websocket.max_connections", "1024", "RUSTQUEUE_WEBSOCKET_MAX_CONNECTIONS"},
    {"websocket.max_connections_per_topic", "256", "RUSTQUEUE_WEBSOCKET_MAX_CONNECTIONS_PER_TOPIC"},
    {"websocket.frame_inflight_bytes", "134217728", "RUSTQUEUE_WEBSOCKET_FRAME_INFLIGHT_BYTES"},
    {"websocket.allowed_origins", "[]", "RUSTQUEUE_WEBSOCKET_ALLOWED_ORIGINS"},
    {"storage.data_path", "data", "RUSTQUEUE_DATA_PATH"},
    {"storage.feature_level", "1", "RUSTQUEUE_STORAGE_FEATURE_LEVEL"},
    {"storage.max_segment_bytes", "104857600", ""},
    {"storage.scrub_interval_seconds", "3600", ""},
    {"storage.scrub_bytes_per_second", "67108864", "RUSTQUEUE_SCRUB_BYTES_PER_SECOND"},
    {"storage.entry_cache_bytes", "67108864", ""},
    {"storage.message_index_cache_bytes", "67108864", "RUSTQUEUE_MESSAGE_INDEX_CACHE_BYTES"},
    {"storage.payload_read_workers", "0", ""},
    {"storage.payload_read_queue", "4096", ""},
    {"storage.maintenance_startup_delay_seconds", "30", "RUSTQUEUE_MAINTENANCE_STARTUP_DELAY_SECONDS"},
    {"storage.disk_high_watermark_percent", "85", ""},
    {"storage.disk_low_watermark_percent", "75", ""},
    {"storage.min_free_bytes", "10737418240", ""},
    {"storage.protective_eviction_enabled", "false", "RUSTQUEUE_PROTECTIVE_EVICTION_ENABLED"},
    {"storage.disk_pressure_grace_seconds", "60", "RUSTQUEUE_DISK_PRESSURE_GRACE_SECONDS"},
    {"queue.max_message_bytes", "20971520", "RUSTQUEUE_MAX_MESSAGE_BYTES"},
    {"queue.message_timeout_ms", "60000", ""},
    {"queue.max_message_timeout_ms", "900000", ""},
    {"queue.max_defer_ms", "3600000", ""},
    {"queue.max_ack_gap", "65536", ""},
    {"queue.max_topics", "10000", "RUSTQUEUE_MAX_TOPICS"},
    {"queue.max_publish_workers", "1024", "RUSTQUEUE_MAX_PUBLISH_WORKERS"},
    {"queue.publish_worker_idle_seconds", "60", "RUSTQUEUE_PUBLISH_WORKER_IDLE_SECONDS"},
    {"queue.publish_ack_mode", "durable", "RUSTQUEUE_PUBLISH_ACK_MODE"},
    {"queue.relaxed_sync_messages", "2500", "RUSTQUEUE_RELAXED_SYNC_MESSAGES"},
    {"queue.relaxed_sync_bytes", "8388608", "RUSTQUEUE_RELAXED_SYNC_BYTES"},
    {"queue.relaxed_sync_interval_ms", "10", "RUSTQUEUE_RELAXED_SYNC_INTERVAL_MS"},
    {"queue.bootstrap_retention_seconds", "90", "RUSTQUEUE_BOOTSTRAP_RETENTION_SECONDS"},
    {"queue.message_retention_seconds", "0", "RUSTQUEUE_MESSAGE_RETENTION_SECONDS"},
    {"queue.max_delivery_attempts", "16", "RUSTQUEUE_MAX_DELIVERY_ATTEMPTS"},
    {"queue.dead_letter_suffix", ".DLQ", "RUSTQUEUE_DEAD_LETTER_SUFFIX"},
    {"security.auth_http_addresses", "[]", ""},
    {"security.admin_token_file", "", ""},
    {"security.publish_token_file", "", ""},
    {"security.registry_token_file", "", ""},
    {"security.console_token_file", "", ""},
    {"security.kodo_cleanup_token_file", "", ""},
    {"security.console_management_enabled", "false", ""},
    {"security.kodo_cleanup_enabled", "false", ""},
    {"security.tls.certificate_file", "", ""},
    {"security.tls.private_key_file", "", ""},
    {"security.tls.client_ca_file", "", ""},
    {"security.tls.require_client_certificate", "false", ""},
    {"security.tls.required", "false", ""},
    {"limits.max_body_bytes", "67108864", "RUSTQUEUE_MAX_BODY_BYTES"},
    {"limits.node_publish_inflight_bytes", "536870912", "RUSTQUEUE_NODE_PUBLISH_INFLIGHT_BYTES"},
    {"limits.connection_publish_inflight_bytes", "83886080", "RUSTQUEUE_CONNECTION_PUBLISH_INFLIGHT_BYTES"},
    {"limits.node_delivery_inflight_bytes", "536870912", "RUSTQUEUE_NODE_DELIVERY_INFLIGHT_BYTES"},
    {"limits.node_delivery_inflight_messages", "262144", "RUSTQUEUE_NODE_DELIVERY_INFLIGHT_MESSAGES"},
    {"limits.connection_delivery_inflight_bytes", "33554432", "RUSTQUEUE_CONNECTION_DELIVERY_INFLIGHT_BYTES"},
    {"limits.max_rdy_count", "2500", ""},
    {"limits.max_connections", "10000", ""},
    {"limits.client_handshake_timeout_ms", "5000", ""},
    {"limits.tcp_command_timeout_ms", "30000", "RUSTQUEUE_TCP_COMMAND_TIMEOUT_MS"},
    {"limits.heartbeat_interval_ms", "30000", ""},
    {"limits.max_heartbeat_interval_ms", "60000", ""},
    {"limits.output_buffer_size", "16384", ""},
    {"limits.max_output_buffer_size", "65536", ""},
    {"limits.output_buffer_timeout_ms", "250", ""},
    {"limits.min_output_buffer_timeout_ms", "25", ""},
    {"limits.max_output_buffer_timeout_ms", "30000", ""},
    {"limits.auth_response_bytes", "1048576", ""},
    {"limits.auth_timeout_ms", "5000", ""},
    {"limits.auth_max_ttl_seconds", "3600", ""},
    {"limits.auth_cache_max_entries", "10000", ""},
    {"limits.auth_memory_bytes", "268435456", ""},
    {"limits.http_body_timeout_ms", "30000", "RUSTQUEUE_HTTP_BODY_TIMEOUT_MS"},
    {"limits.disconnect_on_retriable_publish_error", "false", "RUSTQUEUE_DISCONNECT_ON_RETRIABLE_PUBLISH_ERROR"},
    {"metrics.detailed_queue_metrics", "false", "RUSTQUEUE_DETAILED_QUEUE_METRICS"},
    {"metrics.max_detailed_series", "1000", "RUSTQUEUE_MAX_DETAILED_METRIC_SERIES"},
    {"shutdown.grace_seconds", "30", ""},
    // page 05: D-11, D-19a, D-21, D-35, D-49a
    {"network.nsqlookupd_tcp_addresses", "[]", "RUSTQUEUE_NSQLOOKUPD_TCP_ADDRESSES"},
    {"network.io_threads", "0", "RUSTQUEUE_IO_THREADS"},
    {"storage.barrier", "auto", ""},
    {"queue.ephemeral_queue_messages", "10000", ""},
    {"security.tls.min_version", "tls1.2", ""},
    {"security.tls.client_auth", "none", ""},
    {"limits.max_http_connections", "1024", ""},
    {"limits.max_channel_consumers", "0", ""},
    {"limits.node_ephemeral_bytes", "67108864", ""},
};
// clang-format on

TEST(ConfigTable, HoldsEveryKeyWithItsDefaultAndItsVariable) {
  std::set<std::string_view> expected;
  for (const Row& row : kRows) {
    const ConfigKey* key = find_config_key(row.key);
    ASSERT_NE(key, nullptr) << row.key;
    EXPECT_EQ(key->environment, row.environment) << row.key;
    EXPECT_EQ(config_value_text(Config{}, row.key), row.value) << row.key;
    expected.insert(row.key);
  }
  for (const std::string_view key : config_keys()) EXPECT_TRUE(expected.contains(key)) << key;
}

// One "key = value" of the example file, in comments or not.
struct Shown {
  std::string value;
  std::string comment;  // what stands behind it and on the lines below it
  bool active = true;
};

bool is_key_character(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '.'; }

// By dotted name. A line of prose in a comment is no key: it has no "word = ".
std::map<std::string, Shown> read_example() {
  std::ifstream file(RQ_SOURCE_DIR "/rustqueued.example.toml");
  EXPECT_TRUE(file.is_open());
  std::map<std::string, Shown> shown;
  std::string line, section, last;
  while (std::getline(file, line)) {
    const bool commented = line.starts_with("# ");
    const std::string text = commented ? line.substr(2) : line;
    if (text.starts_with("[")) {
      section = text.substr(1, text.find(']') - 1) + ".";
      last.clear();
      continue;
    }
    std::size_t end = 0;
    while (end < text.size() && is_key_character(text[end])) ++end;
    if (end == 0 || text.substr(end, 3) != " = ") {
      const std::size_t hash = line.find('#');
      if (!last.empty() && hash != std::string::npos) shown[last].comment += line.substr(hash);
      continue;
    }
    last = section + text.substr(0, end);
    EXPECT_FALSE(shown.contains(last)) << last << " stands twice";
    const std::size_t hash = text.find(" #", end);
    std::string value = text.substr(end + 3, hash == std::string::npos ? hash : hash - end - 3);
    value.erase(value.find_last_not_of(' ') + 1);
    if (value.size() > 1 && value.front() == '"') value = value.substr(1, value.size() - 2);
    shown[last] = {value, hash == std::string::npos ? "" : text.substr(hash), !commented};
  }
  return shown;
}

TEST(ConfigExample, ShowsEveryKeyOnceWithItsVariableAndItsDefault) {
  // Thresholds for a developer's machine (D-73), and the volume of the image. Keys that are unset by default show a value to
  // copy.
  const std::set<std::string_view> differs = {"storage.disk_high_watermark_percent", "storage.disk_low_watermark_percent",
                                              "storage.min_free_bytes", "storage.data_path"};
  const std::map<std::string, Shown> shown = read_example();
  for (const Row& row : kRows) {
    const auto found = shown.find(row.key);
    ASSERT_NE(found, shown.end()) << row.key;
    const Shown& example = found->second;
    if (*row.environment != 0) {
      EXPECT_NE(example.comment.find(row.environment), std::string::npos) << row.key << " without " << row.environment;
    }
    if (differs.contains(row.key)) {
      const std::size_t at = example.comment.find("built-in default ");
      EXPECT_NE(example.comment.find(row.value, std::min(at, example.comment.size())), std::string::npos) << row.key;
    } else if (*row.value != 0) {
      EXPECT_EQ(example.value, row.value) << row.key;
    } else {
      EXPECT_FALSE(example.active) << row.key << " is unset by default";
    }
  }
  for (const auto& [key, example] : shown) EXPECT_NE(find_config_key(key), nullptr) << key;
}

// Page 05: an older reader refuses keys that it does not know, so none of ours is written by default. Nothing of [security] is
// either.
TEST(ConfigExample, KeysOfThisBrokerAloneAndSecurityStandInComments) {
  const std::set<std::string> ours = {
      "network.nsqlookupd_tcp_addresses", "network.io_threads",          "storage.barrier",
      "queue.ephemeral_queue_messages",   "limits.max_http_connections", "limits.max_channel_consumers",
      "limits.node_ephemeral_bytes"};
  for (const auto& [key, example] : read_example()) {
    if (ours.contains(key) || key.starts_with("security.") || key.find("kodo") != std::string::npos) {
      EXPECT_FALSE(example.active) << key;
    }
  }
}

}  // namespace
}  // namespace rq::broker
