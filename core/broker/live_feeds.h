// All live feeds of a Broker (core/broker/slot_table.h), and how many a Topic has.
//
//  I1 At most websocket.max_connections feeds, at most max_connections_per_topic of a Topic, from the checked request on.
//  I2 Without feeds a turn costs nothing.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/broker/live_feed.h"
#include "core/broker/slot_table.h"

namespace rq::broker {

class LiveFeeds {
 public:
  LiveFeeds(io::Host& host, const Config& config, queue::Engine& engine, ChunkPool& pool, BrokerCounters& counters,
            const Gates& gates, AuthService& auth)
      : env_{host, config, engine, pool, counters, gates, auth, ByteBudget(config.websocket.frame_inflight_bytes), {}, {}} {}

  bool room_for(std::string_view topic) const;
  bool auth_enabled() const { return env_.auth.enabled(); }
  void add(LiveStart start, Now now);  // room_for() it

  std::size_t size() const { return table_.size(); }
  std::uint64_t connections() const;  // upgraded ones
  std::uint64_t frame_bytes() const { return env_.frame_memory.used(); }
  void clients(std::vector<ClientRow>& out) const;

  void begin_turn(Now now) { env_.now = now; }
  void route(const queue::Events& events, Now now);
  void on_auth(AuthAnswer answer, Now now);
  bool resume(Now now) { return table_.resume(env_.dirty, now); }  // false when none had work
  void flush(Now now);
  void expire(Now now) { table_.expire(now); }
  bool has_work() const { return !env_.dirty.empty(); }
  Instant next_deadline() const { return table_.next_deadline(); }

  void gates_changed(Now now);
  void end_all(const LiveEnd& why, Now now);
  void cut_all();

 private:
  LiveEnv env_;
  SlotTable<LiveFeed> table_;
  std::uint64_t number_ = 0;  // of the latest feed
  std::map<std::string, std::uint64_t, std::less<>> of_topic_;
};

}  // namespace rq::broker
