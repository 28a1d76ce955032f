#include "sim/swarm.h"

#include <algorithm>
#include <charconv>

#include "sim/lookups.h"
#include "sim/manager.h"

namespace rq::sim {
namespace {

constexpr Swarm::Key kKeys[] = {
    {"feature_level", &Swarm::feature_level},
    {"body_bytes", &Swarm::body_bytes},
    {"segment_bytes", &Swarm::segment_bytes},
    {"ack_gap", &Swarm::ack_gap},
    {"entry_cache_bytes", &Swarm::entry_cache_bytes},
    {"index_cache_bytes", &Swarm::index_cache_bytes},
    {"slots", &Swarm::slots},
    {"bootstrap_s", &Swarm::bootstrap_s},
    {"ack_mode", &Swarm::ack_mode},
    {"max_attempts", &Swarm::max_attempts},
    {"retention_s", &Swarm::retention_s},
    {"relaxed_ms", &Swarm::relaxed_ms},
    {"relaxed_messages", &Swarm::relaxed_messages},
    {"collect_s", &Swarm::collect_s},
    {"scrub_s", &Swarm::scrub_s},
    {"scrub_rate", &Swarm::scrub_rate},
    {"timeout_ms", &Swarm::timeout_ms},
    {"heartbeat_ms", &Swarm::heartbeat_ms},
    {"safety_ms", &Swarm::safety_ms},
    {"topics", &Swarm::topics},
    {"channels", &Swarm::channels},
    {"producers", &Swarm::producers},
    {"consumers", &Swarm::consumers},
    {"late_channel_ms", &Swarm::late_channel_ms},
    {"ephemeral", &Swarm::ephemeral},
    {"ephemeral_queue", &Swarm::ephemeral_queue},
    {"requests", &Swarm::requests},
    {"publish_gap_ms", &Swarm::publish_gap_ms},
    {"pipeline", &Swarm::pipeline},
    {"body_bytes_max", &Swarm::body_bytes_max},
    {"mpub", &Swarm::mpub},
    {"dpub", &Swarm::dpub},
    {"dpub_ms", &Swarm::dpub_ms},
    {"rdy", &Swarm::rdy},
    {"think_ms", &Swarm::think_ms},
    {"req", &Swarm::req},
    {"touch", &Swarm::touch},
    {"ignore", &Swarm::ignore},
    {"hang_up", &Swarm::hang_up},
    {"ready_changes", &Swarm::ready_changes},
    {"req_ms", &Swarm::req_ms},
    {"admin_gap_ms", &Swarm::admin_gap_ms},
    {"removals", &Swarm::removals},
    {"policy_gap_ms", &Swarm::policy_gap_ms},
    {"ttl_s", &Swarm::ttl_s},
    {"layers", &Swarm::layers},
    {"rude", &Swarm::rude},
    {"manage_gap_ms", &Swarm::manage_gap_ms},
    {"token_ms", &Swarm::token_ms},
    {"feeds", &Swarm::feeds},
    {"lookups", &Swarm::lookups},
    {"kill_ms", &Swarm::kill_ms},
    {"power_loss_ms", &Swarm::power_loss_ms},
    {"stop_ms", &Swarm::stop_ms},
    {"partition_ms", &Swarm::partition_ms},
    {"clock_step_ms", &Swarm::clock_step_ms},
    {"sync_fail", &Swarm::sync_fail},
    {"no_space", &Swarm::no_space},
    {"write_error", &Swarm::write_error},
    {"read_error", &Swarm::read_error},
    {"no_handles", &Swarm::no_handles},
    {"stall", &Swarm::stall},
    {"pressure_ms", &Swarm::pressure_ms},
    {"rot_ms", &Swarm::rot_ms},
    {"crash_step", &Swarm::crash_step},
    {"disk_us", &Swarm::disk_us},
    {"reset", &Swarm::reset},
    {"half_open", &Swarm::half_open},
    {"refuse", &Swarm::refuse},
    {"net_us", &Swarm::net_us},
    {"buggify", &Swarm::buggify},
    {"lookup_gap_ms", &Swarm::lookup_gap_ms},
    {"lookup_lies", &Swarm::lookup_lies},
    {"lookup_broken", &Swarm::lookup_broken},
};

std::uint64_t positive(std::int64_t value) { return static_cast<std::uint64_t>(value); }

}  // namespace

std::span<const Swarm::Key> Swarm::keys() { return kKeys; }

Swarm Swarm::draw(const Random& random) {
  Swarm s;
  // One stream per key.
  const auto between = [&](const char* key, std::int64_t low, std::int64_t high) {
    Random stream = random.split(key);
    return low + static_cast<std::int64_t>(stream.below(positive(high - low + 1)));
  };
  const auto one_of = [&](const char* key, std::initializer_list<std::int64_t> values) {
    Random stream = random.split(key);
    return *(values.begin() + stream.below(values.size()));
  };
  // On with the given chance (of 8), then a value in the range; 0 otherwise.
  const auto maybe = [&](const char* key, std::uint64_t eighths, std::int64_t low, std::int64_t high) {
    Random stream = random.split(key);
    const bool on = stream.below(8) < eighths;
    const std::int64_t value = low + static_cast<std::int64_t>(stream.below(positive(high - low + 1)));
    return on ? value : 0;
  };

  s.feature_level = one_of("feature_level", {1, 2});
  s.body_bytes = one_of("body_bytes", {600, 1'500, 4'032, 20'000});
  s.segment_bytes = s.body_bytes + 64 + one_of("segment_bytes", {0, 1, 1'000, 8'000, 200'000});
  s.ack_gap = one_of("ack_gap", {1, 2, 5, 20, 1'000, 65'536});
  s.entry_cache_bytes = one_of("entry_cache_bytes", {1, 4'096, 65'536, 1 << 20});
  s.index_cache_bytes = one_of("index_cache_bytes", {65'536, 69'632, 1 << 20});
  s.slots = one_of("slots", {1, 3, 50, 262'144, 262'144});
  s.bootstrap_s = one_of("bootstrap_s", {1, 10, 90});
  s.ack_mode = one_of("ack_mode", {0, 0, 0, 0, 1, 2});
  s.relaxed_ms = one_of("relaxed_ms", {1, 10, 500});
  s.relaxed_messages = one_of("relaxed_messages", {1, 10, 2'500});
  s.max_attempts = maybe("max_attempts", 2, 2, 4);
  s.retention_s = maybe("retention_s", 1, 1, 8);
  s.collect_s = one_of("collect_s", {0, 1, 30});
  s.scrub_s = one_of("scrub_s", {1, 3, 3'600});
  s.scrub_rate = one_of("scrub_rate", {2'000, 100'000, 1 << 26});
  s.timeout_ms = one_of("timeout_ms", {1'000, 3'000, 10'000, 60'000, 60'000});
  s.heartbeat_ms = one_of("heartbeat_ms", {1'000, 5'000, 30'000});

  s.safety_ms = between("safety_ms", 3'000, 15'000);
  s.topics = one_of("topics", {1, 1, 2, 3});
  s.channels = one_of("channels", {1, 1, 2, 3});
  s.producers = between("producers", 1, 3);
  s.consumers = one_of("consumers", {1, 1, 2, 3});
  s.late_channel_ms = maybe("late_channel_ms", 2, 500, s.safety_ms);
  s.ephemeral = maybe("ephemeral", 1, 1, 1);
  s.ephemeral_queue = one_of("ephemeral_queue", {1, 4, 10'000});
  s.requests = between("requests", 5, 60);
  s.publish_gap_ms = std::max<std::int64_t>(1, s.safety_ms / (s.requests + 1) * between("publish_gap_ms", 1, 100) / 100);
  s.pipeline = one_of("pipeline", {1, 1, 4, 16, 80});
  s.body_bytes_max = std::min(s.body_bytes, one_of("body_bytes_max", {60, 200, 1'000, 20'000}));
  s.mpub = maybe("mpub", 4, 50, 700);
  s.dpub = maybe("dpub", 3, 50, 500);
  s.dpub_ms = between("dpub_ms", 10, 4'000);
  s.rdy = one_of("rdy", {1, 1, 2, 5, 50, 2'500});
  s.think_ms = one_of("think_ms", {0, 1, 5, 50, 400});
  s.req = maybe("req", 4, 20, 300);
  s.req_ms = one_of("req_ms", {0, 1, 300, 3'000});
  s.touch = maybe("touch", 2, 20, 200);
  s.ignore = maybe("ignore", 2, 5, 100);
  s.hang_up = maybe("hang_up", 2, 5, 60);
  s.ready_changes = maybe("ready_changes", 2, 10, 200);
  s.admin_gap_ms = maybe("admin_gap_ms", 2, 200, 3'000);
  s.removals = maybe("removals", 3, 50, 400);
  s.policy_gap_ms = maybe("policy_gap_ms", 2, 200, 3'000);
  s.ttl_s = between("ttl_s", 1, 5);
  s.layers = maybe("layers", 3, 200, 1'024);
  s.rude = maybe("rude", 3, 1, 3);
  s.manage_gap_ms = maybe("manage_gap_ms", 2, 20, 500);
  s.token_ms = maybe("token_ms", 4, 500, 6'000);
  s.feeds = s.policy_gap_ms > 0 ? maybe("feeds", 4, 1, 3) : 0;

  s.kill_ms = maybe("kill_ms", 3, 500, 8'000);
  s.power_loss_ms = maybe("power_loss_ms", 5, 500, 8'000);
  s.stop_ms = maybe("stop_ms", 2, 1'000, 8'000);
  s.partition_ms = maybe("partition_ms", 1, 1'000, 8'000);
  s.clock_step_ms = maybe("clock_step_ms", 1, 500, 5'000);
  s.sync_fail = maybe("sync_fail", 2, 1, 12);
  s.no_space = maybe("no_space", 1, 1, 6);
  s.write_error = maybe("write_error", 1, 1, 6);
  s.read_error = maybe("read_error", 1, 1, 6);
  s.no_handles = maybe("no_handles", 1, 5, 60);
  s.stall = maybe("stall", 1, 1, 6);
  s.pressure_ms = maybe("pressure_ms", 2, 500, 6'000);
  s.rot_ms = maybe("rot_ms", 1, 500, 4'000);
  s.crash_step = maybe("crash_step", 2, 1, 60);
  s.disk_us = one_of("disk_us", {50, 300, 5'000, 30'000});
  s.reset = maybe("reset", 2, 1, 8);
  s.half_open = maybe("half_open", 1, 30, 500);
  s.refuse = maybe("refuse", 1, 20, 300);
  s.net_us = one_of("net_us", {20, 200, 5'000, 100'000});
  s.buggify = maybe("buggify", 4, 1, 60);

  s.lookups = maybe("lookups", 3, 1, 2);
  s.lookup_gap_ms = maybe("lookup_gap_ms", 6, 300, 4'000);
  s.lookup_lies = maybe("lookup_lies", 5, 5, 300);
  s.lookup_broken = s.lookups == 2 ? maybe("lookup_broken", 3, 1, 1) : 0;
  return s;
}

broker::Config Swarm::config() const {
  broker::Config config;
  config.network.tcp_address = "127.0.0.1:4150";
  config.network.http_address = "127.0.0.1:4151";
  config.storage.data_path = "data";
  config.storage.min_free_bytes = 0;
  config.security.tls.present = layers > 0 || rude > 0;
  config.storage.feature_level = positive(feature_level);
  config.storage.max_segment_bytes = positive(segment_bytes);
  config.storage.entry_cache_bytes = positive(entry_cache_bytes);
  config.storage.message_index_cache_bytes = positive(index_cache_bytes);
  config.queue.max_message_bytes = positive(body_bytes);
  config.queue.max_ack_gap = positive(ack_gap);
  config.queue.ephemeral_queue_messages = positive(ephemeral_queue);
  config.queue.bootstrap_retention_seconds = positive(bootstrap_s);
  config.queue.publish_ack_mode = static_cast<queue::AckMode>(ack_mode);
  config.queue.relaxed_sync_interval_ms = positive(relaxed_ms);
  config.queue.relaxed_sync_messages = positive(relaxed_messages);
  config.storage.maintenance_startup_delay_seconds = positive(collect_s);
  config.security.console_management_enabled = manage_gap_ms > 0;
  if (manage_gap_ms > 0) config.security.console_token_file = Manager::kTokenFile;
  config.queue.max_delivery_attempts = max_attempts > 0 ? positive(max_attempts) : 65'535;
  config.queue.message_retention_seconds = positive(retention_s);
  config.storage.scrub_interval_seconds = positive(scrub_s);
  config.storage.scrub_bytes_per_second = positive(scrub_rate);
  config.limits.max_body_bytes = positive(body_bytes);
  config.limits.node_delivery_inflight_messages = positive(slots);
  if (feature_level >= 2) config.limits.connection_delivery_inflight_bytes = 104'857'600;  // V10
  config.shutdown.grace_seconds = 5;
  if (feeds > 0) {
    config.websocket.enabled = true;
    config.websocket.max_connections_per_topic = 2;
    config.websocket.frame_inflight_bytes = config.queue.max_message_bytes + 24;  // of one message at its largest
    config.limits.heartbeat_interval_ms = positive(heartbeat_ms);
  }
  for (std::int64_t i = 0; i < lookups; ++i) config.network.nsqlookupd_tcp_addresses.push_back(Lookups::address(i));
  return config;
}

std::int64_t Swarm::transit_ns() const {
  return 2 * kSecond + 40 * (disk_us + net_us) * kMicrosecond + (stall > 0 ? 8 * kSecond : 0);
}

std::int64_t Swarm::slow(std::int64_t limit_ns) const {
  constexpr std::int64_t kDiskCallsMax = 5'000;
  return limit_ns + kDiskCallsMax * disk_us * kMicrosecond;
}

std::string Swarm::text() const {
  const Swarm plain;
  std::string out;
  for (const Key& key : kKeys) {
    if (this->*key.value == plain.*key.value) continue;
    if (!out.empty()) out += ' ';
    out += std::string(key.name) + "=" + std::to_string(this->*key.value);
  }
  return out;
}

bool Swarm::apply(std::string_view pairs, std::string& error) {
  while (!pairs.empty()) {
    const std::size_t end = std::min(pairs.find_first_of(" \n\t"), pairs.size());
    const std::string_view pair = pairs.substr(0, end);
    pairs.remove_prefix(std::min(end + 1, pairs.size()));
    if (pair.empty()) continue;
    const std::size_t equals = pair.find('=');
    const std::string_view name = pair.substr(0, equals);
    const auto* key = std::find_if(std::begin(kKeys), std::end(kKeys), [&](const Key& each) { return name == each.name; });
    std::int64_t value = -1;
    bool number = false;
    if (equals != std::string_view::npos) {
      const auto [stop, code] = std::from_chars(pair.data() + equals + 1, pair.data() + pair.size(), value);
      number = code == std::errc() && stop == pair.data() + pair.size() && value >= 0;
    }
    if (key == std::end(kKeys) || !number) {
      error = "not a key of the plan with a number: " + std::string(pair);
      return false;
    }
    this->*key->value = value;
  }
  return true;
}

}  // namespace rq::sim
