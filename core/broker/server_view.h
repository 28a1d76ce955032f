// What the HTTP side may see of the TCP side, and the other way round: implemented by the Broker, used by its parts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/time.h"
#include "core/broker/config.h"
#include "core/broker/token_store.h"
#include "core/io/ports.h"
#include "core/queue/engine.h"

namespace rq::broker {

class LiveFeeds;

// Waiter ids carry their kind in the top byte, so that the Broker routes an answer without a table.
enum class WaiterKind : std::uint8_t { none = 0, session = 1, http = 2, lookup = 3, live_feed = 4 };
constexpr queue::WaiterId make_waiter(WaiterKind kind, std::uint64_t number) {
  return static_cast<queue::WaiterId>(static_cast<std::uint64_t>(kind) << 56 | number);
}
constexpr WaiterKind waiter_kind(queue::WaiterId id) { return static_cast<WaiterKind>(static_cast<std::uint64_t>(id) >> 56); }

// One NSQ connection as /stats shows it (page 10 section 6.6).
struct ClientRow {
  queue::ConsumerId consumer = queue::ConsumerId::none;  // none: not subscribed
  std::string client_id, hostname, user_agent, remote_address;
  int state = 0;
  std::uint64_t ready_count = 0, in_flight_count = 0, message_count = 0, finish_count = 0, requeue_count = 0;
  std::int64_t connect_ts = 0;  // Unix seconds
  std::uint32_t sample_rate = 0;
  bool deflate = false, snappy = false, tls = false, authed = false;
  std::string tls_version, tls_cipher_suite, auth_identity, auth_identity_url;
  std::vector<std::pair<std::string, std::uint64_t>> pub_counts;  // Topic -> messages published on this connection
};

struct BrokerCounters {
  std::uint64_t publish_messages = 0, publish_bytes = 0, delivered_messages = 0, protocol_errors = 0;
  std::uint64_t publish_throttled_requests = 0, publish_throttled_bytes = 0;
  std::uint64_t auth_failures = 0;                            // AUTH commands and live feeds that were refused or lost it
  std::uint64_t storage_errors = 0;                           // storage failures that a client was told of
  std::uint64_t websocket_messages = 0, websocket_bytes = 0;  // completed frames, their bodies
  std::uint64_t websocket_auth_failures = 0, websocket_capacity_rejections = 0, websocket_slow_disconnects = 0;
  std::uint64_t websocket_non_ttl_rejections = 0;
  std::uint64_t tcp_connections_total = 0, http_requests_total = 0;
  std::uint64_t rendered_bytes = 0;  // text of statistics; HttpEnv::kRenderBytesPerTurn and one row at most in a turn
};

class LookupRegistration;

// The least level of log events; none: no event at all. Changed by PUT /config/log_level; the program applies it to its sink.
struct LogLevel {
  std::optional<io::Level> least = io::Level::info;
  bool operator==(const LogLevel&) const = default;
};

class ServerView {
 public:
  virtual const Config& config() const = 0;
  virtual queue::Engine& engine() = 0;
  virtual std::int64_t start_time_unix() const = 0;
  virtual std::uint64_t tcp_connections() const = 0;
  virtual std::uint64_t websocket_connections() const = 0;
  virtual LiveFeeds& live_feeds() = 0;
  virtual void clients(std::vector<ClientRow>& out) const = 0;  // every NSQ connection and live feed
  virtual BrokerCounters& counters() = 0;
  virtual LogLevel& log_level() = 0;
  virtual bool starting() const = 0;   // the directory is not open yet, or the volume and the token files not yet looked at
  virtual bool accepting() const = 0;  // false: draining or stopping
  virtual bool stopping() const = 0;
  virtual bool delivering() const = 0;  // false: frozen or stopping
  virtual void set_drain(bool enabled, bool freeze) = 0;
  virtual TokenStore::Verdict check_token(TokenClass wanted, std::string_view authorization, std::string_view header) const = 0;
  virtual bool disk_pressure() const = 0;
  virtual const io::DiskUsage& disk_usage() const = 0;  // of the latest good reading
  // Publish byte budget of the node (page 30 section 2.3), in bytes already rounded up. False: throttle.
  virtual bool reserve_publish_bytes(std::uint64_t bytes) = 0;
  virtual void release_publish_bytes(std::uint64_t bytes) = 0;
  virtual std::uint64_t publish_bytes_in_flight() const = 0;
  virtual LookupRegistration& lookups() = 0;
  // Actual ports after binding, for tests that listen on port 0.
  virtual std::uint16_t tcp_port() const = 0;
  virtual std::uint16_t http_port() const = 0;

 protected:
  ~ServerView() = default;
};

}  // namespace rq::broker
