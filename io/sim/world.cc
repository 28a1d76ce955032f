#include "io/sim/world.h"

#include <deque>
#include <utility>

#include "core/base/check.h"
#include "io/sim/kernel.h"
#include "io/sim/machine_disk.h"
#include "io/sim/sim_net.h"
#include "io/sim/sim_process.h"

namespace rq::sim {

struct World::Impl final : EventTarget {
  Impl(std::uint64_t seed, WorldOptions options) : kernel(seed, options), net(kernel) {}

  void on_event(std::uint32_t, std::uint64_t slot, std::uint64_t) override {
    const std::function<void()> action = std::exchange(actions[static_cast<std::size_t>(slot)], nullptr);
    free_actions.push_back(static_cast<std::uint32_t>(slot));
    kernel.trace("at", "test", slot);
    action();
  }
  SimProcess& process(std::string_view name) {
    for (const auto& candidate : processes) {
      if (candidate->name() == name) return *candidate;
    }
    RQ_CHECK(!"no process of that name");
    __builtin_unreachable();
  }
  bool step_before(Instant limit) {
    if (kernel.queue.empty() || kernel.queue.next_time() > limit) return false;
    kernel.now = kernel.queue.next_time();
    const Event event = kernel.queue.pop();
    ++kernel.events;
    event.target->on_event(event.kind, event.a, event.b);
    return true;
  }

  Kernel kernel;
  SimNet net;
  std::deque<std::unique_ptr<MachineDisk>> disks;
  std::deque<std::unique_ptr<SimProcess>> processes;  // before the disks and the network in destruction
  std::vector<std::function<void()>> actions;
  std::vector<std::uint32_t> free_actions;
};

World::World(std::uint64_t seed, WorldOptions options) : impl_(std::make_unique<Impl>(seed, options)) {}
World::~World() = default;

std::uint64_t World::seed() const { return impl_->kernel.seed; }
Random World::random(std::string_view stream) const { return impl_->kernel.root.split("world").split(stream); }
Instant World::now() const { return impl_->kernel.now; }
std::uint64_t World::trace_hash() const { return impl_->kernel.hash.value; }
std::uint64_t World::events() const { return impl_->kernel.events; }
FaultCounts& World::counts() { return impl_->kernel.counts; }
NetFaults& World::net() { return impl_->kernel.net; }
void World::note(std::string_view what) { impl_->kernel.note(what); }

SimDisk& World::make_disk(std::string_view machine) {
  impl_->disks.push_back(std::make_unique<MachineDisk>(impl_->kernel, machine));
  return *impl_->disks.back();
}

Process& World::make_process(std::string_view name, SimDisk& disk, Process::Factory factory) {
  impl_->processes.push_back(
      std::make_unique<SimProcess>(impl_->kernel, static_cast<MachineDisk&>(disk), impl_->net, name, std::move(factory)));
  return *impl_->processes.back();
}

void World::partition(std::string_view from, std::string_view to) {
  const Station source = impl_->process(from).station();
  const Station target = impl_->process(to).station();
  impl_->kernel.trace("partition", from, source, target);
  impl_->net.partition(source, target);
}

void World::heal() {
  impl_->kernel.trace("heal", "test");
  impl_->net.heal();
}

void World::set_chaos(io::Chaos* chaos) {
  impl_->kernel.chaos = chaos;
  for (const auto& process : impl_->processes) process->set_chaos(chaos);
}

void World::set_log(std::function<void(std::string_view, io::Level, std::string_view, std::string_view)> log) {
  impl_->kernel.log = std::move(log);
}

void World::at(std::int64_t delay_ns, std::function<void()> action) {
  Impl& impl = *impl_;
  if (impl.free_actions.empty()) {
    impl.free_actions.push_back(static_cast<std::uint32_t>(impl.actions.size()));
    impl.actions.emplace_back();
  }
  const std::uint32_t slot = impl.free_actions.back();
  impl.free_actions.pop_back();
  impl.actions[slot] = std::move(action);
  impl.kernel.push(impl.kernel.now + delay_ns, impl, 0, slot);
}

bool World::step() { return impl_->step_before(Instant::never()); }

void World::run_for(std::int64_t ns) {
  const Instant end = impl_->kernel.now + ns;
  while (impl_->step_before(end)) {
  }
  if (end < Instant::never()) impl_->kernel.now = end;
}

bool World::run_until(const std::function<bool()>& condition, std::int64_t limit_ns) {
  const Instant end = impl_->kernel.now + limit_ns;
  while (!condition()) {
    if (impl_->step_before(end)) continue;
    if (end < Instant::never()) impl_->kernel.now = end;
    return condition();
  }
  return true;
}

}  // namespace rq::sim
