// An Engine alone in the simulated world: a process whose shard is nothing but the Engine, and a record of its events.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/queue/engine.h"
#include "io/sim/world.h"

namespace rq::queue {

struct EngineShard final : io::Shard {
  EngineShard(io::Host& host, io::Turn& turn_ref, EngineOptions options) : engine(host, std::move(options)), turn(turn_ref) {
    engine.open();
  }
  void expire(Now now) override { engine.expire(now); }
  void settle(Now now) override {
    for (int round = 0; round < 100; ++round) {
      engine.advance(now);
      Events& events = engine.events();
      if (events.empty()) break;
      for (auto& e : events.published) published[static_cast<std::uint64_t>(e.waiter)] = e.outcome;
      for (auto& e : events.subscribed) subscribed[static_cast<std::uint64_t>(e.waiter)] = e;
      for (auto& e : events.admin) {
        admin[static_cast<std::uint64_t>(e.waiter)] = e.outcome;
        changed[static_cast<std::uint64_t>(e.waiter)] = e.changed;
      }
      for (auto& e : events.managed) managed[static_cast<std::uint64_t>(e.waiter)] = e;
      for (auto& e : events.stats) stats[static_cast<std::uint64_t>(e.waiter)] = e;
      for (auto& e : events.scrubbed) scrubbed[static_cast<std::uint64_t>(e.waiter)] = e;
      for (auto& e : events.deliveries) deliveries.push_back(e);
      for (auto& e : events.commands) commands.push_back(e);
      for (auto& e : events.timed_out) timed_out.push_back(e);
      for (auto& e : events.closed) closed.push_back(e);
      events.clear();
    }
    engine.submit(now);
    if (check_invariants && engine.state() == EngineState::open) engine.check_invariants();
  }
  Instant next_deadline() const override { return engine.next_deadline(turn.now()); }

  Engine engine;
  io::Turn& turn;
  bool check_invariants = true;  // costs as much as the Channels hold; off for very many messages
  std::map<std::uint64_t, Outcome> published, admin;
  std::map<std::uint64_t, bool> changed;
  std::map<std::uint64_t, SubscribeDone> subscribed;
  std::map<std::uint64_t, StatsDone> stats;
  std::map<std::uint64_t, ManagedDone> managed;
  std::map<std::uint64_t, ScrubDone> scrubbed;
  std::vector<Delivery> deliveries;
  std::vector<CommandDone> commands;
  std::vector<TimedOut> timed_out;
  std::vector<ConsumerClosed> closed;
};

class EngineWorld {
 public:
  explicit EngineWorld(std::uint64_t seed, EngineOptions options = {})
      : options_(std::move(options)), world(seed), disk(world.make_disk("broker")) {
    options_.data_path = "data";
    process = &world.make_process("engine", disk, [this](io::Host& host, io::Turn& turn) {
      return std::unique_ptr<io::Shard, void (*)(io::Shard*)>(new EngineShard(host, turn, options_),
                                                              [](io::Shard* shard) { delete static_cast<EngineShard*>(shard); });
    });
    process->start();
    wait([&] { return shard().engine.state() != EngineState::opening; });
  }
  void set_options(const std::function<void(EngineOptions&)>& change) { change(options_); }
  EngineShard& shard() { return *static_cast<EngineShard*>(process->shard()); }
  Engine& engine() { return shard().engine; }
  Now now() { return {process->host()->clock.now(), process->host()->clock.wall()}; }
  bool wait(const std::function<bool()>& condition, std::int64_t limit_ns = 60 * kSecond) {
    process->poke();
    return world.run_until(condition, limit_ns);
  }
  void restart(bool power_loss = false) {
    process->kill();
    if (power_loss) disk.power_loss();
    process->start();
    wait([&] { return shard().engine.state() != EngineState::opening; });
  }
  bool stop() {
    engine().stop();
    return wait([&] { return engine().state() == EngineState::stopped || engine().state() == EngineState::faulted; }) &&
           engine().state() == EngineState::stopped;
  }

  std::uint64_t publish(std::string_view topic, std::vector<std::string> bodies, std::int64_t defer_ms = 0) {
    const std::uint64_t waiter = ++waiters_;
    std::vector<Slice> slices;
    for (const std::string& body : bodies) slices.push_back(Slice::copy_of(bytes_of(body)));
    const Outcome outcome = engine().publish(topic, std::move(slices), defer_ms, static_cast<WaiterId>(waiter), now());
    if (!outcome.ok()) shard().published[waiter] = outcome;
    process->poke();
    return waiter;
  }
  Code publish_and_wait(std::string_view topic, std::vector<std::string> bodies, std::int64_t defer_ms = 0) {
    const std::uint64_t waiter = publish(topic, std::move(bodies), defer_ms);
    if (!wait([&] { return shard().published.contains(waiter); })) return Code::exiting;
    return shard().published[waiter].code;
  }
  ConsumerId subscribe(std::string_view topic, std::string_view channel, std::uint32_t rdy, SubscribeOptions options = {}) {
    const std::uint64_t waiter = ++waiters_;
    engine().subscribe(topic, channel, options, static_cast<WaiterId>(waiter), now());
    wait([&] { return shard().subscribed.contains(waiter); });
    const SubscribeDone& done = shard().subscribed[waiter];
    if (done.outcome.ok() && rdy > 0) engine().set_ready(done.consumer, rdy);
    process->poke();
    return done.consumer;
  }
  std::uint64_t ask(Admin action, std::string_view topic, std::string_view channel = {}) {
    const std::uint64_t waiter = ++waiters_;
    engine().admin(action, topic, channel, static_cast<WaiterId>(waiter), now());
    process->poke();
    return waiter;
  }
  Code admin(Admin action, std::string_view topic, std::string_view channel = {}) {
    const std::uint64_t waiter = ask(action, topic, channel);
    if (!wait([&] { return shard().admin.contains(waiter); })) return Code::exiting;
    return shard().admin[waiter].code;
  }
  struct Configured {
    Code code;
    bool changed;
  };
  Configured configure(std::string_view topic, const DeliveryPolicy& policy, bool create_missing = false) {
    const std::uint64_t waiter = ++waiters_;
    engine().configure(topic, policy, create_missing, static_cast<WaiterId>(waiter), now());
    if (!wait([&] { return shard().admin.contains(waiter); })) return {Code::exiting, false};
    return {shard().admin[waiter].code, shard().changed[waiter]};
  }
  std::uint64_t manage(ManagedRequest request) {
    const std::uint64_t waiter = ++waiters_;
    engine().manage(std::move(request), static_cast<WaiterId>(waiter));
    process->poke();
    return waiter;
  }
  ManagedDone manage_and_wait(ManagedRequest request) {
    const std::uint64_t waiter = manage(std::move(request));
    if (!wait([&] { return shard().managed.contains(waiter); })) return {{}, {Code::exiting, "no answer"}, 0, false};
    return shard().managed[waiter];
  }
  Code sync(const FenceSnapshot& snapshot) {
    const std::uint64_t waiter = ++waiters_;
    engine().sync_fences(snapshot, static_cast<WaiterId>(waiter));
    if (!wait([&] { return shard().admin.contains(waiter); })) return Code::exiting;
    return shard().admin[waiter].code;
  }
  std::vector<TopicStats> stats() {
    const std::uint64_t waiter = ++waiters_;
    engine().stats({}, {}, static_cast<WaiterId>(waiter), now());
    wait([&] { return shard().stats.contains(waiter); });
    return shard().stats[waiter].topics;
  }
  // Asks for a pass; scrubbed() has its answer once it is there.
  std::uint64_t scrub() {
    engine().scrub(static_cast<WaiterId>(++waiters_));
    process->poke();
    return waiters_;
  }
  const ScrubDone* scrubbed(std::uint64_t waiter) {
    const auto found = shard().scrubbed.find(waiter);
    return found == shard().scrubbed.end() ? nullptr : &found->second;
  }
  std::vector<std::string> bodies() {
    std::vector<std::string> out;
    for (const Delivery& delivery : shard().deliveries) out.emplace_back(text_of(delivery.body.bytes()));
    return out;
  }
  bool wait_deliveries(std::size_t count) {
    return wait([&] { return shard().deliveries.size() >= count; });
  }
  void finish_all() {
    const std::size_t before = shard().commands.size();
    std::size_t count = 0;
    for (const Delivery& delivery : shard().deliveries)
      if (engine().finish(delivery.consumer, delivery.id, now()) == Code::ok) ++count;
    shard().deliveries.clear();
    wait([&] { return shard().commands.size() >= before + count; });
  }

 private:
  EngineOptions options_;
  std::uint64_t waiters_ = 0;

 public:
  sim::World world;
  sim::SimDisk& disk;
  sim::Process* process = nullptr;
};

}  // namespace rq::queue
