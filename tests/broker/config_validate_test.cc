// Rules V1 to V30 of page 31 section 2.12, each violated alone, at both bounds.
#include <gtest/gtest.h>

#include "core/broker/config.h"

namespace rq::broker {
namespace {

using Values = std::vector<std::pair<std::string, std::uint64_t>>;
constexpr std::uint64_t kI64 = 9'223'372'036'854'775'807ull;
constexpr std::uint64_t kSemaphore = 2'305'843'009'213'693'951ull;

// Integers go in through the environment-free file form where they fit, else directly.
Config with(const Values& values) {
  ConfigFile file;
  Config config;
  for (const auto& [key, value] : values)
    if (value <= kI64) file.emplace_back(key, static_cast<std::int64_t>(value));
  auto loaded = load_config(file, {});
  EXPECT_TRUE(loaded.has_value()) << loaded.error();
  config = loaded.value_or(Config{});
  for (const auto& [key, value] : values) {
    if (value <= kI64) continue;
    if (key == "queue.max_message_timeout_ms") config.queue.max_message_timeout_ms = value;
    if (key == "queue.max_defer_ms") config.queue.max_defer_ms = value;
    if (key == "limits.max_heartbeat_interval_ms") config.limits.max_heartbeat_interval_ms = value;
    if (key == "limits.max_output_buffer_size") config.limits.max_output_buffer_size = value;
    if (key == "limits.max_output_buffer_timeout_ms") config.limits.max_output_buffer_timeout_ms = value;
  }
  return config;
}

struct Case {
  const char* rule;
  const char* key;  // must be named
  Values good;      // the bound itself
  Values bad;       // one beyond it
};

const std::vector<Case>& cases() {
  static const std::vector<Case> kCases = {
      {"V1", "node.id", {{"node.id", 1}}, {{"node.id", 0}}},
      {"V1", "node.id", {{"node.id", 65'535}}, {{"node.id", 65'536}}},
      {"V3", "queue.max_message_bytes", {{"queue.max_message_bytes", 1}}, {{"queue.max_message_bytes", 0}}},
      {"V3",
       "queue.max_message_bytes",
       {{"queue.max_message_bytes", 1'000}, {"limits.max_body_bytes", 1'000}},
       {{"queue.max_message_bytes", 1'001}, {"limits.max_body_bytes", 1'000}}},
      {"V3", "queue.max_message_bytes", {}, {{"queue.max_message_bytes", 104'857'601}}},
      {"V4",
       "queue.bootstrap_retention_seconds",
       {{"queue.bootstrap_retention_seconds", 1}},
       {{"queue.bootstrap_retention_seconds", 0}}},
      {"V5", "queue.message_timeout_ms", {{"queue.message_timeout_ms", 1}}, {{"queue.message_timeout_ms", 0}}},
      {"V5", "queue.message_timeout_ms", {{"queue.message_timeout_ms", 900'000}}, {{"queue.message_timeout_ms", 900'001}}},
      {"V5",
       "queue.max_message_timeout_ms",
       {{"queue.max_message_timeout_ms", 1'000}, {"queue.message_timeout_ms", 1'000}},
       {{"queue.max_message_timeout_ms", 999}, {"queue.message_timeout_ms", 999}}},
      {"V5", "queue.max_message_timeout_ms", {}, {{"queue.max_message_timeout_ms", kI64 + 1}}},
      {"V5", "queue.max_defer_ms", {{"queue.max_defer_ms", 0}}, {{"queue.max_defer_ms", kI64 + 1}}},
      {"V6", "queue.max_ack_gap", {{"queue.max_ack_gap", 1}}, {{"queue.max_ack_gap", 0}}},
      {"V6", "queue.max_topics", {{"queue.max_topics", 1}}, {{"queue.max_topics", 0}}},
      {"V6", "queue.max_publish_workers", {{"queue.max_publish_workers", 1}}, {{"queue.max_publish_workers", 0}}},
      {"V6",
       "queue.publish_worker_idle_seconds",
       {{"queue.publish_worker_idle_seconds", 1}},
       {{"queue.publish_worker_idle_seconds", 0}}},
      {"V6", "queue.ephemeral_queue_messages", {{"queue.ephemeral_queue_messages", 1}}, {{"queue.ephemeral_queue_messages", 0}}},
      {"V7", "limits.max_body_bytes", {}, {{"queue.max_message_bytes", 1}, {"limits.max_body_bytes", 134'217'729}}},
      {"V8",
       "limits.connection_publish_inflight_bytes",
       {{"limits.connection_publish_inflight_bytes", 75'497'524}},
       {{"limits.connection_publish_inflight_bytes", 75'497'523}}},
      {"V8",
       "limits.node_publish_inflight_bytes",
       {{"limits.node_publish_inflight_bytes", 83'886'080}},
       {{"limits.node_publish_inflight_bytes", 83'886'079}}},
      {"V8",
       "limits.node_publish_inflight_bytes",
       {{"limits.node_publish_inflight_bytes", 17'592'186'040'320}},
       {{"limits.node_publish_inflight_bytes", 17'592'186'040'321}}},
      {"V9",
       "limits.auth_memory_bytes",
       {{"limits.auth_memory_bytes", 17'592'186'040'320}},
       {{"limits.auth_memory_bytes", 17'592'186'040'321}}},
      {"V9",
       "limits.auth_response_bytes",
       {{"limits.auth_response_bytes", 67'108'864}},
       {{"limits.auth_response_bytes", 67'108'865}}},
      {"V10",
       "limits.connection_delivery_inflight_bytes",
       {{"limits.connection_delivery_inflight_bytes", 20'971'520}},
       {{"limits.connection_delivery_inflight_bytes", 20'971'519}}},
      {"V10",
       "limits.node_delivery_inflight_bytes",
       {{"limits.node_delivery_inflight_bytes", 67'108'864}},
       {{"limits.node_delivery_inflight_bytes", 67'108'863}}},
      {"V10",
       "limits.node_delivery_inflight_bytes",
       {{"limits.node_delivery_inflight_bytes", 4'294'967'295}},
       {{"limits.node_delivery_inflight_bytes", 4'294'967'296}}},
      {"V10",
       "limits.connection_delivery_inflight_bytes",
       {{"storage.feature_level", 2}, {"limits.connection_delivery_inflight_bytes", 104'857'600}},
       {{"storage.feature_level", 2}, {"limits.connection_delivery_inflight_bytes", 104'857'599}}},
      {"V11", "storage.entry_cache_bytes", {{"storage.entry_cache_bytes", 1}}, {{"storage.entry_cache_bytes", 0}}},
      {"V11",
       "storage.message_index_cache_bytes",
       {{"storage.message_index_cache_bytes", 65'536}},
       {{"storage.message_index_cache_bytes", 65'535}}},
      {"V12", "queue.max_delivery_attempts", {{"queue.max_delivery_attempts", 1}}, {{"queue.max_delivery_attempts", 0}}},
      {"V14",
       "storage.max_segment_bytes",
       {{"storage.max_segment_bytes", 67'108'928}},
       {{"storage.max_segment_bytes", 67'108'927}}},
      {"V15", "storage.feature_level", {{"storage.feature_level", 1}}, {{"storage.feature_level", 0}}},
      {"V15",
       "storage.feature_level",
       {{"storage.feature_level", 2}, {"limits.connection_delivery_inflight_bytes", 104'857'600}},
       {{"storage.feature_level", 3}, {"limits.connection_delivery_inflight_bytes", 104'857'600}}},
      {"V16", "storage.scrub_interval_seconds", {{"storage.scrub_interval_seconds", 1}}, {{"storage.scrub_interval_seconds", 0}}},
      {"V16", "storage.scrub_bytes_per_second", {{"storage.scrub_bytes_per_second", 1}}, {{"storage.scrub_bytes_per_second", 0}}},
      {"V16", "storage.payload_read_queue", {{"storage.payload_read_queue", 1}}, {{"storage.payload_read_queue", 0}}},
      {"V17",
       "storage.disk_high_watermark_percent",
       {{"storage.disk_high_watermark_percent", 100}},
       {{"storage.disk_high_watermark_percent", 101}}},
      {"V17",
       "storage.disk_low_watermark_percent",
       {{"storage.disk_low_watermark_percent", 84}},
       {{"storage.disk_low_watermark_percent", 85}}},
      {"V18",
       "limits.client_handshake_timeout_ms",
       {{"limits.client_handshake_timeout_ms", 1}},
       {{"limits.client_handshake_timeout_ms", 0}}},
      {"V18", "limits.tcp_command_timeout_ms", {{"limits.tcp_command_timeout_ms", 1}}, {{"limits.tcp_command_timeout_ms", 0}}},
      {"V18", "limits.auth_timeout_ms", {{"limits.auth_timeout_ms", 1}}, {{"limits.auth_timeout_ms", 0}}},
      {"V18", "limits.http_body_timeout_ms", {{"limits.http_body_timeout_ms", 1}}, {{"limits.http_body_timeout_ms", 0}}},
      {"V18", "limits.auth_max_ttl_seconds", {{"limits.auth_max_ttl_seconds", 1}}, {{"limits.auth_max_ttl_seconds", 0}}},
      {"V18", "limits.auth_cache_max_entries", {{"limits.auth_cache_max_entries", 1}}, {{"limits.auth_cache_max_entries", 0}}},
      {"V18", "limits.auth_memory_bytes", {}, {{"limits.auth_memory_bytes", 0}, {"limits.auth_response_bytes", 0}}},
      {"V18", "limits.auth_response_bytes", {{"limits.auth_response_bytes", 1}}, {{"limits.auth_response_bytes", 0}}},
      {"V18", "limits.max_connections", {{"limits.max_connections", 1}}, {{"limits.max_connections", 0}}},
      {"V18", "limits.max_http_connections", {{"limits.max_http_connections", 1}}, {{"limits.max_http_connections", 0}}},
      {"V18", "limits.max_rdy_count", {{"limits.max_rdy_count", 1}}, {{"limits.max_rdy_count", 0}}},
      {"V18", "limits.node_ephemeral_bytes", {{"limits.node_ephemeral_bytes", 1}}, {{"limits.node_ephemeral_bytes", 0}}},
      {"V18a", "shutdown.grace_seconds", {{"shutdown.grace_seconds", 1}}, {{"shutdown.grace_seconds", 0}}},
      {"V18b", "metrics.max_detailed_series", {{"metrics.max_detailed_series", 1}}, {{"metrics.max_detailed_series", 0}}},
      {"V19", "network.max_deflate_level", {{"network.max_deflate_level", 1}}, {{"network.max_deflate_level", 0}}},
      {"V19", "network.max_deflate_level", {{"network.max_deflate_level", 9}}, {{"network.max_deflate_level", 10}}},
      {"V19a", "network.io_threads", {{"network.io_threads", 64}}, {{"network.io_threads", 65}}},
      {"V20",
       "websocket.max_connections",
       {{"websocket.max_connections", kSemaphore}},
       {{"websocket.max_connections", kSemaphore + 1}}},
      {"V20", "websocket.max_connections", {}, {{"websocket.max_connections", 0}}},
      {"V20",
       "websocket.max_connections_per_topic",
       {{"websocket.max_connections_per_topic", 1}},
       {{"websocket.max_connections_per_topic", 0}}},
      {"V20",
       "websocket.max_connections_per_topic",
       {{"websocket.max_connections_per_topic", 1'024}},
       {{"websocket.max_connections_per_topic", 1'025}}},
      {"V20",
       "websocket.frame_inflight_bytes",
       {{"websocket.frame_inflight_bytes", 20'971'544}},
       {{"websocket.frame_inflight_bytes", 20'971'543}}},
      {"V20",
       "websocket.frame_inflight_bytes",
       {{"websocket.frame_inflight_bytes", 4'294'967'295}},
       {{"websocket.frame_inflight_bytes", 4'294'967'296}}},
      {"V23", "limits.heartbeat_interval_ms", {{"limits.heartbeat_interval_ms", 1'000}}, {{"limits.heartbeat_interval_ms", 999}}},
      {"V23",
       "limits.heartbeat_interval_ms",
       {{"limits.heartbeat_interval_ms", 60'000}},
       {{"limits.heartbeat_interval_ms", 60'001}}},
      {"V23", "limits.max_heartbeat_interval_ms", {}, {{"limits.max_heartbeat_interval_ms", kI64 + 1}}},
      {"V23", "limits.output_buffer_size", {{"limits.output_buffer_size", 64}}, {{"limits.output_buffer_size", 63}}},
      {"V23", "limits.output_buffer_size", {{"limits.output_buffer_size", 65'536}}, {{"limits.output_buffer_size", 65'537}}},
      {"V23",
       "limits.max_output_buffer_size",
       {{"limits.max_output_buffer_size", kI64}},
       {{"limits.max_output_buffer_size", kI64 + 1}}},
      {"V23",
       "limits.min_output_buffer_timeout_ms",
       {{"limits.min_output_buffer_timeout_ms", 1}},
       {{"limits.min_output_buffer_timeout_ms", 0}}},
      {"V23",
       "limits.output_buffer_timeout_ms",
       {{"limits.output_buffer_timeout_ms", 25}},
       {{"limits.output_buffer_timeout_ms", 24}}},
      {"V23",
       "limits.output_buffer_timeout_ms",
       {{"limits.output_buffer_timeout_ms", 30'000}},
       {{"limits.output_buffer_timeout_ms", 30'001}}},
      {"V23", "limits.max_output_buffer_timeout_ms", {}, {{"limits.max_output_buffer_timeout_ms", kI64 + 1}}},
      {"V24", "limits.max_connections", {{"limits.max_connections", kSemaphore}}, {{"limits.max_connections", kSemaphore + 1}}},
      {"V24",
       "limits.node_delivery_inflight_messages",
       {{"limits.node_delivery_inflight_messages", 1}},
       {{"limits.node_delivery_inflight_messages", 0}}},
      {"V24",
       "limits.node_delivery_inflight_messages",
       {{"limits.node_delivery_inflight_messages", kSemaphore}},
       {{"limits.node_delivery_inflight_messages", kSemaphore + 1}}},
      {"V25", "shutdown.grace_seconds", {{"shutdown.grace_seconds", 4'611'686'018}}, {{"shutdown.grace_seconds", 4'611'686'019}}},
      {"V25",
       "limits.http_body_timeout_ms",
       {{"limits.http_body_timeout_ms", 4'611'686'018'427}},
       {{"limits.http_body_timeout_ms", 4'611'686'018'428}}},
      {"V25",
       "limits.max_heartbeat_interval_ms",
       {{"limits.max_heartbeat_interval_ms", 36'028'797'018}},
       {{"limits.max_heartbeat_interval_ms", 36'028'797'019}}},
      {"V25",
       "queue.max_message_timeout_ms",
       {{"queue.max_message_timeout_ms", 4'611'685'988'427}},
       {{"queue.max_message_timeout_ms", 4'611'685'988'428}}},
      {"V25",
       "storage.maintenance_startup_delay_seconds",
       {{"storage.maintenance_startup_delay_seconds", 0}},
       {{"storage.maintenance_startup_delay_seconds", 4'611'686'019}}},
  };
  return kCases;
}

// "V9: " and "V9" of "V9:" but not of "V90".
bool is_about(const std::optional<std::string>& failure, std::string_view rule, std::string_view key) {
  return failure && failure->starts_with(std::string(rule) + ": ") && failure->find(key) != std::string::npos;
}

TEST(ConfigValidate, B_04_EachRuleViolatedAloneNamesItsKeyAtBothBounds) {
  for (const Case& c : cases()) {
    EXPECT_EQ(validate(with(c.good)), std::nullopt) << c.rule << " " << c.key;
    const auto failure = validate(with(c.bad));
    EXPECT_TRUE(is_about(failure, c.rule, c.key)) << c.rule << " " << c.key << ": " << failure.value_or("no failure");
  }
}

TEST(ConfigValidate, B_04_TextRulesNameTheirKeys) {
  Config c;
  c.node.broadcast_address = " \t";
  EXPECT_TRUE(is_about(validate(c), "V2", "node.broadcast_address"));
  for (const char* suffix : {"", "12345678901234567", ".D/Q", "\xC3\xA4", "#e"}) {
    c = {};
    c.queue.dead_letter_suffix = suffix;
    EXPECT_TRUE(is_about(validate(c), "V13", "queue.dead_letter_suffix")) << suffix;
  }
  for (const char* suffix : {"x", "1234567890123456", ".DLQ", "_-"}) {
    c = {};
    c.queue.dead_letter_suffix = suffix;
    EXPECT_EQ(validate(c), std::nullopt) << suffix;
  }
  c = {};
  c.security.kodo_cleanup_enabled = true;
  EXPECT_TRUE(is_about(validate(c), "V22", "security.kodo_cleanup_enabled"));
  c = {};
  c.network.kodo_http_address = "0.0.0.0:4152";
  EXPECT_TRUE(is_about(validate(c), "V22", "network.kodo_http_address"));
  c = {};
  c.log_format = "xml";
  EXPECT_TRUE(is_about(validate(c), "V26", "log_format"));
  c.log_format = "json";
  EXPECT_EQ(validate(c), std::nullopt);
  c = {};
  c.security.console_management_enabled = true;
  EXPECT_TRUE(is_about(validate(c), "V29", "security.console_token_file"));
}

TEST(ConfigValidate, B_04_RelaxedModesNeedTheirBounds) {
  for (auto mode : {queue::AckMode::write_ack, queue::AckMode::nsq_relaxed}) {
    Config c;
    c.queue.relaxed_sync_messages = 0;
    EXPECT_EQ(validate(c), std::nullopt);
    c.queue.publish_ack_mode = mode;
    EXPECT_TRUE(is_about(validate(c), "V6", "queue.relaxed_sync_messages"));
    c.queue.relaxed_sync_messages = 1;
    c.queue.relaxed_sync_bytes = 4'095;
    EXPECT_TRUE(is_about(validate(c), "V6", "queue.relaxed_sync_bytes"));
    c.queue.relaxed_sync_bytes = 4'096;
    c.queue.relaxed_sync_interval_ms = 0;
    EXPECT_TRUE(is_about(validate(c), "V6", "queue.relaxed_sync_interval_ms"));
    c.queue.relaxed_sync_interval_ms = 1;
    EXPECT_EQ(validate(c), std::nullopt);
  }
}

struct Files final : PathProbe {
  bool exists(const std::string& path) const override { return path == "file" || path == "directory"; }
  bool regular_file(const std::string& path) const override { return path == "file"; }
};

TEST(ConfigValidate, B_04_FilesMustExist) {
  Files files;
  Config c;
  c.security.tls.present = true;
  c.security.tls.private_key_file = "file";
  EXPECT_TRUE(is_about(validate(c, &files), "V27", "security.tls.certificate_file"));
  c.security.tls.certificate_file = "file";
  c.security.tls.private_key_file = "none";
  EXPECT_TRUE(is_about(validate(c, &files), "V27", "security.tls.private_key_file"));
  c.security.tls.private_key_file = "file";
  c.security.tls.client_ca_file = "none";
  EXPECT_EQ(validate(c, &files), std::nullopt);
  c.security.tls.require_client_certificate = true;
  EXPECT_TRUE(is_about(validate(c, &files), "V27", "security.tls.client_ca_file"));
  c.security.tls.client_ca_file = "file";
  EXPECT_EQ(validate(c, &files), std::nullopt);
  for (auto member :
       {&Config::Security::admin_token_file, &Config::Security::publish_token_file, &Config::Security::registry_token_file,
        &Config::Security::console_token_file, &Config::Security::kodo_cleanup_token_file}) {
    Config t;
    t.security.*member = "directory";
    EXPECT_TRUE(is_about(validate(t, &files), "V28", "token_file"));
    t.security.*member = "file";
    EXPECT_EQ(validate(t, &files), std::nullopt);
  }
}

TEST(ConfigValidate, B_07_OriginsAreSchemeAndAuthorityFeedEnabledOrNot) {
  for (bool enabled : {false, true}) {
    for (const char* origin :
         {"*", "https://a/", "https://a?b", "a.example", "https://", "http://*.a", "ftp://a", "https://a#b"}) {
      Config c;
      c.websocket.enabled = enabled;
      c.websocket.allowed_origins = {"https://ok.example:8443", origin};
      EXPECT_TRUE(is_about(validate(c), "V21", "websocket.allowed_origins")) << origin;
    }
  }
  Config c;
  c.websocket.allowed_origins = {"http://a", "https://a:1"};
  EXPECT_EQ(validate(c), std::nullopt);
}

TEST(ConfigValidate, B_08_TheLargeProfileNeedsFeatureLevel2) {
  Values large = {{"storage.max_segment_bytes", 268'435'456},
                  {"queue.max_message_bytes", 104'857'600},
                  {"limits.max_body_bytes", 134'217'728},
                  {"limits.connection_publish_inflight_bytes", 167'772'160},
                  {"limits.node_publish_inflight_bytes", 1'073'741'824},
                  {"limits.connection_delivery_inflight_bytes", 134'217'728},
                  {"limits.node_delivery_inflight_bytes", 1'073'741'824},
                  {"storage.feature_level", 1}};
  EXPECT_TRUE(is_about(validate(with(large)), "V30", "storage.feature_level"));
  large.back().second = 2;
  EXPECT_EQ(validate(with(large)), std::nullopt);
}

}  // namespace
}  // namespace rq::broker
