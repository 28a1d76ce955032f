#include "core/broker/config_keys.h"

#include <array>
#include <limits>

namespace rq::broker {
namespace {

constexpr std::uint64_t kU8 = std::numeric_limits<std::uint8_t>::max();
constexpr std::uint64_t kU16 = std::numeric_limits<std::uint16_t>::max();
constexpr std::uint64_t kU32 = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint64_t kI32 = std::numeric_limits<std::int32_t>::max();
constexpr std::uint64_t kU64 = std::numeric_limits<std::uint64_t>::max();
constexpr auto kPlain = ConfigKey::Form::plain;
constexpr auto kAddress = ConfigKey::Form::address;

// clang-format off
#define RQ_KEY(path) #path
#define RQ_SLOT(path) +[](Config& config) -> ConfigSlot { return &config.path; }
#define RQ_INT(path, ceiling, env) {RQ_KEY(path), env, ceiling, kPlain, RQ_SLOT(path)}
#define RQ_VAL(path, env) {RQ_KEY(path), env, 0, kPlain, RQ_SLOT(path)}
#define RQ_ADDR(path, env) {RQ_KEY(path), env, 0, kAddress, RQ_SLOT(path)}

constexpr ConfigKey kTable[] = {
    RQ_VAL(log_format, "RUSTQUEUE_LOG_FORMAT"),

    RQ_INT(node.id, kU64, "RUSTQUEUE_NODE_ID"),
    RQ_VAL(node.broadcast_address, "RUSTQUEUE_BROADCAST_ADDRESS"),

    RQ_ADDR(network.tcp_address, "RUSTQUEUE_TCP_ADDRESS"),
    RQ_ADDR(network.http_address, "RUSTQUEUE_HTTP_ADDRESS"),
    RQ_ADDR(network.kodo_http_address, "RUSTQUEUE_KODO_HTTP_ADDRESS"),
    RQ_INT(network.advertised_tcp_port, kU16, ""),
    RQ_INT(network.advertised_http_port, kU16, ""),
    RQ_VAL(network.snappy_enabled, ""),
    RQ_VAL(network.deflate_enabled, ""),
    RQ_INT(network.max_deflate_level, kI32, ""),
    RQ_VAL(network.nsqlookupd_tcp_addresses, "RUSTQUEUE_NSQLOOKUPD_TCP_ADDRESSES"),
    RQ_INT(network.io_threads, kU64, "RUSTQUEUE_IO_THREADS"),

    RQ_VAL(websocket.enabled, "RUSTQUEUE_WEBSOCKET_ENABLED"),
    RQ_INT(websocket.max_connections, kU64, "RUSTQUEUE_WEBSOCKET_MAX_CONNECTIONS"),
    RQ_INT(websocket.max_connections_per_topic, kU64, "RUSTQUEUE_WEBSOCKET_MAX_CONNECTIONS_PER_TOPIC"),
    RQ_INT(websocket.frame_inflight_bytes, kU64, "RUSTQUEUE_WEBSOCKET_FRAME_INFLIGHT_BYTES"),
    RQ_VAL(websocket.allowed_origins, "RUSTQUEUE_WEBSOCKET_ALLOWED_ORIGINS"),

    RQ_VAL(storage.data_path, "RUSTQUEUE_DATA_PATH"),
    RQ_INT(storage.feature_level, kU32, "RUSTQUEUE_STORAGE_FEATURE_LEVEL"),
    RQ_INT(storage.max_segment_bytes, kU64, ""),
    RQ_INT(storage.scrub_interval_seconds, kU64, ""),
    RQ_INT(storage.scrub_bytes_per_second, kU64, "RUSTQUEUE_SCRUB_BYTES_PER_SECOND"),
    RQ_INT(storage.entry_cache_bytes, kU64, ""),
    RQ_INT(storage.message_index_cache_bytes, kU64, "RUSTQUEUE_MESSAGE_INDEX_CACHE_BYTES"),
    RQ_INT(storage.payload_read_workers, kU64, ""),
    RQ_INT(storage.payload_read_queue, kU64, ""),
    RQ_INT(storage.maintenance_startup_delay_seconds, kU64, "RUSTQUEUE_MAINTENANCE_STARTUP_DELAY_SECONDS"),
    RQ_INT(storage.disk_high_watermark_percent, kU8, ""),
    RQ_INT(storage.disk_low_watermark_percent, kU8, ""),
    RQ_INT(storage.min_free_bytes, kU64, ""),
    RQ_VAL(storage.protective_eviction_enabled, "RUSTQUEUE_PROTECTIVE_EVICTION_ENABLED"),
    RQ_INT(storage.disk_pressure_grace_seconds, kU64, "RUSTQUEUE_DISK_PRESSURE_GRACE_SECONDS"),
    RQ_VAL(storage.barrier, ""),

    RQ_INT(queue.max_message_bytes, kU64, "RUSTQUEUE_MAX_MESSAGE_BYTES"),
    RQ_INT(queue.message_timeout_ms, kU64, ""),
    RQ_INT(queue.max_message_timeout_ms, kU64, ""),
    RQ_INT(queue.max_defer_ms, kU64, ""),
    RQ_INT(queue.max_ack_gap, kU64, ""),
    RQ_INT(queue.max_topics, kU64, "RUSTQUEUE_MAX_TOPICS"),
    RQ_INT(queue.max_publish_workers, kU64, "RUSTQUEUE_MAX_PUBLISH_WORKERS"),
    RQ_INT(queue.publish_worker_idle_seconds, kU64, "RUSTQUEUE_PUBLISH_WORKER_IDLE_SECONDS"),
    RQ_VAL(queue.publish_ack_mode, "RUSTQUEUE_PUBLISH_ACK_MODE"),
    RQ_INT(queue.relaxed_sync_messages, kU64, "RUSTQUEUE_RELAXED_SYNC_MESSAGES"),
    RQ_INT(queue.relaxed_sync_bytes, kU64, "RUSTQUEUE_RELAXED_SYNC_BYTES"),
    RQ_INT(queue.relaxed_sync_interval_ms, kU64, "RUSTQUEUE_RELAXED_SYNC_INTERVAL_MS"),
    RQ_INT(queue.bootstrap_retention_seconds, kU64, "RUSTQUEUE_BOOTSTRAP_RETENTION_SECONDS"),
    RQ_INT(queue.message_retention_seconds, kU64, "RUSTQUEUE_MESSAGE_RETENTION_SECONDS"),
    RQ_INT(queue.max_delivery_attempts, kU16, "RUSTQUEUE_MAX_DELIVERY_ATTEMPTS"),
    RQ_VAL(queue.dead_letter_suffix, "RUSTQUEUE_DEAD_LETTER_SUFFIX"),
    RQ_INT(queue.ephemeral_queue_messages, kU64, ""),

    RQ_VAL(security.auth_http_addresses, ""),
    RQ_VAL(security.admin_token_file, ""),
    RQ_VAL(security.publish_token_file, ""),
    RQ_VAL(security.registry_token_file, ""),
    RQ_VAL(security.console_token_file, ""),
    RQ_VAL(security.kodo_cleanup_token_file, ""),
    RQ_VAL(security.console_management_enabled, ""),
    RQ_VAL(security.kodo_cleanup_enabled, ""),
    RQ_VAL(security.tls.certificate_file, ""),
    RQ_VAL(security.tls.private_key_file, ""),
    RQ_VAL(security.tls.client_ca_file, ""),
    RQ_VAL(security.tls.require_client_certificate, ""),
    RQ_VAL(security.tls.required, ""),
    RQ_VAL(security.tls.min_version, ""),
    RQ_VAL(security.tls.client_auth, ""),

    RQ_INT(limits.max_body_bytes, kU64, "RUSTQUEUE_MAX_BODY_BYTES"),
    RQ_INT(limits.node_publish_inflight_bytes, kU64, "RUSTQUEUE_NODE_PUBLISH_INFLIGHT_BYTES"),
    RQ_INT(limits.connection_publish_inflight_bytes, kU64, "RUSTQUEUE_CONNECTION_PUBLISH_INFLIGHT_BYTES"),
    RQ_INT(limits.node_delivery_inflight_bytes, kU64, "RUSTQUEUE_NODE_DELIVERY_INFLIGHT_BYTES"),
    RQ_INT(limits.node_delivery_inflight_messages, kU64, "RUSTQUEUE_NODE_DELIVERY_INFLIGHT_MESSAGES"),
    RQ_INT(limits.connection_delivery_inflight_bytes, kU64, "RUSTQUEUE_CONNECTION_DELIVERY_INFLIGHT_BYTES"),
    RQ_INT(limits.max_rdy_count, kU64, ""),
    RQ_INT(limits.max_connections, kU64, ""),
    RQ_INT(limits.max_http_connections, kU64, ""),
    RQ_INT(limits.max_channel_consumers, kU64, ""),
    RQ_INT(limits.node_ephemeral_bytes, kU64, ""),
    RQ_INT(limits.client_handshake_timeout_ms, kU64, ""),
    RQ_INT(limits.tcp_command_timeout_ms, kU64, "RUSTQUEUE_TCP_COMMAND_TIMEOUT_MS"),
    RQ_INT(limits.heartbeat_interval_ms, kU64, ""),
    RQ_INT(limits.max_heartbeat_interval_ms, kU64, ""),
    RQ_INT(limits.output_buffer_size, kU64, ""),
    RQ_INT(limits.max_output_buffer_size, kU64, ""),
    RQ_INT(limits.output_buffer_timeout_ms, kU64, ""),
    RQ_INT(limits.min_output_buffer_timeout_ms, kU64, ""),
    RQ_INT(limits.max_output_buffer_timeout_ms, kU64, ""),
    RQ_INT(limits.auth_response_bytes, kU64, ""),
    RQ_INT(limits.auth_timeout_ms, kU64, ""),
    RQ_INT(limits.auth_max_ttl_seconds, kU64, ""),
    RQ_INT(limits.auth_cache_max_entries, kU64, ""),
    RQ_INT(limits.auth_memory_bytes, kU64, ""),
    RQ_INT(limits.http_body_timeout_ms, kU64, "RUSTQUEUE_HTTP_BODY_TIMEOUT_MS"),
    RQ_VAL(limits.disconnect_on_retriable_publish_error, "RUSTQUEUE_DISCONNECT_ON_RETRIABLE_PUBLISH_ERROR"),

    RQ_VAL(metrics.detailed_queue_metrics, "RUSTQUEUE_DETAILED_QUEUE_METRICS"),
    RQ_INT(metrics.max_detailed_series, kU64, "RUSTQUEUE_MAX_DETAILED_METRIC_SERIES"),

    RQ_INT(shutdown.grace_seconds, kU64, ""),
};
// clang-format on

constexpr std::array<std::string_view, 10> kSections = {"node",     "network",      "websocket", "storage", "queue",
                                                        "security", "security.tls", "limits",    "metrics", "shutdown"};

constexpr std::array<std::string_view, 3> kAckModes = {"durable", "write_ack", "nsq_relaxed"};
constexpr std::array<std::string_view, 3> kBarriers = {"auto", "fdatasync", "syncfs"};
constexpr std::array<std::string_view, 4> kClientAuths = {"none", "request", "require", "require-verify"};
constexpr std::array<std::string_view, 2> kTlsVersions = {"tls1.2", "tls1.3"};

std::string list_text(const std::vector<std::string>& items) {
  std::string out = "[";
  for (const std::string& item : items) {
    if (out.size() > 1) out += ", ";
    out += '"';
    out += item;
    out += '"';
  }
  return out + "]";
}

struct Writer {
  std::string operator()(std::uint64_t* v) const { return std::to_string(*v); }
  std::string operator()(bool* v) const { return *v ? "true" : "false"; }
  std::string operator()(std::string* v) const { return *v; }
  std::string operator()(std::optional<std::string>* v) const { return v->value_or(""); }
  std::string operator()(std::vector<std::string>* v) const { return list_text(*v); }
  template <class Enum>
  std::string operator()(Enum* v) const {
    return std::string(enum_names(v)[static_cast<std::size_t>(*v)]);
  }
};

}  // namespace

std::span<const ConfigKey> config_table() { return kTable; }

const ConfigKey* find_config_key(std::string_view name) {
  for (const ConfigKey& key : kTable)
    if (key.name == name) return &key;
  return nullptr;
}

bool is_config_section(std::string_view name) {
  for (std::string_view section : kSections)
    if (section == name) return true;
  return false;
}

std::span<const std::string_view> enum_names(const rq::queue::AckMode*) { return kAckModes; }
std::span<const std::string_view> enum_names(const BarrierStrategy*) { return kBarriers; }
std::span<const std::string_view> enum_names(const ClientAuth*) { return kClientAuths; }
std::span<const std::string_view> enum_names(const TlsVersion*) { return kTlsVersions; }

std::string slot_text(const ConfigSlot& slot) { return std::visit(Writer{}, slot); }

std::vector<std::string_view> config_keys() {
  std::vector<std::string_view> names;
  for (const ConfigKey& key : kTable) names.push_back(key.name);
  return names;
}

std::string config_value_text(const Config& config, std::string_view name) {
  const ConfigKey* key = find_config_key(name);
  if (key == nullptr) return {};
  Config copy = config;
  return slot_text(key->slot(copy));
}

// Keys or whole sections without a feature behind them in this build; the only place that lists them.
std::vector<std::string> without_effect(const Config& config) {
  static constexpr std::string_view kAbsent[] = {
      "security.kodo_cleanup_token_file",
  };
  Config actual = config;
  Config defaults;
  std::vector<std::string> names;
  for (const ConfigKey& key : kTable) {
    bool absent = false;
    for (std::string_view name : kAbsent) absent = absent || key.name.substr(0, name.size()) == name;
    if (absent && slot_text(key.slot(actual)) != slot_text(key.slot(defaults))) names.emplace_back(key.name);
  }
  return names;
}

}  // namespace rq::broker
