// One seed's plan: the Broker's configuration, the workload and the faults, as named integers. draw() switches each fault class
// and each workload feature on or off and gives it a rate of its own; a plan is written as text ("key=value ..."), so a
// regression keeps a minimised plan and not only a seed.
//
//  I1 Every drawn configuration passes the product's own validate().
//  I2 Each key draws from a stream of its own name: overriding one does not move the others.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/base/random.h"
#include "core/broker/config.h"
#include "io/sim/world.h"

namespace rq::sim {

inline constexpr std::string_view kEphemeralTopic = "brief#ephemeral";

struct Swarm {
  // Broker
  std::int64_t feature_level = 1;
  std::int64_t body_bytes = 4'000;  // limits.max_body_bytes, also queue.max_message_bytes
  std::int64_t segment_bytes = 8'192;
  std::int64_t ack_gap = 65'536;
  std::int64_t entry_cache_bytes = 1 << 20;
  std::int64_t index_cache_bytes = 1 << 20;
  std::int64_t slots = 262'144;  // limits.node_delivery_inflight_messages
  std::int64_t bootstrap_s = 90;
  std::int64_t ack_mode = 0;                       // queue.publish_ack_mode: 0 durable, 1 write_ack, 2 nsq_relaxed
  std::int64_t max_attempts = 0, retention_s = 0;  // dead letters; 0: none for that cause
  std::int64_t relaxed_ms = 10, relaxed_messages = 2'500;
  std::int64_t collect_s = 30;   // collection and scrub start that long after opening
  std::int64_t scrub_s = 3'600;  // storage.scrub_interval_seconds
  std::int64_t scrub_rate = 1 << 26;
  std::int64_t timeout_ms = 60'000;  // message timeout that consumers ask for
  std::int64_t heartbeat_ms = 30'000;
  // Workload
  std::int64_t safety_ms = 10'000;
  std::int64_t topics = 1, channels = 1, producers = 1, consumers = 1;  // channels per Topic, consumers per Channel
  std::int64_t late_channel_ms = 0;                                     // a further Channel per Topic appears then
  std::int64_t ephemeral = 0;             // one #ephemeral Channel beside them, and an ephemeral Topic with two
  std::int64_t ephemeral_queue = 10'000;  // queue.ephemeral_queue_messages
  std::int64_t requests = 100;            // per producer
  std::int64_t publish_gap_ms = 20;       // mean pause between requests
  std::int64_t pipeline = 1;              // publishes outstanding on one connection
  std::int64_t body_bytes_max = 200;
  std::int64_t mpub = 0, dpub = 0;  // per 1024 publishes
  std::int64_t dpub_ms = 1'000;
  std::int64_t rdy = 1;
  std::int64_t think_ms = 5;                                                    // mean time until a message is answered
  std::int64_t req = 0, touch = 0, ignore = 0, hang_up = 0, ready_changes = 0;  // per 1024 messages
  std::int64_t req_ms = 500;
  std::int64_t admin_gap_ms = 0;   // mean pause between administrative calls; 0: none
  std::int64_t removals = 0;       // per 1024 of them: empty or delete
  std::int64_t policy_gap_ms = 0;  // mean pause between changes of a Topic's policy; 0: none
  std::int64_t ttl_s = 2;          // longest TTL drawn then
  std::int64_t layers = 0;         // per 1024 introductions: TLS, a compression, or both
  std::int64_t rude = 0;           // clients that misbehave
  std::int64_t manage_gap_ms = 0;  // mean pause between steps of the control plane; 0: no management
  std::int64_t token_ms = 0;       // mean pause between changes of its token; 0: none
  std::int64_t feeds = 0;          // readers of a live feed on each Topic
  std::int64_t lookups = 0;        // nsqlookupd servers that the Broker is registered with: 0, 1 or 2
  // Faults
  std::int64_t kill_ms = 0, power_loss_ms = 0, stop_ms = 0, partition_ms = 0, clock_step_ms = 0;         // mean pauses; 0: never
  std::int64_t sync_fail = 0, no_space = 0, write_error = 0, read_error = 0, no_handles = 0, stall = 0;  // per 1024 calls
  std::int64_t pressure_ms = 0;  // mean pause between spells in which the volume looks full
  std::int64_t rot_ms = 0;       // mean pause between flipped bits in sealed data
  std::int64_t crash_step = 0;   // per 1024 disk steps (rename, unlink, truncation, sync): the Broker dies right after it
  std::int64_t disk_us = 300;    // slowest normal call
  std::int64_t reset = 0, half_open = 0, refuse = 0;  // per 1024 calls
  std::int64_t net_us = 200;
  std::int64_t buggify = 0;        // per 1024: rare paths that the core offers
  std::int64_t lookup_gap_ms = 0;  // mean pause until a lookup server dies, comes back or is cut off
  std::int64_t lookup_lies = 0;    // per 1024 answers of one: late, wrong, cut short, missing
  std::int64_t lookup_broken = 0;  // 1: the first of them never answers well, not even when everything else has healed

  static Swarm draw(const Random& random);
  broker::Config config() const;
  // Longest way of a frame between the Broker's decision and a client, disk reads included.
  std::int64_t transit_ns() const;
  // What takes many disk calls one after the other, a rotation for each of 80 publishes or an opening of 200 segments, takes
  // longer on a slow disk.
  std::int64_t slow(std::int64_t limit_ns) const;
  std::string text() const;  // only what differs from the defaults
  // "key=value" pairs separated by spaces; false names an unknown key or a bad number in `error`.
  bool apply(std::string_view pairs, std::string& error);

  struct Key {
    const char* name;
    std::int64_t Swarm::*value;
  };
  static std::span<const Key> keys();
};

}  // namespace rq::sim
