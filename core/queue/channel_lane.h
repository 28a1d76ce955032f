// A Channel with what it needs to be durable: its WAL, the commands on their way, its checkpoints, and its consumers (page 30
// sections 0.1 and 4).
//
//  I1 A FIN or REQ is reported (CommandDone) only when the WAL covers it (I-34), in the order of the commands.
//     Who finds nothing to do any more is answered no earlier than the commands before him: one of them may have done it, and
//     not be durable.
//  I2 While a checkpoint is written the Channel's commands wait in memory and are appended afterwards; a file becomes the
//     checkpoint only when the frames of all acknowledgements in it are durable. While its temporary file is made, which needs
//     nothing of the Channel, and while a barrier over the WAL runs, commands go on.
//  I3 At most kGroupMax commands are appended per barrier, and no more than kCommandsMax between two checkpoints.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "core/queue/channel.h"
#include "core/queue/shared.h"
#include "core/storage/script.h"

namespace rq::queue {

class ChannelLane {
 public:
  static constexpr std::uint32_t kGroupMax = 1'024;      // page 30 section 4
  static constexpr std::int64_t kHoldNs = kMillisecond;  // D-16: at most
  // What comes while a checkpoint is due and not begun; far from the storage::kWalCommandsMax that a start accepts.
  static constexpr std::uint32_t kCommandsMax = storage::kWalCheckpointCommands + 2 * kGroupMax;
  // Counters that moved without a WAL record are checkpointed at most this often (D-25).
  static constexpr std::int64_t kCounterCheckpointNs = 10 * kSecond;

  ChannelLane(Shared& shared, Topic& topic, storage::ChannelImage image, bool in_memory);
  ~ChannelLane();
  ChannelLane(const ChannelLane&) = delete;
  ChannelLane& operator=(const ChannelLane&) = delete;

  Channel& channel() { return channel_; }
  const Channel& channel() const { return channel_; }
  Topic& topic() { return topic_; }
  std::uint64_t serial() const { return serial_; }
  bool ephemeral() const { return ephemeral_; }            // by name: goes with its last consumer
  bool in_memory() const { return channel_.ephemeral(); }  // has no files; so have all Channels of an ephemeral Topic

  // --- commands. `done` says who hears about it.
  struct Done {
    ConsumerId consumer = ConsumerId::none;
    MessageId id = 0;
    bool requeue = false;
    bool silent = false;               // a finish of the Broker itself: the slot comes back, nobody is told
    WaiterId waiter = WaiterId::none;  // pause, empty
    bool dead_letter = false;          // the finish of a move: DeadLetters hears about it
  };
  // The effect is in the Channel already. Without a command nothing was left to do. An ephemeral Channel reports at once.
  void commit(const std::optional<storage::WalCommand>& command, const Done& done, Now now);
  void on_durable(Now now);  // the WAL's durable offset moved
  void pump(Now now);        // appends what the group cap or a checkpoint held back; starts a due checkpoint
  bool wants_pump() const { return !backlog_.empty(); }
  bool can_go_on() const;  // held back by the group cap alone, and the barrier over the group has started

  // --- consumers, in order of their subscription; delivery takes turns
  std::vector<ConsumerId> consumers;
  std::size_t next_consumer = 0;

  Instant window_said = Instant::never();  // when a full ack window was last logged; never: not yet
  bool window_full = false;

  // --- scheduling
  bool dispatch_marked = false;
  bool waits_for_slot = false, waits_for_read = false;  // LaneTurns
  void unschedule();                                    // its deadline has come
  void reschedule(Now now);                             // after anything that may have moved the next deadline

  // What no crash takes back: collection decides from the floor alone (I-02), /stats shows these counters (D-25).
  struct Kept {
    Position floor = 0;
    std::uint64_t requeues = 0, timeouts = 0;
    void raise(const Kept& other);
  };
  const Kept& kept() const { return kept_; }
  Position durable_floor() const { return kept_.floor; }

  void note_changed() { ++changes_; }  // attempts or counters moved without a command
  bool changed() const { return changes_ != checkpointed_changes_; }

  // --- life
  bool idle() const;      // nothing in flight on disk
  bool removing = false;  // being deleted: nothing is delivered or accepted any more
  // Adds the steps of a clean stop: a checkpoint and an empty WAL, when anything changed since the last one.
  void add_checkpoint(storage::Script& script);
  void fail_waiting(const Outcome& outcome);

 private:
  struct Waiting {
    std::uint64_t end_offset;
    Instant since;
    Done done;
    Kept kept;  // once this command is durable
  };
  bool checkpoint_due(Now now) const;
  void prepare_checkpoint(Now now);
  void begin_checkpoint();
  void append(const storage::WalCommand& command, const Done& done, Instant since, const Kept& kept);
  void answer_behind(const Done& done, Instant since, Now now);
  Kept now_kept() const;
  bool may_wait(const Done& done) const;
  Consumer* finishing(const Done& done) const;  // null: nobody's, or gone
  void report(const Done& done, Instant since, Now now);
  static void on_prepared(void* self, storage::Script& script);
  static void on_held(void* self, storage::Script& script);
  static void on_checkpoint(void* self, storage::Script& script);

  Shared& shared_;
  Topic& topic_;
  std::uint64_t serial_;
  Channel channel_;
  bool ephemeral_;
  storage::Committer::LogId wal_ = storage::Committer::kNoLog;
  std::deque<Waiting> waiting_;  // appended, not durable
  struct Held {
    std::optional<storage::WalCommand> command;
    Done done;
    Instant since;
    Kept kept;
  };
  std::deque<Held> backlog_;                // not appended yet
  std::uint32_t group_ = 0;                 // commands appended since the last barrier over the WAL started
  std::uint32_t commands_ = 0;              // since the last checkpoint
  std::uint64_t changes_ = 0;               // of the Channel's state
  std::uint64_t checkpointed_changes_ = 0;  // that the stored checkpoint holds
  std::uint64_t image_changes_ = 0;         // that the checkpoint being written holds
  bool checkpoint_pending_ = false;         // one is written: script_ runs
  Kept kept_;
  Kept checkpoint_kept_;        // by the checkpoint being written
  Instant answered_{-kHoldNs};  // the last barrier over the WAL ended
  Instant last_checkpoint_{-kCounterCheckpointNs};
  std::unique_ptr<storage::Script> script_;
  std::unique_ptr<storage::Script> finished_;
  std::int64_t scheduled_ = 0;
  bool is_scheduled_ = false;
};

}  // namespace rq::queue
