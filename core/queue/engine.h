// The queue engine: every Topic and Channel of one Broker over one data directory (page 30 sections 1 to 5 and 11). Sessions and
// the HTTP API call it; what takes time comes back as an event. It owns the committer, so a turn becomes one append per dirty
// file and one barrier over all of them.
//
//  I1 Exactly one answer for every call that names a WaiterId, also when its caller is gone (the Broker drops answers for dead
//     waiters).
//  I2 No PublishDone ok before the barrier that covers its record (mode durable); no CommandDone before its WAL's.
//  I3 After a storage fault no answer is ok any more and nothing is written (page 30 section 2.8).
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/histogram.h"
#include "core/io/ports.h"
#include "core/queue/channel.h"
#include "core/queue/dead_letter_rules.h"
#include "core/storage/image.h"

namespace rq::queue {

enum class WaiterId : std::uint64_t { none = 0 };  // chosen by the caller

inline constexpr std::uint64_t kReserveBytes = 16ull << 20;  // D-42b

enum class AckMode : std::uint8_t { durable, write_ack, nsq_relaxed };

struct EngineOptions {
  std::string data_path;
  std::uint64_t node_id = 1;
  std::uint32_t feature_level = 1;
  std::int64_t pid = 0;
  std::uint64_t max_segment_bytes = 100ull << 20;
  std::uint64_t entry_cache_bytes = 64ull << 20;
  std::uint64_t message_index_cache_bytes = 64ull << 20;
  std::uint64_t max_message_bytes = 20ull << 20;
  std::uint64_t max_topics = 10'000;
  std::uint64_t max_ack_gap = 65'536;
  std::uint64_t max_publish_workers = 1'024;
  std::uint64_t publish_worker_idle_seconds = 60;
  std::uint64_t bootstrap_retention_seconds = 90;
  std::uint64_t maintenance_startup_delay_seconds = 30;  // collection and scrub start that long after opening
  std::uint64_t scrub_interval_seconds = 3'600;          // from the end of a pass to the next
  std::uint64_t scrub_bytes_per_second = 64ull << 20;    // at least 1
  std::int64_t max_defer_ms = 3'600'000;
  std::int64_t max_message_timeout_ms = 900'000;
  std::uint64_t node_delivery_inflight_messages = 262'144;
  std::uint64_t node_delivery_inflight_bytes = 512ull << 20;       // twice the bodies on their way to consumers
  std::uint64_t connection_delivery_inflight_bytes = 32ull << 20;  // bodies of one batch, beyond its first message
  std::uint64_t payload_read_queue = 4'096;                        // reads queued or running
  DeadLetterSettings dead_letters;
  std::uint64_t write_handles_max = 512;             // half of RLIMIT_NOFILE at most
  std::uint64_t max_channel_consumers = 0;           // 0 = unlimited (D-11)
  std::uint64_t ephemeral_queue_messages = 10'000;   // per ephemeral Channel, and per ephemeral Topic without one (D-21)
  std::uint64_t node_ephemeral_bytes = 64ull << 20;  // of all ephemeral Topics
  bool console_management = false;                   // no Topic may be touched before the first sync_fences()
  AckMode ack_mode = AckMode::durable;
  std::uint64_t relaxed_sync_messages = 2'500;
  std::uint64_t relaxed_sync_bytes = 8ull << 20;
  std::int64_t relaxed_sync_interval_ms = 10;
};

enum class Code : std::uint8_t {
  ok,
  bad_topic_name,
  bad_channel_name,
  topic_not_found,
  channel_not_found,
  topic_limit,
  channel_limit,
  worker_limit,
  topic_retiring,  // being deleted: retryable
  exiting,         // deleted while the request waited
  sequence_exhausted,
  batch_too_large,
  message_too_large,
  empty_message,
  consumer_limit,  // D-11
  not_in_flight,
  not_owner,
  invalid_policy,
  topic_tombstoned,
  channel_tombstoned,
  channel_not_idle,
  management_unavailable,  // fences not known, or an operation is pending on the Topic
  revision_conflict,
  operation_conflict,
  invalid_tombstone,
  storage,  // fault; `detail` has the reason
};

// RELIABLE, or TTL_DISCARD with a lifetime in whole seconds from a message's timestamp on (page 30 section 9.1).
struct DeliveryPolicy {
  // Bounds what fits the nanosecond range.
  static constexpr std::uint64_t kTtlSecondsMax = 9'223'372'036;
  bool ttl_discard = false;
  std::uint64_t ttl_seconds = 0;  // 0 for RELIABLE, else 1..kTtlSecondsMax
  bool valid() const { return ttl_discard ? ttl_seconds >= 1 && ttl_seconds <= kTtlSecondsMax : ttl_seconds == 0; }
  bool operator==(const DeliveryPolicy&) const = default;
};

struct Outcome {
  Code code = Code::ok;
  std::string detail;  // free text for logs and messages
  bool ok() const { return code == Code::ok; }
};

struct SubscribeOptions {
  std::int64_t message_timeout_ms = 60'000;  // all of a lease: frames do not wait in a buffer (D-08), so nothing is added for one
  std::uint32_t sample_rate = 0;             // percent; 0 = everything (D-09)
  bool live_feed = false;  // a missing Topic is topic_not_found; finishes are neither counted nor answered by CommandDone
};

// Events, in the order in which they happened. The Broker drains them in every settle.
struct PublishDone {
  WaiterId waiter;
  Outcome outcome;
};
struct SubscribeDone {
  WaiterId waiter;
  Outcome outcome;
  ConsumerId consumer = ConsumerId::none;
};
struct Delivery {
  ConsumerId consumer;
  MessageId id;
  Token token;
  std::int64_t timestamp_ns;
  std::uint16_t attempts;
  Slice body;
  // TTL_DISCARD: no byte of it may be written from here on (I-48); the end of time for all others.
  WallTime expires{std::numeric_limits<std::int64_t>::max()};
};
// FIN or REQ became durable (ok: RDY room has grown), or failed.
struct CommandDone {
  ConsumerId consumer;
  MessageId id;
  bool requeue = false;
  Outcome outcome;
};
struct TimedOut {
  ConsumerId consumer;  // its in-flight count has fallen by one
  MessageId id;
};
// The Channel or Topic is gone, or delivery failed: close the connection. `frame` is empty for a silent close.
struct ConsumerClosed {
  ConsumerId consumer;
  std::string frame;
};
// The policy of its Topic is another one: what of it lies unwritten at the connection must not be written (page 30 section 9.1).
struct PolicyChanged {
  ConsumerId consumer;
  std::size_t deliveries = 0;  // Events::deliveries from this index on came after the change
};
struct AdminDone {
  WaiterId waiter;
  Outcome outcome;
  bool changed = false;  // configure(): the Topic was created or its policy differs from before
};

// A managed operation (page 30 section 13).
enum class ManagedAction : std::uint8_t { create, configure, pause, unpause, empty, remove, tombstone };
struct ManagedRequest {
  std::string operation_id;
  ManagedAction action = ManagedAction::create;
  bool on_channel = false;
  std::string topic, channel;
  bool require_idle = false;  // delete of a Channel: only without consumers and backlog
  std::uint64_t expected_revision = 0;
  std::optional<std::int64_t> tombstone_until_ms;  // Unix ms
  std::optional<DeliveryPolicy> policy;            // create (absent: RELIABLE) and configure of a Topic, nothing else
  bool sets_fence() const { return action == ManagedAction::remove || action == ManagedAction::tombstone; }
};
struct ManagedDone {
  WaiterId waiter;
  Outcome outcome;
  std::uint64_t revision = 0;
  bool changed = false;
};
// The control plane's snapshot of all fences. At most kFencesMax of them.
struct FenceSnapshot {
  static constexpr std::size_t kFencesMax = 65'536;
  struct Channel {
    std::string topic, channel;
    std::int64_t until_ms = 0;
  };
  std::string revision;
  std::vector<std::pair<std::string, std::int64_t>> topics;  // until, Unix ms
  std::vector<Channel> channels;
};
struct ScrubDone {
  WaiterId waiter;
  Outcome outcome;
  std::uint64_t records = 0;  // checked
};

struct ChannelStats {
  std::string name;
  std::uint64_t depth = 0;  // all outstanding, in-flight and deferred included
  std::uint64_t message_count = 0;
  std::uint64_t in_flight_count = 0;
  std::uint64_t deferred_count = 0;
  std::uint64_t held_deferred = 0;  // of those, what a paused Topic holds back and counts as its own (D-36)
  std::uint64_t requeue_count = 0;
  std::uint64_t timeout_count = 0;
  bool paused = false;
  bool ephemeral = false;
  bool blocked_by_ack_window = false;
  Position ack_cursor = 0;
  std::uint64_t ack_gap = 0;
  std::vector<ConsumerId> consumers;
};
struct TopicStats {
  std::string name;
  bool paused = false;
  bool ttl_discard = false;
  std::optional<std::uint64_t> message_ttl_seconds;
  std::uint64_t ttl_discarded_messages = 0;
  std::uint64_t published_count = 0;  // next position - 1, without what a crash could still take back (D-25)
  std::uint64_t published_bytes = 0;  // since start
  std::uint64_t message_count = 0;    // stored
  std::uint64_t unrouted_depth = 0;   // D-36: what no Channel holds
  std::uint64_t segment_count = 0;
  std::uint64_t segment_bytes = 0;
  Position last_durable_position = 0;
  std::uint64_t visible_unsynced = 0;  // deliverable and not durable yet (nsq_relaxed); unrouted_depth holds them, too
  std::uint64_t unsynced_messages = 0;
  std::uint64_t unsynced_bytes = 0;
  std::uint64_t sync_lag_ms = 0;
  std::vector<ChannelStats> channels;  // by name
};
struct StatsDone {
  WaiterId waiter;
  Outcome outcome;
  std::vector<TopicStats> topics;  // by name
};

struct Events {
  std::vector<PublishDone> published;
  std::vector<SubscribeDone> subscribed;
  std::vector<Delivery> deliveries;
  std::vector<CommandDone> commands;
  std::vector<TimedOut> timed_out;
  std::vector<ConsumerClosed> closed;
  std::vector<PolicyChanged> policy_changes;
  std::vector<AdminDone> admin;
  std::vector<StatsDone> stats;
  std::vector<ManagedDone> managed;
  std::vector<ScrubDone> scrubbed;
  bool empty() const {
    return published.empty() && subscribed.empty() && deliveries.empty() && commands.empty() && timed_out.empty() &&
           closed.empty() && policy_changes.empty() && admin.empty() && stats.empty() && managed.empty() && scrubbed.empty();
  }
  void clear();
};

struct EngineMetrics {
  std::uint64_t publish_commits = 0, publish_requests = 0, publish_group_max = 0;
  std::uint64_t channel_commits = 0, channel_requests = 0, channel_group_max = 0;
  std::uint64_t published_messages = 0, published_bytes = 0;
  std::uint64_t dead_letter_messages = 0, retention_expired_messages = 0;  // moves; those for their age
  std::uint64_t finished_messages = 0, requeued_messages = 0, timed_out_messages = 0;
  std::uint64_t barriers = 0, appends = 0, appended_bytes = 0;
  std::uint64_t ttl_discarded_messages = 0;
  std::uint64_t protective_evictions = 0, protective_evicted_messages = 0;
  std::uint64_t payload_reads = 0, payload_cache_hits = 0, metadata_reads = 0;
  std::uint64_t in_flight_messages = 0;                    // slots in use
  std::uint64_t delivery_bytes = 0;                        // of node_delivery_inflight_bytes in use
  std::uint64_t delivery_waiters = 0, delivery_waits = 0;  // batches that wait for it now, and ever did
  // Looks for messages for a ready consumer; those that found none; the others with what they took.
  std::uint64_t fetch_requests = 0, fetch_empty = 0, fetch_batches = 0, fetch_messages = 0, fetch_bytes = 0;
  // Slots of publish committers (page 30 section 2.9): in use, given up when idle, refused.
  std::uint64_t publish_workers = 0, publish_workers_retired = 0, publish_workers_rejected = 0;
  // Barriers over segments and over WALs, waits of publishes and commands until they are appended, whole publishes and commands,
  // reads of bodies, scrub passes, removals of segments.
  Histogram barrier_us, publish_wait_us, publish_ack_us, channel_barrier_us, channel_wait_us, channel_ack_us, payload_read_us,
      scrub_us, gc_us;
};

enum class Admin : std::uint8_t {
  create_topic,
  delete_topic,
  empty_topic,
  pause_topic,
  unpause_topic,
  configure_topic,  // through configure()
  create_channel,
  delete_channel,
  empty_channel,
  pause_channel,
  unpause_channel,
};

enum class EngineState : std::uint8_t { closed, opening, open, faulted, stopping, stopped };

class Engine {
 public:
  Engine(io::Host& host, EngineOptions options);
  ~Engine();

  // --- life. open() starts recovery; state() becomes open or faulted (then fault() says why; a refused opening too).
  void open();
  EngineState state() const;
  const storage::Fault* fault() const;  // null unless faulted
  std::uint64_t recovered_topics() const, recoverable_topics() const;
  // Releases what is in flight, syncs logs, writes checkpoints and manifests, leaves the clean marker (D-41). state() becomes
  // stopped, or faulted. Call when no consumer is left; further calls are answered with Code::exiting.
  void stop();

  // --- publish. Bodies are not empty and within limits (checked here again). Refused at once with a code other than ok: then no
  // event follows. Otherwise exactly one PublishDone. defer_ms within 0..max_defer_ms.
  Outcome publish(std::string_view topic, std::vector<Slice> bodies, std::int64_t defer_ms, WaiterId waiter, Now now);

  // --- consume. subscribe() creates Topic and Channel when missing; SubscribeDone follows always. Deliveries may
  // start with the first set_ready().
  void subscribe(std::string_view topic, std::string_view channel, const SubscribeOptions& options, WaiterId waiter, Now now);
  void unsubscribe(ConsumerId consumer, Now now);          // releases what it holds; the last one removes an ephemeral Channel
  void set_ready(ConsumerId consumer, std::uint32_t rdy);  // RDY; 0 stops
  void set_writable(ConsumerId consumer, bool writable);   // false while the connection's output is backed up
  // ok: a CommandDone follows when durable. Any other code is final and changes nothing.
  Code finish(ConsumerId consumer, MessageId id, Now now);
  Code requeue(ConsumerId consumer, MessageId id, std::int64_t delay_ms, Now now);  // delay clamped here
  Code touch(ConsumerId consumer, MessageId id, Now now);
  // So many bytes of bodies delivered to this consumer left for its socket: their part of the byte budget is free again.
  void written(ConsumerId consumer, std::uint64_t body_bytes);
  void cancel(ConsumerId consumer, MessageId id, Token token);  // a Delivery that was never written
  std::uint32_t ready_of(ConsumerId consumer) const;
  std::uint64_t in_flight_of(ConsumerId consumer) const;  // counts until FIN/REQ is durable or it timed out
  // True if another message would be handed to this consumer right now were one available: rdy > in flight and not paused.
  bool can_take(ConsumerId consumer) const;

  // --- administration; AdminDone follows always.
  void admin(Admin action, std::string_view topic, std::string_view channel, WaiterId waiter, Now now);

  // Sets the Topic's policy (page 30 section 9.1); AdminDone follows always, when the policy is durable and what is due under it
  // has been discarded. With `create_missing` a missing Topic is created (managed create), otherwise it is topic_not_found.
  void configure(std::string_view topic, const DeliveryPolicy& policy, bool create_missing, WaiterId waiter, Now now);
  // Null for a Topic that is not there.
  std::optional<DeliveryPolicy> policy_of(std::string_view topic) const;
  // How often the Topic became RELIABLE in this process: a live feed sees TTL_DISCARD -> RELIABLE -> TTL_DISCARD. 0 if it is not
  // there.
  std::uint64_t reliable_epoch_of(std::string_view topic) const;

  // --- the volume. evict_oldest(): pressure has lasted (page 30 section 8); the Topic with the oldest stored message loses its
  // oldest segment, unless that is being read or the Topic is busy: then nothing this time. hold_reserve(): there is space, the
  // blocks that let a full volume be drained are taken; give_back_reserve(): there is almost none left (D-42b).
  void evict_oldest(Now now);
  void hold_reserve(Now now);
  void give_back_reserve();

  // --- management (page 30 section 13); ManagedDone follows always. One operation at a time, in order.
  void manage(ManagedRequest request, WaiterId waiter);
  // Replaces every fence but the unexpired local ones, and makes the Broker ready; AdminDone follows when it is durable.
  void sync_fences(const FenceSnapshot& snapshot, WaiterId waiter);
  bool fences_ready() const;

  // --- statistics; StatsDone follows always. Empty filters mean everything.
  void stats(std::string_view topic, std::string_view channel, WaiterId waiter, Now now);
  // The same for the registry: first every change answered so far gets its revision. No Topics unless asked for.
  void registry(bool topics, WaiterId waiter);

  // --- scrub (page 30 section 6.2): a whole pass of its own over every sealed segment; ScrubDone follows always. A mismatch is a
  // storage fault.
  void scrub(WaiterId waiter);
  // No pass goes on or begins; who waits for one hears Code::exiting.
  void end_scrub();
  bool has_topic(std::string_view topic) const;
  bool has_channel(std::string_view topic, std::string_view channel) const;
  // While on, a new Topic in memory is opening: each Channel that it gets starts with everything it has kept, until open() (page
  // 10 section 5.1). Files have the bootstrap window for that.
  void keep_for_known_channels(bool on);
  bool opening(std::string_view topic) const;
  void open(std::string_view topic);  // behind the operations asked for before
  std::uint64_t registry_revision() const;
  const EngineMetrics& metrics() const;
  const storage::BrokerImage& identity() const;  // node id, levels, generation; no Topics

  // --- the turn
  void expire(Now now);
  // Moves work forward and submits to the disk. New events may appear; call until events() stays empty, then submit(now).
  void advance(Now now);
  void submit(Now now);
  Instant next_deadline(Now now) const;
  Events& events();
  // True when nothing is queued, in flight on disk or waiting: the simulator's liveness check.
  bool quiet() const;

  void digest(Hasher& hasher) const;
  void check_invariants() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rq::queue
