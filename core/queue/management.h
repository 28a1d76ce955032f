// Managed operations and the synchronisation of fences (page 30 section 13): one at a time for the whole Broker, each with an id
// that makes a repetition harmless.
//
//   looked_up -> recording -> [counting] -> [fencing] -> acting -> [clearing] -> bumping -> completing -> answered
//                                  \_________\____________\-> dropping -> refused
//
//  I1 The record "pending" is durable before anything is touched, the result before the answer; a crash in between leaves the
//     record, which blocks the Topic until the same operation is asked for again (I-55).
//  I2 A refusal before `recording` leaves no trace. A failure of the action that is not the storage's takes the record back
//     (O-11), unless the Broker is stopping: then it stays for the next start.
//  I3 A fence is durable before the deletion it belongs to (I-56).
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/queue/operation_log.h"
#include "core/queue/shared.h"
#include "core/queue/topic.h"
#include "core/storage/script.h"

namespace rq::queue {

class Management {
 public:
  static constexpr std::size_t kQueuedMax = 256;
  using Topics = std::map<std::string, std::unique_ptr<Topic>, std::less<>>;

  // Fences and pending operations go to `shared.access`.
  Management(Shared& shared, const Topics& topics, storage::ManagementFences fences, storage::ManagementOperations operations);

  void request(ManagedRequest request, WaiterId waiter);
  void sync(const FenceSnapshot& snapshot, WaiterId waiter);

  // The answers to what it wanted.
  void on_acted(const AdminDone& done);
  void on_counted(const StatsDone& done);
  // Moves on until it has to wait. `stopping`: requests that have not begun are refused.
  void advance(Now now, bool stopping);

  // What the Engine shall do for it.
  struct Wanted {
    std::string topic;
    Topic::Operation operation;
    bool create_missing = false;
  };
  std::vector<Wanted> wanted;
  bool wants_count = false;  // of topic() and channel()
  const std::string& topic() const { return running_->request.topic; }
  const std::string& channel() const { return running_->request.channel; }

  bool idle() const { return !running_ && !syncing_ && queue_.empty(); }
  void fail_all(const Outcome& outcome);
  void digest(Hasher& hasher) const;

 private:
  enum class Phase : std::uint8_t { recording, counting, fencing, acting, clearing, bumping, completing, dropping };
  struct Queued {
    ManagedRequest request;
    FenceSnapshot snapshot;
    bool sync = false;
    WaiterId waiter = WaiterId::none;
  };
  struct Running {
    ManagedRequest request;
    WaiterId waiter;
    Fingerprint fingerprint;
    std::string id;  // of the record: another one's when it was adopted
    bool replay = false;
    Phase phase = Phase::recording;
    bool changed = false;
    std::uint32_t outstanding = 0;  // answers to wait for
    Outcome outcome;                // the first failure of the action
    std::uint64_t revision = 0;
  };
  struct Syncing {
    storage::ManagementFences fences;
    WaiterId waiter;
  };

  void begin(Queued queued, Now now);
  void begin_sync(const Queued& queued, Now now);
  std::optional<Outcome> precondition(const ManagedRequest& request, Now now) const;
  bool exists(const ManagedRequest& request) const;
  bool step(Now now);  // false: it has to wait
  void recorded(Now now);
  void fence(Now now);
  void act();
  void act_on_topic();
  void act_on_channel();
  void want(Admin action, const std::string& channel, bool create_missing);
  bool acted();
  void clear_fences();
  void fail(Outcome outcome);
  void finish(Outcome outcome);
  void answer(WaiterId waiter, Outcome outcome, storage::ManagementResult result = {});
  void write_operations(Phase phase);
  void write_fences(storage::ManagementFences fences, Phase phase);
  void start_script(const std::string& path, std::string content);
  static void on_written(void* self, storage::Script& script);

  Shared& shared_;
  const Topics& topics_;
  OperationLog log_;
  std::deque<Queued> queue_;
  std::optional<Running> running_;
  std::optional<Syncing> syncing_;
  std::optional<storage::ManagementFences> fences_;  // being written
  std::unique_ptr<storage::Script> script_;
  std::unique_ptr<storage::Script> finished_;
};

}  // namespace rq::queue
