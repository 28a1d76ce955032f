// What the renderings of /stats (JSON and text, page 10 sections 6.5 to 6.7) are made of.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/time.h"
#include "core/broker/rendering.h"
#include "core/broker/server_view.h"

namespace rq::broker {

// Of the Go runtime; tools expect them.
inline constexpr std::array<std::string_view, 9> kMemoryKeys = {"heap_objects",        "heap_idle_bytes",   "heap_in_use_bytes",
                                                                "heap_released_bytes", "gc_pause_usec_100", "gc_pause_usec_99",
                                                                "gc_pause_usec_95",    "next_gc_bytes",     "gc_total_runs"};

struct StatsQuery {
  bool json = false;
  bool include_clients = true;
  bool include_mem = true;
  std::string topic, channel;  // empty: all
};

struct StatsView {
  StatsQuery query;
  std::string version;
  std::string_view health = "OK";
  std::int64_t start_time_unix = 0;
  Now now;
  std::vector<queue::TopicStats> topics;  // by name
  std::vector<ClientRow> clients;         // every NSQ connection
};

// Messages a consumer could still be handed: outstanding, without those in flight and deferred (page 31 section 4.4), and without
// those that a paused Topic holds back (D-36).
std::uint64_t waiting_depth(const queue::TopicStats& topic, const queue::ChannelStats& channel);
// Messages that the Topic has let through to the Channel.
std::uint64_t routed_count(const queue::TopicStats& topic, const queue::ChannelStats& channel);

// What they take in memory, about: an answer that waits to be rendered keeps them.
std::uint64_t memory_of(const std::vector<queue::TopicStats>& topics);
std::uint64_t memory_of(const std::vector<ClientRow>& clients);

// Rows of one Channel's consumers, found by their id.
class ClientIndex {
 public:
  explicit ClientIndex(const std::vector<ClientRow>& clients);
  const ClientRow* find(queue::ConsumerId consumer) const;

 private:
  std::vector<std::pair<std::uint64_t, const ClientRow*>> rows_;  // sorted by consumer
};

std::unique_ptr<Rendering> stats_json(StatsView view);
std::unique_ptr<Rendering> stats_text(StatsView view);

}  // namespace rq::broker
