// Steps 7 to 9 of a managed operation: fence, action, revision, result (page 30 section 13).
#include <algorithm>
#include <utility>

#include "core/base/probe.h"
#include "core/queue/management.h"

namespace rq::queue {
namespace {

// Of the synchronised and the Broker's own together.
constexpr std::size_t kFencesMax = 2 * FenceSnapshot::kFencesMax;

std::size_t count_of(const storage::ManagementFences& fences) {
  return fences.topics.size() + fences.channels.size() + fences.local_channels.size();
}

void drop_expired(storage::ManagementFences& fences, std::int64_t now_ms) {
  for (auto* map : {&fences.topics, &fences.channels, &fences.local_channels})
    std::erase_if(*map, [&](const auto& entry) { return entry.second <= now_ms; });
}

}  // namespace

bool Management::step(Now now) {
  if (script_) return false;
  switch (running_->phase) {
    case Phase::recording:
      recorded(now);
      return true;
    case Phase::counting:
      if (running_->outstanding > 0) return false;
      fence(now);
      return true;
    case Phase::fencing:
      act();
      return true;
    case Phase::acting:
      return running_->outstanding == 0 && acted();
    case Phase::clearing:
      running_->phase = Phase::bumping;
      if (running_->changed || running_->replay) shared_.meta->bump_revision();
      running_->revision = shared_.meta->revision_wanted();
      return true;
    case Phase::bumping: {
      if (shared_.meta->revision() < running_->revision) return false;
      const storage::ManagementResult result{running_->revision, running_->changed || running_->replay};
      log_.complete(running_->id, running_->fingerprint, result);
      running_->phase = Phase::completing;
      if (!io::planted(shared_.host, "forget_operation_result")) write_operations(Phase::completing);
      return true;
    }
    case Phase::completing:
    case Phase::dropping:
      finish(running_->outcome);
      return false;
  }
  return false;
}

void Management::recorded(Now now) {
  if (!running_->request.require_idle) return fence(now);
  running_->phase = Phase::counting;
  if (!exists(running_->request)) return;
  wants_count = true;
  running_->outstanding = 1;
}

// Publishes, FIN, REQ and SUB are closed by the record, so what was counted stays so.
void Management::on_counted(const StatsDone& done) {
  if (!running_ || running_->phase != Phase::counting) return;
  running_->outstanding = 0;
  if (!done.outcome.ok() || done.topics.empty() || done.topics[0].channels.empty()) return;
  const ChannelStats& channel = done.topics[0].channels[0];
  const std::uint64_t unsynced = done.topics[0].published_count - done.topics[0].last_durable_position;
  if (channel.consumers.empty() && channel.depth == 0 && channel.in_flight_count == 0 && unsynced == 0) return;
  fail({Code::channel_not_idle, "depth=" + std::to_string(channel.depth) +
                                    " in_flight=" + std::to_string(channel.in_flight_count) +
                                    " deferred=" + std::to_string(channel.deferred_count)});
}

void Management::fence(Now now) {
  running_->phase = Phase::fencing;
  const ManagedRequest& request = running_->request;
  if (!request.sets_fence()) return;
  if (!request.tombstone_until_ms) return fail({Code::invalid_tombstone, "tombstone_until_ms is missing"});
  storage::ManagementFences fences = shared_.access.fences();
  std::map<std::string, std::int64_t>& map =
      !request.on_channel ? fences.topics : (request.require_idle ? fences.local_channels : fences.channels);
  const std::string key = request.on_channel ? storage::fence_key(topic(), channel()) : topic();
  const auto [at, added] = map.emplace(key, *request.tombstone_until_ms);
  if (!added && at->second == *request.tombstone_until_ms) return;
  at->second = *request.tombstone_until_ms;
  if (count_of(fences) > kFencesMax) drop_expired(fences, now.wall.ms());
  if (count_of(fences) > kFencesMax) return fail({Code::topic_limit, "too many fences"});
  running_->changed = true;
  write_fences(std::move(fences), Phase::fencing);
}

void Management::want(Admin action, const std::string& channel_name, bool create_missing) {
  Topic::Operation operation;
  operation.action = action;
  operation.channel = channel_name;
  operation.waiter = kManagedWaiter;
  operation.create_missing = create_missing;
  if (action == Admin::configure_topic) operation.policy = running_->request.policy.value_or(DeliveryPolicy{});
  wanted.push_back({topic(), std::move(operation), create_missing});
  ++running_->outstanding;
}

void Management::act() {
  running_->phase = Phase::acting;
  if (running_->request.on_channel) {
    act_on_channel();
  } else {
    act_on_topic();
  }
}

void Management::act_on_topic() {
  switch (running_->request.action) {
    case ManagedAction::create:
      return want(Admin::configure_topic, {}, true);
    case ManagedAction::configure:
      return want(Admin::configure_topic, {}, false);
    case ManagedAction::pause:
      return want(Admin::pause_topic, {}, false);
    case ManagedAction::unpause:
      return want(Admin::unpause_topic, {}, false);
    case ManagedAction::empty: {  // every Channel, and what no Channel holds (D-23)
      const auto found = topics_.find(topic());
      if (found != topics_.end())
        for (const auto& [name, lane] : found->second->lanes()) want(Admin::empty_channel, name, false);
      return want(Admin::empty_topic, {}, false);
    }
    case ManagedAction::remove:
      return want(Admin::delete_topic, {}, false);
    case ManagedAction::tombstone:
      return;
  }
}

void Management::act_on_channel() {
  switch (running_->request.action) {
    case ManagedAction::create:
      running_->changed = running_->changed || !exists(running_->request);
      return want(Admin::create_channel, channel(), true);
    case ManagedAction::pause:
      return want(Admin::pause_channel, channel(), false);
    case ManagedAction::unpause:
      return want(Admin::unpause_channel, channel(), false);
    case ManagedAction::empty:
      return want(Admin::empty_channel, channel(), false);
    case ManagedAction::remove:
      return want(Admin::delete_channel, channel(), false);
    case ManagedAction::configure:
    case ManagedAction::tombstone:
      return;
  }
}

void Management::on_acted(const AdminDone& done) {
  if (!running_ || running_->phase != Phase::acting) return;
  --running_->outstanding;
  const ManagedAction action = running_->request.action;
  const bool missing = done.outcome.code == Code::topic_not_found || done.outcome.code == Code::channel_not_found;
  if (done.outcome.ok()) {
    const bool always = action == ManagedAction::pause || action == ManagedAction::unpause || action == ManagedAction::empty ||
                        action == ManagedAction::remove;
    running_->changed = running_->changed || always || done.changed;
  } else if (missing && action == ManagedAction::remove) {
    RQ_SOMETIMES(true, "management: what is to be deleted is not there");
  } else if (missing && action == ManagedAction::empty && !running_->request.on_channel && exists(running_->request)) {
    // An ephemeral Channel left meanwhile.
  } else if (running_->outcome.ok()) {
    running_->outcome = done.outcome;
  }
}

bool Management::acted() {
  if (running_->outcome.ok()) {
    clear_fences();
    return true;
  }
  if (running_->outcome.code == Code::storage) return false;  // the fault answers
  if (running_->outcome.code == Code::exiting) {              // I2: the next start finds it pending
    finish(running_->outcome);
    return false;
  }
  fail(running_->outcome);
  return true;
}

// A managed create takes the fence of its name away.
void Management::clear_fences() {
  running_->phase = Phase::clearing;
  if (running_->request.action != ManagedAction::create) return;
  storage::ManagementFences fences = shared_.access.fences();
  std::size_t removed = 0;
  if (running_->request.on_channel) {
    const std::string key = storage::fence_key(topic(), channel());
    removed = fences.channels.erase(key) + fences.local_channels.erase(key);
  } else {
    removed = fences.topics.erase(topic());
  }
  if (removed == 0) return;
  running_->changed = true;
  write_fences(std::move(fences), Phase::clearing);
}

void Management::fail(Outcome outcome) {
  running_->outcome = std::move(outcome);
  log_.forget(running_->id);
  write_operations(Phase::dropping);
}

void Management::finish(Outcome outcome) {
  const Running done = std::move(*running_);
  running_.reset();
  const std::string& name = done.request.topic;
  if (!log_.pending_on(name)) shared_.access.unblock(name);
  const auto found = topics_.find(name);
  if (found != topics_.end()) found->second->mark_all_lanes();
  storage::ManagementResult result;
  if (outcome.ok()) result = log_.content().records.at(done.id).result.value_or(result);
  answer(done.waiter, std::move(outcome), result);
}

}  // namespace rq::queue
