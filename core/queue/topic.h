// One Topic: its log, its Channels, the publishes that wait for it and the structural operations on it (page 30 sections 1.2, 2,
// 5).
//
//  I1 At most one structural script (create, delete, pause, rotation, ...) runs at a time; publishes are appended only while the
//     Topic is live and no rotation runs (PUBLISH lane).
//  I2 At most one publish group is appended that no started barrier covers yet; a group has at most 64 requests and 8 MiB, a
//     larger request is alone (section 2.4).
//  I3 unrouted_from exists exactly while there is no durable Channel (section 5); in memory, while there is none at all.
//  I4 While a TTL discard or an eviction runs no structural operation and no collection begins (CHANNEL lane of section 9.2).
//  I5 A new Topic with an ephemeral name has no files (D-21, topic_memory.cc), one found on disk has (D-47); both go with their
//     last Channel.
//  I6 While a Topic in memory is opening, opening_held_ has a hold on each message that was kept, from the first on: every
//     Channel created meanwhile gets all of them (page 10 section 5.1). It ends before a Channel goes or messages are discarded.
#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/queue/channel_lane.h"
#include "core/queue/metadata_budget.h"
#include "core/queue/shared.h"
#include "core/storage/audit_file.h"
#include "core/storage/image.h"
#include "core/storage/manifest.h"
#include "core/storage/memory_log.h"
#include "core/storage/script.h"
#include "core/storage/topic_log.h"

namespace rq::queue {

class Fetch;

class Topic {
 public:
  static constexpr std::uint32_t kGroupRequestsMax = 64;
  static constexpr std::uint64_t kGroupBytesMax = 8ull << 20;

  enum class Phase : std::uint8_t {
    creating,
    live,
    deleting,  // nothing new is accepted; its files go once nothing uses them
    gone,      // the Engine removes the object
  };

  Topic(Shared& shared, storage::TopicImage image);  // recovered
  Topic(Shared& shared, std::string name);           // new: creation starts at once
  ~Topic();
  Topic(const Topic&) = delete;
  Topic& operator=(const Topic&) = delete;

  const std::string& name() const { return name_; }
  std::uint64_t owner() const { return owner_; }
  Phase phase() const { return phase_; }
  bool paused() const { return manifest_.paused; }
  DeliveryPolicy policy() const { return {manifest_.ttl_discard, manifest_.message_ttl_seconds.value_or(0)}; }
  std::uint64_t reliable_epoch() const { return reliable_epoch_; }
  storage::MessageLog* log() { return log_.get(); }  // null while it is created
  storage::TopicLog* disk() { return disk_; }        // null for a Topic in memory as well
  const std::map<std::string, std::unique_ptr<ChannelLane>, std::less<>>& lanes() const { return lanes_; }
  ChannelLane* lane(std::string_view channel);
  const storage::Manifest& manifest() const { return manifest_; }
  std::uint64_t published_bytes() const { return published_bytes_; }
  std::uint64_t unrouted_depth() const;
  Position routed_through() const;  // what lies behind is the Topic's own (D-36)

  // --- requests
  struct Publish {
    WaiterId waiter = WaiterId::none;
    std::vector<Slice> bodies;
    std::int64_t delay_ms = 0;
    std::uint64_t bytes = 0;  // encoded
    Instant since{};
    bool dead_letter = false;  // of a move: durable in every ack mode, DeadLetters hears about it
  };
  void publish(Publish request);
  std::size_t queued() const { return queue_.size(); }

  struct Operation {
    Admin action = Admin::create_topic;
    bool subscribe = false;  // create the Channel when missing, then attach
    std::string channel;
    WaiterId waiter = WaiterId::none;
    SubscribeOptions options;
    DeliveryPolicy policy{};  // configure_topic
    bool create_missing = false;
    bool created = false;    // this operation made the Topic
    bool if_unused = false;  // delete_topic: only if there is no Channel by then
  };
  void operate(Operation operation);
  // Operations that came after the deletion: they go to a new Topic of the same name.
  std::deque<Operation> take_operations() { return std::move(operations_); }

  // --- the turn
  void mark();  // has something to do
  void mark_dispatch(ChannelLane& lane);
  void mark_all_lanes();
  void on_advance(Now now);  // the log's durable or written offset moved; counts answered publishers
  void advance(Now now);
  bool more() const { return more_; }  // work is held back
  bool can_go_on() const;              // ... and could go on in the next turn without any event
  bool listed_as_held = false;         // is in the Engine's list of Topics that hold work back
  bool marked = false;                 // is in Shared::dirty
  std::uint32_t answered = 0;          // publishers answered since the Engine looked
  bool waits_for_ids = false;          // is in Shared::waiting_for_ids
  MetadataBudget::Tail metadata;

  // --- Channels that others know (Engine::keep_for_known_channels)
  bool opening() const { return opening_; }
  void open();  // once the operations that wait are done

  // --- consumers
  void detach(Consumer& consumer);  // disconnect: holds back nothing
  void expire(ChannelLane& lane, Now now);
  void fetch_done(Fetch& fetch, Now now);
  std::uint64_t fetch_bytes() const;  // of the byte budget, held by batches that are being read

  // --- protective eviction (page 30 section 8): begins to take the oldest segment away, whoever still needs it. False: there is
  // none, it is being read, or the Topic is busy.
  bool evict();
  bool evicting() const { return eviction_.step != Eviction::Step::idle; }
  bool exclusive() const { return discarding() || evicting(); }

  // --- TTL_DISCARD (page 30 section 9)
  bool expired(std::int64_t timestamp_ns, Now now) const { return now.wall.ns >= expiry_of(timestamp_ns); }
  // Wall time from which on a message with this timestamp is expired; INT64_MAX under RELIABLE or beyond the range.
  std::int64_t expiry_of(std::int64_t timestamp_ns) const;
  // Steady time at which a lease on it ends at the latest.
  Instant lease_limit(std::int64_t timestamp_ns, Now now) const;
  bool discard_due(Now now) const { return now.wall.ns >= discard_at_ && !discard_.ran_dry; }
  bool expiring() const { return manifest_.ttl_discard; }
  bool discarding() const { return discard_.step != Discard::Step::idle; }
  void want_discard();  // as soon as nothing else runs
  void retry_discard() { discard_.ran_dry = false; }

  // --- collection (page 30 section 6). True if something was begun.
  bool collect(Now now);

  // --- life
  void on_sync_deadline(Now now);         // of Shared::syncs
  void fail_all(const Outcome& outcome);  // storage fault or stop: every waiter is answered
  bool quiet() const;                     // nothing queued, running or waiting
  bool idle_on_disk() const;
  void add_final_flush(storage::Script& script);

  void digest(Hasher& hasher) const;
  void check_invariants() const;

 private:
  friend class Fetch;
  static void on_created(void* self, storage::Script& script);
  static void on_rotated(void* self, storage::Script& script);
  static void on_operated(void* self, storage::Script& script);
  static void on_collected(void* self, storage::Script& script);
  storage::Position retain_from(Now now) const;
  storage::Position bootstrap_start(Now now) const;
  static void on_page(void* self);
  void start_creation();
  void start_in_memory();
  void use_disk(storage::TopicImage& image);
  void pump_publishes(Now now);
  void refuse_publish(const Publish& request, const Outcome& outcome);
  bool publish_one(Publish& request, Now now);
  bool has_place(const Publish& request);
  storage::TopicLog::Appended append(const Publish& request, storage::MessageId first_id, Now now);
  void account(Publish& request, const storage::TopicLog::Appended& appended, Now now);
  Instant sync_deadline() const;  // relaxed modes: when the background sync is due
  void sync_if_due(Now now);
  void schedule_sync();
  bool take_ids(Publish& request, storage::MessageId& first_id);
  void look_for_readers(const Publish& request, Now now);
  void publish_in_memory(Publish& request, storage::MessageId first_id, Now now);
  void drop_newest(storage::Position first, std::uint64_t count);
  bool has_queue_room(const ChannelLane& lane) const;
  void hold_all(ChannelLane& lane);
  void end_opening();
  void let_go(ChannelLane& lane, storage::Position through);
  void let_go_of_finished(ChannelLane& lane);
  void retire_if_unused();
  void store_manifest(std::string content);
  void rotate_when_idle();
  void start_rotation();
  void note_tail();
  void pump_operations(Now now);
  // True when the operation at the front is finished and was answered.
  bool run_operation(Operation& operation, Now now);
  bool refuse_operation(Operation& operation, Now now);
  void refuse_consumers(ChannelLane& lane, Code code);
  void cancel_fetch(Fetch& fetch, ChannelLane& lane, Consumer& consumer);
  bool create_channel(Operation& operation, Now now);
  bool delete_channel(Operation& operation, Now now);
  bool delete_topic(Operation& operation, Now now);
  bool set_topic_paused(Operation& operation, bool paused);
  bool empty_topic(Operation& operation);
  bool configure(Operation& operation, Now now);
  // An eviction, a discard and a wanted discard go before the next operation.
  bool discard_first() const { return exclusive() || (discard_.wanted && !operation_running_); }
  void pump_discard(Now now);
  void evict_everywhere(storage::Position through, Now now);
  bool evicted_everywhere(storage::Position through) const;
  void store_discard();
  static void on_discarded(void* self, storage::Script& script);
  void pump_eviction(Now now);
  bool oldest_is_read() const;
  void record_eviction(Now now);
  void remove_evicted();
  static void on_eviction_recorded(void* self, storage::Script& script);
  static void on_evicted(void* self, storage::Script& script);
  // Where the unrouted boundary goes when everything <= through goes; none without one.
  std::optional<storage::Position> boundary_behind(storage::Position through) const;
  void end_discard(std::int64_t next_timestamp_ns);
  void schedule_discard(std::int64_t next_timestamp_ns);
  void schedule_first_discard();
  bool empty_channel(Operation& operation, Now now);
  bool pause_channel(Operation& operation, bool paused, Now now);
  void attach(Operation& operation, ChannelLane& lane);
  void answer(Operation& operation, Code code, std::string detail = {});
  void answer_early(Operation& operation);  // planted bugs alone
  void begin_script(void (*done)(void*, storage::Script&));
  storage::Position channel_start(bool ephemeral, Now now) const;
  void remove_lane(std::string_view channel, std::string_view reason);
  void close_consumers(ChannelLane& lane, std::string_view frame);
  std::size_t durable_lanes() const;
  std::string manifest_with(bool deleted) const;
  void dispatch(ChannelLane& lane, Now now);
  Consumer* next_ready(ChannelLane& lane);
  bool fill(ChannelLane& lane, Consumer& consumer, Now now);
  struct Batch;
  enum class Taken : std::uint8_t { one, batch_full, nothing };
  Taken take_one(ChannelLane& lane, Consumer& consumer, Batch& batch, Now now);
  void pass_on(ChannelLane& lane, Consumer& consumer, Batch& batch, const Reservation& reservation, Slice body);
  void note_fetch(std::uint64_t messages, std::uint64_t bytes, bool reads);
  void note_removal();
  bool sampled_out(ChannelLane& lane, Consumer& consumer, const Reservation& reservation, Now now);
  void hand_over(ConsumerId consumer, const Reservation& reservation, Slice body);
  bool limit_lease(ChannelLane& lane, const MessageMeta& message, Now now);
  bool cancel_expired(Fetch& fetch, Consumer& consumer, Now now);
  void note_window(ChannelLane& lane, Now now);
  bool moved_away(ChannelLane& lane, Consumer& consumer, const Reservation& reservation, Now now);
  void drop_fetches(ChannelLane& lane);

  Shared& shared_;
  std::uint64_t owner_;
  std::string name_;
  Phase phase_ = Phase::live;
  storage::Manifest manifest_;
  storage::Position stored_next_position_ = 1;
  std::unique_ptr<storage::MessageLog> log_;
  storage::TopicLog* disk_ = nullptr;     // the log, when it has files
  storage::MemoryLog* memory_ = nullptr;  // the log of an ephemeral Topic
  std::map<std::string, std::unique_ptr<ChannelLane>, std::less<>> lanes_;

  bool opening_ = false, open_wanted_ = false;
  std::vector<Position> opening_held_;

  std::deque<Publish> queue_;  // a connection is read no further when it owes 64 answers (D-17), within the node's budget
  struct Unanswered {
    std::uint64_t end_offset;
    WaiterId waiter;
    std::uint32_t messages;
    std::uint64_t bytes;
    Instant since;
  };
  std::deque<Unanswered> unanswered_;  // appended, not durable
  struct ReadersLook {
    std::uint64_t bytes_left = 0;  // until the next one, as `again`
    Instant again{};
  };
  ReadersLook readers_look_;
  std::uint32_t group_requests_ = 0;
  std::uint64_t group_bytes_ = 0;
  std::uint64_t published_bytes_ = 0;
  storage::Position paused_at_ = 0;  // D-36: the written position when the Topic was paused
  struct Discard {
    enum class Step : std::uint8_t { idle, searching, evicting, storing };
    Step step = Step::idle;
    bool wanted = false;
    bool ran_dry = false;        // the last pass found nothing durable: not before something changes
    std::int64_t cutoff_ns = 0;  // timestamps up to here are expired
    storage::TopicLog::Prefix prefix;
  };
  Discard discard_;
  struct Eviction {
    enum class Step : std::uint8_t { idle, sealing, recording, recorded, evicting, removing };
    Step step = Step::idle;
    storage::EvictionAudit audit;
  };
  Eviction eviction_;
  std::int64_t discard_at_ = std::numeric_limits<std::int64_t>::max();  // wall time of the next expiry, or before it
  std::uint64_t reliable_epoch_ = 0;
  bool rotating_ = false;
  bool rotation_due_ = false;  // waits for the script that runs; goes before the next operation
  bool waiting_for_ids_ = false;
  bool sync_scheduled_ = false;
  std::int64_t sync_at_ = 0;           // in Shared::syncs, while scheduled: not later than sync_deadline()
  std::uint64_t dead_letter_end_ = 0;  // durable(log) at which the copy of a move is safe; 0 without one
  bool more_ = false;

  std::deque<Operation> operations_;
  bool operation_running_ = false;  // the script belongs to operations_.front()
  Instant removal_since_{};         // the collection or eviction under way
  std::unique_ptr<storage::Script> script_;
  std::unique_ptr<storage::Script> finished_;

  std::vector<ChannelLane*> dispatch_;
  std::vector<ChannelLane*> held_;  // lanes that hold commands back
  std::vector<std::unique_ptr<Fetch>> fetches_;
};

}  // namespace rq::queue
