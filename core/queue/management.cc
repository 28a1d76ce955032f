#include "core/queue/management.h"

#include <algorithm>
#include <utility>

#include "core/base/probe.h"
#include "core/storage/names.h"

namespace rq::queue {
namespace {

bool needs_target(ManagedAction action) {
  return action == ManagedAction::pause || action == ManagedAction::unpause || action == ManagedAction::empty ||
         action == ManagedAction::configure;
}

// Names and policy: wrong whatever the state of the Broker is.
std::optional<Outcome> malformed(const ManagedRequest& request) {
  if (!storage::valid_name(request.topic)) return Outcome{Code::bad_topic_name, {}};
  if (request.on_channel && !storage::valid_name(request.channel)) return Outcome{Code::bad_channel_name, {}};
  const bool may_carry =
      !request.on_channel && (request.action == ManagedAction::create || request.action == ManagedAction::configure);
  if (request.policy && !may_carry) return Outcome{Code::invalid_policy, "only create and configure of a Topic have a policy"};
  if (request.policy && !request.policy->valid())
    return Outcome{Code::invalid_policy, "TTL_DISCARD needs 1 to 9223372036 seconds"};
  if (request.action == ManagedAction::configure && !request.policy)
    return Outcome{Code::invalid_policy, "configure needs the whole policy"};
  return std::nullopt;
}

}  // namespace

Management::Management(Shared& shared, const Topics& topics, storage::ManagementFences fences,
                       storage::ManagementOperations operations)
    : shared_(shared), topics_(topics), log_(std::move(operations)) {
  shared_.access.set_fences(std::move(fences));
  for (const auto& [topic, ids] : log_.pending()) shared_.access.block(topic);
}

void Management::request(ManagedRequest request, WaiterId waiter) {
  if (auto wrong = malformed(request)) return answer(waiter, std::move(*wrong));
  if (queue_.size() >= kQueuedMax) return answer(waiter, {Code::management_unavailable, "too many operations wait"});
  queue_.push_back({std::move(request), {}, false, waiter});
}

void Management::sync(const FenceSnapshot& snapshot, WaiterId waiter) {
  const auto refuse = [&](Code code, std::string detail) { shared_.events.admin.push_back({waiter, {code, std::move(detail)}}); };
  if (snapshot.topics.size() + snapshot.channels.size() > FenceSnapshot::kFencesMax)
    return refuse(Code::batch_too_large, "more than 65536 fences");
  for (const auto& [topic, until] : snapshot.topics)
    if (!storage::valid_name(topic)) return refuse(Code::bad_topic_name, topic);
  for (const FenceSnapshot::Channel& entry : snapshot.channels) {
    if (!storage::valid_name(entry.topic)) return refuse(Code::bad_topic_name, entry.topic);
    if (!storage::valid_name(entry.channel)) return refuse(Code::bad_channel_name, entry.channel);
  }
  if (queue_.size() >= kQueuedMax) return refuse(Code::management_unavailable, "too many operations wait");
  queue_.push_back({{}, snapshot, true, waiter});
}

void Management::answer(WaiterId waiter, Outcome outcome, storage::ManagementResult result) {
  shared_.events.managed.push_back({waiter, std::move(outcome), result.revision, result.changed});
}

void Management::advance(Now now, bool stopping) {
  finished_.reset();
  if (shared_.fault) return;
  while (true) {
    while (running_ && step(now)) {
    }
    if (running_ || syncing_ || queue_.empty()) return;
    Queued next = std::move(queue_.front());
    queue_.pop_front();
    if (stopping && next.sync) {
      shared_.events.admin.push_back({next.waiter, {Code::exiting, "exiting"}});
    } else if (stopping) {
      answer(next.waiter, {Code::exiting, "exiting"});
    } else if (next.sync) {
      begin_sync(next, now);
    } else {
      begin(std::move(next), now);
    }
  }
}

// --- the fences of the control plane

void Management::begin_sync(const Queued& queued, Now now) {
  storage::ManagementFences fences;
  fences.revision = queued.snapshot.revision;
  for (const auto& [topic, until] : queued.snapshot.topics) fences.topics[topic] = until;
  for (const FenceSnapshot::Channel& entry : queued.snapshot.channels)
    fences.channels[storage::fence_key(entry.topic, entry.channel)] = entry.until_ms;
  for (const auto& [key, until] : shared_.access.fences().local_channels)
    if (until > now.wall.ms()) fences.local_channels[key] = until;
  std::string content = storage::encode_fences(fences);
  syncing_ = Syncing{std::move(fences), queued.waiter};
  start_script(shared_.paths.fences(), std::move(content));
}

// --- steps 1 to 6: nothing leaves a trace before the record

bool Management::exists(const ManagedRequest& request) const {
  const auto topic = topics_.find(request.topic);
  if (topic == topics_.end() || topic->second->phase() != Topic::Phase::live) return false;
  if (!request.on_channel) return true;
  const ChannelLane* lane = topic->second->lane(request.channel);
  return lane != nullptr && !lane->removing;
}

std::optional<Outcome> Management::precondition(const ManagedRequest& request, Now now) const {
  if (request.sets_fence() && request.tombstone_until_ms.value_or(INT64_MIN) <= now.wall.ms())
    return Outcome{Code::invalid_tombstone, "tombstone_until_ms must lie in the future"};
  if (needs_target(request.action) && !exists(request))
    return Outcome{request.on_channel && topics_.contains(request.topic) ? Code::channel_not_found : Code::topic_not_found, {}};
  if (request.on_channel && request.action == ManagedAction::create && shared_.access.fenced(request.topic, now.wall))
    return Outcome{Code::topic_tombstoned, {}};
  if (log_.pending_on(request.topic)) return Outcome{Code::operation_conflict, "another operation is pending on the Topic"};
  const storage::MetaStore& meta = *shared_.meta;
  if (request.expected_revision != meta.revision() || meta.revision_wanted() != meta.revision())
    return Outcome{Code::revision_conflict, "the registry revision is " + std::to_string(meta.revision())};
  return std::nullopt;
}

void Management::begin(Queued queued, Now now) {
  ManagedRequest& request = queued.request;
  if (!storage::valid_operation_id(request.operation_id))
    return answer(queued.waiter, {Code::operation_conflict, "operation_id is 16 to 128 of A-Z a-z 0-9 - _"});
  Fingerprint fingerprint(request);
  OperationLog::Found found = log_.find(request.operation_id, fingerprint, request.topic);
  switch (found.known) {
    case OperationLog::Known::completed:
      RQ_SOMETIMES(true, "management: a completed operation is repeated");
      return answer(queued.waiter, {}, found.result);
    case OperationLog::Known::conflict:
      return answer(queued.waiter, {Code::operation_conflict, "the id belongs to another operation"});
    case OperationLog::Known::damaged: {
      const storage::Fault fault{shared_.paths.relative(shared_.paths.operations()), std::nullopt,
                                 "operation " + request.operation_id + " is completed without a result"};
      shared_.set_fault(fault);
      return answer(queued.waiter, {Code::storage, fault.message()});
    }
    case OperationLog::Known::unknown:
      if (auto refused = precondition(request, now)) return answer(queued.waiter, std::move(*refused));
      break;
    case OperationLog::Known::pending:
      RQ_SOMETIMES(true, "management: a pending operation is adopted");
      break;
  }
  const bool replay = found.known == OperationLog::Known::pending;
  std::string id = replay ? std::move(found.id) : request.operation_id;
  running_.emplace(Running{.request = std::move(request),
                           .waiter = queued.waiter,
                           .fingerprint = std::move(fingerprint),
                           .id = std::move(id),
                           .replay = replay,
                           .phase = Phase::recording,
                           .changed = false,
                           .outstanding = 0,
                           .outcome = {},
                           .revision = 0});
  if (replay) return;
  log_.begin(running_->id, running_->fingerprint, topic());
  shared_.access.block(topic());
  write_operations(Phase::recording);
}

// --- files

void Management::start_script(const std::string& path, std::string content) {
  RQ_CHECK(!script_);
  script_ = std::make_unique<storage::Script>(shared_.host, this, &Management::on_written, &shared_.retries);
  script_->replace_file(path, std::move(content));
  script_->start();
}

void Management::write_operations(Phase phase) {
  running_->phase = phase;
  start_script(shared_.paths.operations(), log_.encode());
}

void Management::write_fences(storage::ManagementFences fences, Phase phase) {
  running_->phase = phase;
  std::string content = storage::encode_fences(fences);
  fences_ = std::move(fences);
  start_script(shared_.paths.fences(), std::move(content));
}

void Management::on_written(void* self, storage::Script& script) {
  Management& management = *static_cast<Management*>(self);
  Shared& shared = management.shared_;
  management.finished_ = std::move(management.script_);
  if (script.failed()) return shared.set_fault(script.fault());
  if (management.fences_) {
    shared.access.set_fences(std::move(*management.fences_));
    management.fences_.reset();
  }
  if (!management.syncing_) return;
  shared.access.set_fences(std::move(management.syncing_->fences));
  shared.access.set_ready(true);
  shared.events.admin.push_back({management.syncing_->waiter, {}});
  management.syncing_.reset();
  for (const auto& [name, topic] : management.topics_) topic->mark_all_lanes();
}

void Management::digest(Hasher& hasher) const {
  hasher.add(storage::encode_fences(shared_.access.fences()));
  hasher.add(log_.encode());
}

void Management::fail_all(const Outcome& outcome) {
  if (running_) answer(running_->waiter, outcome);
  if (syncing_) shared_.events.admin.push_back({syncing_->waiter, outcome});
  for (const Queued& queued : queue_) {
    if (queued.sync) {
      shared_.events.admin.push_back({queued.waiter, outcome});
    } else {
      answer(queued.waiter, outcome);
    }
  }
  running_.reset();
  syncing_.reset();
  queue_.clear();
  wanted.clear();
}

}  // namespace rq::queue
