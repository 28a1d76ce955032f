// The Broker's configuration: every key of page 31 section 2 and of D-49a with its default. Pure: the TOML file arrives as a
// flat list of dotted keys, the environment as a map, and facts about files through a probe.
//
//  I1 One table (config_keys.cc) names every key with its type, its environment variable and its place in Config; file,
//     environment and messages all go through it.
//  I2 Precedence: defaults < file < environment. Unknown keys, unknown sections and wrong types are errors that name the key.
//  I3 A Config for which validate() found nothing can be used without further range checks: no sum of two of its values
//     overflows, every duration fits a signed 64-bit count of nanoseconds.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>
#include <variant>
#include <vector>

#include "core/queue/engine.h"

namespace rq::broker {

inline constexpr std::uint64_t kMessageBytesCeiling = 104'857'600;  // 100 MiB, no configuration goes above
inline constexpr std::uint64_t kBatchBytesCeiling = 134'217'728;    // 128 MiB
inline constexpr std::uint64_t kWriterLevelMax = 2;
inline constexpr std::uint64_t kIoThreadsMax = 64;

enum class BarrierStrategy : std::uint8_t { automatic, fdatasync, syncfs };
enum class ClientAuth : std::uint8_t { none, request, require, require_verify };
enum class TlsVersion : std::uint8_t { tls1_2, tls1_3 };

struct Config {
  std::string log_format = "text";  // text | json, checked by validate() only, since logging starts before it

  struct Node {
    std::uint64_t id = 1;
    std::string broadcast_address = "127.0.0.1";
  } node;

  struct Network {
    std::string tcp_address = "0.0.0.0:4150";
    std::string http_address = "0.0.0.0:4151";
    std::optional<std::string> kodo_http_address;
    std::uint64_t advertised_tcp_port = 4150;
    std::uint64_t advertised_http_port = 4151;
    bool snappy_enabled = true;
    bool deflate_enabled = true;
    std::uint64_t max_deflate_level = 6;
    std::vector<std::string> nsqlookupd_tcp_addresses;  // D-19a
    std::uint64_t io_threads = 0;                       // 0: sockets and TLS on the loop; at most kIoThreadsMax
  } network;

  struct Websocket {
    bool enabled = false;
    std::uint64_t max_connections = 1'024;
    std::uint64_t max_connections_per_topic = 256;
    std::uint64_t frame_inflight_bytes = 134'217'728;
    std::vector<std::string> allowed_origins;
  } websocket;

  struct Storage {
    std::string data_path = "data";
    std::uint64_t feature_level = 1;
    std::uint64_t max_segment_bytes = 104'857'600;
    std::uint64_t scrub_interval_seconds = 3'600;
    std::uint64_t scrub_bytes_per_second = 67'108'864;
    std::uint64_t entry_cache_bytes = 67'108'864;
    std::uint64_t message_index_cache_bytes = 67'108'864;
    std::uint64_t payload_read_workers = 0;
    std::uint64_t payload_read_queue = 4'096;
    std::uint64_t maintenance_startup_delay_seconds = 30;
    std::uint64_t disk_high_watermark_percent = 85;
    std::uint64_t disk_low_watermark_percent = 75;
    std::uint64_t min_free_bytes = 10'737'418'240;
    bool protective_eviction_enabled = false;
    std::uint64_t disk_pressure_grace_seconds = 60;
    BarrierStrategy barrier = BarrierStrategy::automatic;  // D-49a
  } storage;

  struct Queue {
    std::uint64_t max_message_bytes = 20'971'520;
    std::uint64_t message_timeout_ms = 60'000;
    std::uint64_t max_message_timeout_ms = 900'000;
    std::uint64_t max_defer_ms = 3'600'000;
    std::uint64_t max_ack_gap = 65'536;
    std::uint64_t max_topics = 10'000;
    std::uint64_t max_publish_workers = 1'024;
    std::uint64_t publish_worker_idle_seconds = 60;
    rq::queue::AckMode publish_ack_mode = rq::queue::AckMode::durable;
    std::uint64_t relaxed_sync_messages = 2'500;
    std::uint64_t relaxed_sync_bytes = 8'388'608;
    std::uint64_t relaxed_sync_interval_ms = 10;
    std::uint64_t bootstrap_retention_seconds = 90;
    std::uint64_t message_retention_seconds = 0;
    std::uint64_t max_delivery_attempts = 16;
    std::string dead_letter_suffix = ".DLQ";
    std::uint64_t ephemeral_queue_messages = 10'000;  // D-21
  } queue;

  struct Tls {
    bool present = false;  // the section stands in the file: TLS is offered on TCP
    std::string certificate_file;
    std::string private_key_file;
    std::optional<std::string> client_ca_file;
    bool require_client_certificate = false;
    bool required = false;
    TlsVersion min_version = TlsVersion::tls1_2;  // D-49a
    ClientAuth client_auth = ClientAuth::none;    // D-49a; read it through effective_client_auth()
    ClientAuth effective_client_auth() const { return require_client_certificate ? ClientAuth::require_verify : client_auth; }
  };
  struct Security {
    std::vector<std::string> auth_http_addresses;
    std::optional<std::string> admin_token_file;
    std::optional<std::string> publish_token_file;
    std::optional<std::string> registry_token_file;
    std::optional<std::string> console_token_file;
    std::optional<std::string> kodo_cleanup_token_file;
    bool console_management_enabled = false;
    bool kodo_cleanup_enabled = false;
    Tls tls;
  } security;

  struct Limits {
    std::uint64_t max_body_bytes = 67'108'864;
    std::uint64_t node_publish_inflight_bytes = 536'870'912;
    std::uint64_t connection_publish_inflight_bytes = 83'886'080;
    std::uint64_t node_delivery_inflight_bytes = 536'870'912;
    std::uint64_t node_delivery_inflight_messages = 262'144;
    std::uint64_t connection_delivery_inflight_bytes = 33'554'432;
    std::uint64_t max_rdy_count = 2'500;
    std::uint64_t max_connections = 10'000;
    std::uint64_t max_http_connections = 1'024;       // D-35
    std::uint64_t max_channel_consumers = 0;          // D-11; 0 = unlimited
    std::uint64_t node_ephemeral_bytes = 67'108'864;  // D-21
    std::uint64_t client_handshake_timeout_ms = 5'000;
    std::uint64_t tcp_command_timeout_ms = 30'000;
    std::uint64_t heartbeat_interval_ms = 30'000;
    std::uint64_t max_heartbeat_interval_ms = 60'000;
    std::uint64_t output_buffer_size = 16'384;
    std::uint64_t max_output_buffer_size = 65'536;
    std::uint64_t output_buffer_timeout_ms = 250;
    std::uint64_t min_output_buffer_timeout_ms = 25;
    std::uint64_t max_output_buffer_timeout_ms = 30'000;
    std::uint64_t auth_response_bytes = 1'048'576;
    std::uint64_t auth_timeout_ms = 5'000;
    std::uint64_t auth_max_ttl_seconds = 3'600;
    std::uint64_t auth_cache_max_entries = 10'000;
    std::uint64_t auth_memory_bytes = 268'435'456;
    std::uint64_t http_body_timeout_ms = 30'000;
    bool disconnect_on_retriable_publish_error = false;
  } limits;

  struct Metrics {
    bool detailed_queue_metrics = false;
    std::uint64_t max_detailed_series = 1'000;
  } metrics;

  struct Shutdown {
    std::uint64_t grace_seconds = 30;
  } shutdown;
};

// A value of the file. A table is std::monostate under its dotted name ("security.tls", "bogus"), given for every table, so that
// unknown and empty sections are seen.
using ConfigValue = std::variant<std::monostate, std::int64_t, bool, std::string, std::vector<std::string>>;
using ConfigFile = std::vector<std::pair<std::string, ConfigValue>>;
using Environment = std::map<std::string, std::string>;

// Defaults, then the file, then the environment (POD_NAME included, page 31 section 2.3). The error names the key or variable.
tl::expected<Config, std::string> load_config(const ConfigFile& file, const Environment& environment);

// What V27 and V28 need to know about the file system.
struct PathProbe {
  virtual bool exists(const std::string& path) const = 0;
  virtual bool regular_file(const std::string& path) const = 0;  // symbolic links are followed

 protected:
  ~PathProbe() = default;
};

// The first violated rule of V1..V30 in their order, as "<rule>: <what must hold>", naming the key(s). Without a probe the two
// rules about existing files are left out.
std::optional<std::string> validate(const Config& config, const PathProbe* paths = nullptr);

// Keys with another value than their default whose feature this build does not have, in table order.
std::vector<std::string> without_effect(const Config& config);

// "1.2.3.4:80" or "[::1]:80"; no host names.
bool is_socket_address(std::string_view text);

// Dotted names of all keys, in table order, and the value of one as the file would write it.
std::vector<std::string_view> config_keys();
std::string config_value_text(const Config& config, std::string_view key);

}  // namespace rq::broker
