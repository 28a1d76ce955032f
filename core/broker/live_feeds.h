// All live feeds of a Broker: by slot, by consumer, by their earliest deadline, and how many a Topic has.
//
//  I1 At most websocket.max_connections feeds, at most max_connections_per_topic of a Topic, from the checked request on. I2 A
//  slot is given to the next feed only after its feed has no Op in flight and waits for no answer. I3 Without feeds a turn costs
//  nothing.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/broker/deadline_heap.h"
#include "core/broker/live_feed.h"

namespace rq::broker {

class LiveFeeds {
 public:
  LiveFeeds(io::Host& host, const Config& config, queue::Engine& engine, ChunkPool& pool, BrokerCounters& counters,
            const Gates& gates, AuthService& auth)
      : env_{host, config, engine, pool, counters, gates, auth, ByteBudget(config.websocket.frame_inflight_bytes), {}, {}} {}

  bool room_for(std::string_view topic) const;
  bool auth_enabled() const { return env_.auth.enabled(); }
  void add(LiveStart start, Now now);  // room_for() it

  std::size_t size() const { return count_; }
  std::uint64_t connections() const;  // upgraded ones
  std::uint64_t frame_bytes() const { return env_.frame_memory.used(); }
  void clients(std::vector<ClientRow>& out) const;

  void begin_turn(Now now) { env_.now = now; }
  void route(const queue::Events& events, Now now);
  void on_auth(AuthAnswer answer, Now now);
  bool resume(Now now);  // false when none had work
  void flush(Now now);
  void expire(Now now);
  bool has_work() const { return !env_.dirty.empty(); }
  Instant next_deadline() const { return deadlines_.earliest(); }

  void gates_changed(Now now);
  void end_all(const LiveEnd& why, Now now);
  void cut_all();

 private:
  LiveFeed* of_consumer(queue::ConsumerId consumer);
  LiveFeed* at(std::uint32_t slot) { return slot < slots_.size() ? slots_[slot].get() : nullptr; }
  void touch(std::uint32_t slot);
  void remove(std::uint32_t slot);

  LiveEnv env_;
  std::vector<std::unique_ptr<LiveFeed>> slots_;
  std::vector<queue::ConsumerId> consumer_of_;  // by slot: what consumers_ holds for it
  std::vector<std::uint32_t> free_;
  std::size_t count_ = 0;
  std::uint64_t number_ = 0;  // of the latest feed
  std::map<std::string, std::uint64_t, std::less<>> of_topic_;
  boost::unordered_flat_map<std::uint64_t, std::uint32_t> consumers_;
  DeadlineHeap deadlines_;
  std::vector<std::uint32_t> touched_, work_;
};

}  // namespace rq::broker
