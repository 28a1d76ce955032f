// The Engine's side of managed operations: facts and effects for core/queue/management.h.
#include <algorithm>
#include <utility>

#include "core/queue/engine_impl.h"

namespace rq::queue {

void Engine::manage(ManagedRequest request, WaiterId waiter) {
  Impl& impl = *impl_;
  const auto refuse = [&](Outcome outcome) { impl.shared.events.managed.push_back({waiter, std::move(outcome), 0, false}); };
  if (impl.shared.fault) return refuse({Code::storage, impl.shared.fault->message()});
  if (impl.state != EngineState::open) return refuse({Code::exiting, "exiting"});
  impl.management->request(std::move(request), waiter);
}

void Engine::sync_fences(const FenceSnapshot& snapshot, WaiterId waiter) {
  Impl& impl = *impl_;
  const auto refuse = [&](Outcome outcome) { impl.shared.events.admin.push_back({waiter, std::move(outcome)}); };
  if (impl.shared.fault) return refuse({Code::storage, impl.shared.fault->message()});
  if (impl.state != EngineState::open) return refuse({Code::exiting, "exiting"});
  impl.management->sync(snapshot, waiter);
}

bool Engine::fences_ready() const { return impl_->shared.access.ready(); }

void Engine::registry(bool topics, WaiterId waiter) {
  Impl& impl = *impl_;
  impl.stats_jobs.push_back({.waiter = waiter, .no_topics = !topics});
  if (impl.shared.meta) impl.stats_jobs.back().revision = impl.shared.meta->revision_wanted();
}

// Answers to the operation under way are taken out of the events before anybody else sees them.
void Engine::Impl::take_managed() {
  std::erase_if(shared.events.admin, [this](const AdminDone& done) {
    if (done.waiter != kManagedWaiter) return false;
    management->on_acted(done);
    return true;
  });
  std::erase_if(shared.events.stats, [this](const StatsDone& done) {
    if (done.waiter != kManagedWaiter) return false;
    management->on_counted(done);
    return true;
  });
}

void Engine::Impl::manage(Now now) {
  bool again = true;
  while (again && !shared.fault) {
    take_managed();
    management->advance(now, state != EngineState::open);
    again = !management->wanted.empty() || management->wants_count;
    for (Management::Wanted& wanted : std::exchange(management->wanted, {}))
      operate(wanted.topic, std::move(wanted.operation), wanted.create_missing, now);
    if (!std::exchange(management->wants_count, false)) continue;
    stats_jobs.push_back({.waiter = kManagedWaiter, .topic = management->topic(), .channel = management->channel()});
    advance_stats(now);
  }
}

}  // namespace rq::queue
