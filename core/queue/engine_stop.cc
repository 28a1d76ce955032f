// The clean stop (page 30 section 12, page 20 section 5.3, D-41): one barrier over everything, checkpoints, manifests, the
// marker.
#include "core/queue/engine_impl.h"
#include "core/storage/format_files.h"

namespace rq::queue {
namespace {
constexpr std::size_t kFlushesAtOnce = 8;
}  // namespace

void Engine::stop() {
  Impl& impl = *impl_;
  if (impl.state == EngineState::stopping || impl.state == EngineState::stopped || impl.state == EngineState::faulted) return;
  if (impl.state == EngineState::closed) {
    impl.state = EngineState::stopped;
    return;
  }
  if (impl.state == EngineState::opening) {
    // Nothing was acknowledged yet; the next start recovers as after a kill.
    if (!impl.opener->done()) return;
    if (impl.shared.meta == nullptr) impl.recovered();
    if (impl.state == EngineState::faulted) return;
    impl.unsettled.clear();
    impl.dead_letters.stop_replay();
  }
  impl.state = EngineState::stopping;
  end_scrub();
  for (const auto& [name, topic] : impl.topics) {
    if (topic->disk() != nullptr) impl.shared.committer.want_barrier(topic->disk()->active_log());
    impl.to_flush.push_back(topic.get());
    topic->mark();
  }
}

void Engine::Impl::advance_stop() {
  if (shared.fault || farewell || !dead_letters.quiet()) return;
  std::erase_if(flushes, [](const auto& script) { return !script->running(); });
  for (std::size_t i = 0; i < to_flush.size() && flushes.size() < kFlushesAtOnce;) {
    Topic& topic = *to_flush[i];
    if (!topic.quiet()) {
      // What waited behind a rotation is appended after the stop began; no timer syncs it any more in the relaxed modes.
      if (topic.disk() != nullptr) shared.committer.want_barrier(topic.disk()->active_log());
      ++i;
      continue;
    }
    to_flush.erase(to_flush.begin() + static_cast<std::ptrdiff_t>(i));
    auto script = std::make_unique<storage::Script>(host, this, &Impl::on_flushed, &shared.retries);
    topic.add_final_flush(*script);
    if (script->empty()) continue;
    script->start();
    flushes.push_back(std::move(script));
  }
  if (!to_flush.empty() || !flushes.empty() || !shared.committer.all_idle() || !shared.meta->idle() || !shared.reads.idle() ||
      !reserve.idle() || !scrub.idle() || !management->idle())
    return;
  farewell = std::make_unique<storage::Script>(host, this, &Impl::on_flushed, &shared.retries);
  farewell->rewrite(lock, 0, storage::lock_content(options.pid, true));
  farewell->start();
}

void Engine::Impl::on_flushed(void* self, storage::Script& script) {
  Impl& impl = *static_cast<Impl*>(self);
  if (script.failed()) {
    impl.shared.set_fault(script.fault());
  } else if (&script == impl.farewell.get()) {
    impl.state = EngineState::stopped;
  }
}

}  // namespace rq::queue
