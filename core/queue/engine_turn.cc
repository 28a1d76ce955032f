// The Engine's part of a turn: deadlines, watermarks, Topics with work, submission.
#include <algorithm>
#include <utility>

#include "core/base/probe.h"
#include "core/queue/engine_impl.h"

namespace rq::queue {
namespace {

// A wall-clock step beyond this is looked at at once; a slower drift is met by the next look (design: rules).
constexpr std::int64_t kWallStepNs = 1 * kMillisecond;
constexpr std::int64_t kWallLookNs = 100 * kMillisecond;
constexpr int kRoundsMax = 64;
constexpr std::int64_t kDiscardEveryNs = 250 * kMillisecond;
constexpr std::size_t kDiscardTopicsMax = 128;  // per pass
constexpr std::int64_t kCollectEveryNs = 5 * kSecond;
constexpr std::size_t kCollectTopicsMax = 128;  // per tick

// D-42a: the positions that a fault in an active segment concerns.
storage::Fault with_positions(storage::Fault fault, const std::map<std::string, std::unique_ptr<Topic>, std::less<>>& topics) {
  for (const auto& [name, topic] : topics) {
    storage::TopicLog* log = topic->disk();
    if (log == nullptr || log->segment_path(log->next_position()) != fault.file) continue;
    fault.what += " (positions from " + std::to_string(log->durable_position() + 1) + " on are not durable)";
  }
  return fault;
}

}  // namespace

void Engine::expire(Now now) {
  Impl& impl = *impl_;
  if ((!impl.shared.retries.empty() || impl.shared.reads.starved()) && now.mono >= impl.retry_at) {
    impl.shared.retries.run();
    if (impl.shared.reads.starved()) impl.shared.reads.retry();
    impl.retry_at = now.mono + storage::ScriptRetries::kAfterNs;
  }
  if (impl.state != EngineState::open || impl.shared.fault) return;
  const std::int64_t offset = now.wall.ns - now.mono.ns;
  const std::int64_t moved = offset - impl.wall_offset;
  if (moved > kWallStepNs || moved < -kWallStepNs) {
    RQ_SOMETIMES(impl.wall_offset != 0, "engine: the wall clock jumped");
    for (const auto& [name, topic] : impl.topics) topic->mark_all_lanes();
    impl.wall_offset = offset;
  }
  impl.last_wall_look = now.mono;
  while (!impl.shared.deadlines.empty() && impl.shared.deadlines.begin()->first <= now.mono.ns) {
    ChannelLane& lane = *impl.shared.lanes.at(impl.shared.deadlines.begin()->second);
    lane.unschedule();
    lane.topic().expire(lane, now);
  }
  if (now.mono >= impl.discard_at) impl.discard(now);
  if (now.mono >= impl.collect_at) impl.collect(now);
  while (!impl.shared.syncs.empty() && impl.shared.syncs.begin()->first <= now.mono.ns)
    impl.by_owner.at(impl.shared.syncs.begin()->second)->on_sync_deadline(now);
}

void Engine::advance(Now now) {
  Impl& impl = *impl_;
  if (impl.state == EngineState::opening) {
    if (!impl.opener->done()) return;
    if (impl.shared.meta == nullptr) impl.recovered();
  }
  if (impl.state == EngineState::closed || impl.state == EngineState::stopped || impl.state == EngineState::faulted) {
    impl.advance_stats(now);
    return;
  }
  impl.take_advances(now);
  if (impl.shared.meta->moved()) {
    std::vector<Topic*> waiting;
    waiting.swap(impl.shared.waiting_for_ids);
    for (Topic* topic : waiting) {
      topic->waits_for_ids = false;
      topic->mark();
    }
  }
  impl.run_topics(now);
  impl.dead_letters.advance(now);
  impl.run_topics(now);
  if (impl.state == EngineState::opening) impl.settle_opening(now);
  impl.serve_waiting(now);
  impl.scrub.advance(now, impl.topics);
  impl.advance_stats(now);
  impl.manage(now);
  if (impl.state == EngineState::stopping) impl.advance_stop();
  if (!impl.shared.fault && impl.shared.committer.fault())
    impl.shared.set_fault(with_positions(*impl.shared.committer.fault(), impl.topics));
  if (!impl.shared.fault && impl.shared.meta->fault()) impl.shared.set_fault(*impl.shared.meta->fault());
  if (!impl.shared.fault && impl.shared.logs.fault) impl.shared.set_fault(*impl.shared.logs.fault);
  if (impl.shared.fault) impl.fault_now();
}

void Engine::evict_oldest(Now now) {
  Impl& impl = *impl_;
  if (impl.state != EngineState::open || impl.shared.fault) return;
  if (now.mono >= impl.collect_at) impl.collect(now);  // what nobody needs goes first
  Topic* oldest = nullptr;
  std::int64_t timestamp_ns = std::numeric_limits<std::int64_t>::max();
  for (const auto& [name, topic] : impl.topics) {
    if (topic->disk() == nullptr || topic->disk()->oldest_timestamp_after(0) >= timestamp_ns) continue;
    timestamp_ns = topic->disk()->oldest_timestamp_after(0);
    oldest = topic.get();
  }
  if (oldest != nullptr) oldest->evict();
}

void Engine::hold_reserve(Now now) {
  if (impl_->state == EngineState::open && !impl_->shared.fault) impl_->reserve.hold(impl_->lock, now);
}

void Engine::give_back_reserve() {
  if (impl_->state == EngineState::open && !impl_->shared.fault) impl_->reserve.give_back(impl_->lock);
}

void Engine::Impl::collect(Now now) {
  while (retire_committer(now)) continue;
  auto at = topics.upper_bound(collect_after);
  for (std::size_t i = 0; i < kCollectTopicsMax && at != topics.end(); ++i, ++at) {
    at->second->collect(now);
    collect_after = at->first;
  }
  if (at == topics.end()) collect_after.clear();
  collect_at = now.mono + kCollectEveryNs;
}

// The Topics whose messages expire first.
void Engine::Impl::discard(Now now) {
  std::size_t begun = 0;
  for (auto at = shared.expiries.begin(); at != shared.expiries.end() && at->first <= now.wall.ns; ++at) {
    Topic& topic = *by_owner.at(at->second);
    if (topic.discarding()) continue;
    topic.retry_discard();
    topic.want_discard();
    if (++begun == kDiscardTopicsMax) break;
  }
  if (begun > 0) discard_at = now.mono + kDiscardEveryNs;
}

// What expired while nobody looked goes before anybody can see it (page 30 section 9.2).
void Engine::Impl::settle_opening(Now now) {
  if (!dead_letters.replayed() || shared.fault) return;
  std::erase_if(unsettled, [now](Topic* topic) {
    if (topic->discarding()) return false;
    if (topic->discard_due(now)) {
      topic->want_discard();
      return false;
    }
    return true;
  });
  if (!unsettled.empty()) return;
  const auto delay = static_cast<std::int64_t>(std::min<std::uint64_t>(options.maintenance_startup_delay_seconds, 1ull << 33));
  collect_at = now.mono + delay * kSecond;
  scrub.schedule(collect_at);
  state = EngineState::open;
}

void Engine::Impl::recovered() {
  storage::Result<storage::BrokerImage>& result = opener->result();
  lock = opener->lock_file();
  if (!result) {
    shared.set_fault(result.error());
    state = EngineState::faulted;
    return;
  }
  storage::BrokerImage image = std::move(*result);
  shared.meta = std::make_unique<storage::MetaStore>(host, shared.retries, shared.paths.broker_meta(), image.node_id,
                                                     image.next_sequence, image.registry_revision);
  for (storage::TopicImage& topic_image : image.topics) {
    std::string name = topic_image.name;
    auto topic = std::make_unique<Topic>(shared, std::move(topic_image));
    by_owner[topic->owner()] = topic.get();
    unsettled.push_back(topic.get());
    topics.emplace(std::move(name), std::move(topic));
  }
  image.topics.clear();
  shared.metadata.shrink();  // page 20 section 8.1 step 10
  shared.access.set_ready(!options.console_management);
  management = std::make_unique<Management>(shared, topics, std::move(image.fences), std::move(image.operations));
  dead_letters.replay(std::move(image.outbox));
  image.outbox.clear();
  identity = std::move(image);
}

void Engine::Impl::take_advances(Now now) {
  std::vector<storage::Committer::Advance> advances;
  advances.swap(shared.committer.advances());
  std::uint32_t answered = 0;
  for (const storage::Committer::Advance& advance : advances) {
    if (advance.role == storage::Committer::Role::wal) {
      const auto lane = shared.lanes.find(advance.sub);
      if (lane != shared.lanes.end()) lane->second->on_durable(now);
      continue;
    }
    const auto topic = by_owner.find(advance.owner);
    if (topic == by_owner.end() || topic->second->disk() == nullptr || topic->second->disk()->active_log() != advance.log)
      continue;
    topic->second->on_advance(now);
    answered += std::exchange(topic->second->answered, 0);
  }
  if (answered > 0) shared.committer.note_answered(answered, now);
}

void Engine::Impl::run_topics(Now now) {
  for (int round = 0; round < kRoundsMax && !shared.dirty.empty() && !shared.fault; ++round) {
    std::vector<Topic*> list;
    list.swap(shared.dirty);
    for (Topic* topic : list) {
      topic->advance(now);
      if (topic->more() && !topic->listed_as_held) {
        topic->listed_as_held = true;
        held_back.push_back(topic);
      }
      if (topic->phase() == Topic::Phase::gone) remove_gone(*topic, now);
    }
  }
}

void Engine::Impl::serve_waiting(Now now) {
  const auto serve = [&](LaneTurns& turns) {
    ChannelLane& lane = turns.serve_next();
    lane.topic().mark_dispatch(lane);
    run_topics(now);
    turns.served();
  };
  while (!shared.fault) {
    if (shared.slot_left() && !shared.slot_turns.empty())
      serve(shared.slot_turns);
    else if (shared.read_left() && !shared.read_turns.empty())
      serve(shared.read_turns);
    else
      return;
  }
}

void Engine::Impl::remove_gone(Topic& topic, Now now) {
  std::deque<Topic::Operation> rest = topic.take_operations();
  const std::string name = topic.name();
  const auto held = committer_use.find(topic.owner());
  if (held != committer_use.end()) {
    committers.erase({held->second, topic.owner()});
    committer_use.erase(held);
  }
  std::erase(held_back, &topic);
  by_owner.erase(topic.owner());
  topics.erase(name);
  bool first = true;  // the deletion itself was answered and removed
  for (Topic::Operation& operation : rest) {
    if (first && operation.action == Admin::delete_topic && operation.waiter == WaiterId::none) continue;
    first = false;
    const bool create_missing = operation.subscribe ? !operation.options.live_feed
                                                    : operation.action == Admin::create_topic ||
                                                          operation.action == Admin::create_channel || operation.create_missing;
    if (operation.action == Admin::delete_topic && (operation.waiter == WaiterId::none || find(name) == nullptr)) {
      refuse(operation, Code::topic_not_found);
      continue;
    }
    operate(name, std::move(operation), create_missing, now);
  }
}

// The storage is isolated: everybody who waits hears it once, and nothing is written any more (I3).
void Engine::Impl::fault_now() {
  const Outcome outcome{Code::storage, shared.fault->message()};
  for (const auto& [name, topic] : topics) topic->fail_all(outcome);
  if (management) management->fail_all(outcome);
  for (const StatsJob& job : stats_jobs) shared.events.stats.push_back({job.waiter, outcome, {}});
  stats_jobs.clear();
  take_managed();
  scrub.end(outcome);
  if (state != EngineState::faulted)
    host.log.log(io::Level::error, "storage_fault", "reason=\"" + shared.fault->message() + "\"");
  state = EngineState::faulted;
}

void Engine::submit(Now now) {
  Impl& impl = *impl_;
  impl.stats_go_on = std::exchange(impl.stats_looks, 0) >= Impl::kStatsLooksPerTurn && !impl.stats_jobs.empty();
  if (impl.shared.meta == nullptr || impl.shared.fault) return;
  impl.shared.meta->settle();
  impl.shared.committer.settle(now);
  impl.shared.pages.end_turn(impl.shared.metadata.left_for_pages());
  impl.shared.logs.trim_bodies();
  std::erase_if(impl.held_back, [](Topic* topic) {
    if (topic->can_go_on()) topic->mark();
    return !(topic->listed_as_held = topic->more());
  });
}

Instant Engine::next_deadline(Now now) const {
  const Impl& impl = *impl_;
  if (impl.shared.fault || impl.shared.meta == nullptr) return Instant::never();
  if (!impl.shared.dirty.empty() || !impl.shared.events.empty() || impl.stats_go_on) return now.mono;
  Instant next = std::min(impl.shared.committer.next_deadline(), impl.scrub.next_deadline(now));
  if (!impl.shared.retries.empty() || impl.shared.reads.starved()) next = std::min(next, std::max(impl.retry_at, now.mono + 1));
  if (impl.state == EngineState::open) next = std::min(next, impl.collect_at);
  if (impl.state == EngineState::open && !impl.shared.deadlines.empty()) {
    next = std::min(next, Instant{impl.shared.deadlines.begin()->first});
    next = std::min(next, impl.last_wall_look + kWallLookNs);
  }
  if (impl.state == EngineState::open && !impl.shared.expiries.empty()) {
    const std::int64_t left = impl.shared.expiries.begin()->first - now.wall.ns;
    const Instant due = left < kWallLookNs ? std::max(impl.discard_at, now.mono + left) : impl.last_wall_look + kWallLookNs;
    next = std::min(next, due);
  }
  // Once it has passed the barrier is on its way.
  const auto sync = impl.shared.syncs.upper_bound({now.mono.ns, UINT64_MAX});
  if (sync != impl.shared.syncs.end()) next = std::min(next, Instant{sync->first});
  return next;
}

bool Engine::quiet() const {
  const Impl& impl = *impl_;
  if (impl.state == EngineState::opening || impl.state == EngineState::stopping) return false;
  if (!impl.shared.dirty.empty() || !impl.shared.events.empty() || !impl.stats_jobs.empty() || impl.scrub.asked()) return false;
  if (impl.shared.meta && !impl.shared.meta->idle()) return false;
  if (impl.management && !impl.management->idle()) return false;
  if (!impl.dead_letters.quiet() && !impl.shared.fault) return false;
  return std::all_of(impl.topics.begin(), impl.topics.end(), [](const auto& entry) { return entry.second->quiet(); });
}

}  // namespace rq::queue
