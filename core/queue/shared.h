// What the Topics of one Broker share: the disk machines, the consumers, the events, the budgets. Owned by the Engine.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/queue/access.h"
#include "core/queue/byte_holds.h"
#include "core/queue/engine.h"
#include "core/queue/lane_turns.h"
#include "core/queue/metadata_budget.h"
#include "core/storage/committer.h"
#include "core/storage/memory_log.h"
#include "core/storage/meta_store.h"
#include "core/storage/paths.h"
#include "core/storage/read_pool.h"
#include "core/storage/topic_log.h"

namespace rq::queue {

class Topic;
class ChannelLane;
class DeadLetters;

// The answer goes to the managed operation under way (management.h), not to a caller.
inline constexpr WaiterId kManagedWaiter{UINT64_MAX};

// A subscribed connection, as the queue sees it.
struct Consumer {
  ConsumerId id = ConsumerId::none;
  Topic* topic = nullptr;
  ChannelLane* lane = nullptr;
  SubscribeOptions options;
  std::uint32_t rdy = 0;
  std::uint64_t outstanding = 0;  // reservations whose FIN or REQ is not durable yet and that did not time out
  std::uint64_t finishing = 0;    // of them: FIN or REQ is on its way to the disk
  std::uint64_t held_bytes = 0;   // of the node's byte budget: handed over, not written yet
  std::uint32_t sample_turn = 0;  // cycles 0..99 (D-09)
  bool writable = true;
  bool fetching = false;  // a batch is being read for it
  std::int64_t lease_ns() const { return options.message_timeout_ms * kMillisecond; }
  bool ready() const { return rdy > outstanding && writable && !fetching; }
};

class ConsumerTable {
 public:
  Consumer& add();
  Consumer* find(ConsumerId id);
  const Consumer* find(ConsumerId id) const { return const_cast<ConsumerTable*>(this)->find(id); }
  void remove(ConsumerId id);
  std::size_t size() const { return live_; }

 private:
  struct Slot {
    Consumer consumer;
    std::uint32_t generation = 0;
    bool used = false;
  };
  std::deque<Slot> slots_;
  std::vector<std::uint32_t> free_;
  std::size_t live_ = 0;
};

struct Shared {
  Shared(io::Host& host_ref, const EngineOptions& options_ref, std::size_t write_handles_max);

  io::Host& host;
  const EngineOptions& options;
  storage::DataPaths paths;
  storage::Committer committer;
  storage::ScriptRetries retries;
  storage::ReadPool reads;
  storage::PageCache pages;
  storage::BodyCache bodies;
  storage::Arena arena;
  storage::LogShared logs;
  MetadataBudget metadata;
  storage::MemoryBudget ephemeral;
  std::unique_ptr<storage::MetaStore> meta;
  ChannelSettings channel_settings;
  ConsumerTable consumers;
  Access access;
  Events events;
  DeadLetters* dead_letters = nullptr;  // the Engine's
  EngineMetrics metrics;
  Token tokens = 0;                // last delivery token given out
  std::uint64_t slots_in_use = 0;  // page 30 section 7.4
  ByteHolds holds;                 // page 30 section 7.3
  LaneTurns slot_turns;            // who found no slot
  LaneTurns read_turns;            // who found the read queue full
  std::optional<storage::Fault> fault;
  bool keep_for_channels = false;  // a new Topic in memory is opening until it is told otherwise
  std::uint64_t next_serial = 1;   // of Topics and lanes

  // Topics with something to do in this turn, in order of marking.
  std::vector<Topic*> dirty;
  std::vector<Topic*> waiting_for_ids;  // their publishes go on when an id block is durable
  // Relaxed modes: Topics by the time (nanoseconds) at which a background sync may be due: (time, owner).
  std::set<std::pair<std::int64_t, std::uint64_t>> syncs;
  // Lanes by their next deadline: (nanoseconds, serial).
  std::set<std::pair<std::int64_t, std::uint64_t>> deadlines;
  std::map<std::uint64_t, ChannelLane*> lanes;  // by serial
  // TTL_DISCARD Topics by the wall time (nanoseconds) of their next expiry: (time, owner).
  std::set<std::pair<std::int64_t, std::uint64_t>> expiries;

  void set_fault(const storage::Fault& why) {
    if (!fault) fault = why;
  }
  bool slot_left() const { return slots_in_use < options.node_delivery_inflight_messages; }
  bool read_left() const { return reads.active() < options.payload_read_queue; }
  bool durable_mode() const { return options.ack_mode == AckMode::durable; }
  // A reservation's slot came back.
  void give_back_slot(Consumer& consumer);
  // Bytes of it were written, or it is gone.
  void give_back_bytes(Consumer& consumer, std::uint64_t bytes);
};

}  // namespace rq::queue
