// The queue engine alone on a simulated disk: for cases that need to say what happens in one turn. Calls run inside a turn,
// events are kept with the time at which they came out.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/queue/engine.h"
#include "io/sim/world.h"

namespace rq::sim {

inline queue::EngineOptions engine_options() {
  queue::EngineOptions options;
  options.data_path = "data";
  options.feature_level = 2;
  return options;
}

class EngineWorld {
 public:
  explicit EngineWorld(std::uint64_t seed = 1, queue::EngineOptions initial = engine_options())
      : world(seed),
        options(std::move(initial)),
        disk(world.make_disk("broker")),
        process(world.make_process("broker", disk, [this](io::Host& host, io::Turn&) {
          return std::unique_ptr<io::Shard, void (*)(io::Shard*)>(new Shard(*this, host),
                                                                  [](io::Shard* s) { delete static_cast<Shard*>(s); });
        })) {}

  template <class T>
  struct Timed {
    T event;
    Instant at;
  };

  World world;
  queue::EngineOptions options;
  SimDisk& disk;
  Process& process;
  std::vector<Timed<queue::PublishDone>> published;
  std::vector<Timed<queue::Delivery>> deliveries;
  std::vector<Timed<queue::CommandDone>> commands;
  std::vector<queue::SubscribeDone> subscribed;
  std::vector<queue::AdminDone> admin;
  std::vector<queue::StatsDone> stats;

  queue::Engine& engine() { return static_cast<Shard*>(process.shard())->engine; }

  // Runs `action` inside the next turn, and the world until it ran.
  void act(const std::function<void(queue::Engine&, Now)>& action) {
    Shard& shard = *static_cast<Shard*>(process.shard());
    bool done = false;
    shard.actions.push_back([&](Now now) {
      action(shard.engine, now);
      done = true;
    });
    process.poke();
    ASSERT_TRUE(world.run_until([&] { return done; }, kSecond));
  }

  bool open() {
    process.start();
    process.poke();
    world.run_until(
        [&] { return engine().state() != queue::EngineState::opening && engine().state() != queue::EngineState::closed; },
        60 * kSecond);
    return engine().state() == queue::EngineState::open;
  }
  bool stop() {
    act([](queue::Engine& e, Now) { e.stop(); });
    world.run_until([&] { return engine().state() == queue::EngineState::stopped || engine().fault() != nullptr; }, 60 * kSecond);
    const bool good = engine().state() == queue::EngineState::stopped;
    process.kill();
    return good;
  }
  void power_loss() {
    process.kill();
    disk.power_loss();
  }
  bool crash_and_open() {
    power_loss();
    return open();
  }

  static std::vector<Slice> bodies(std::string_view body) { return {Slice::copy_of(bytes_of(body))}; }
  static queue::WaiterId waiter(std::uint64_t n) { return static_cast<queue::WaiterId>(n); }

  // Publishes and waits for the answer.
  queue::Outcome publish(std::string_view topic, std::string_view body, std::int64_t defer_ms = 0) {
    const std::size_t before = published.size();
    queue::Outcome outcome;
    act([&](queue::Engine& e, Now now) { outcome = e.publish(topic, bodies(body), defer_ms, waiter(1), now); });
    if (!outcome.ok()) return outcome;
    world.run_until([&] { return published.size() > before; }, 60 * kSecond);
    return published.size() > before ? published.back().event.outcome : queue::Outcome{queue::Code::exiting, "no answer"};
  }
  queue::ConsumerId subscribe(std::string_view topic, std::string_view channel, std::uint32_t rdy,
                              queue::SubscribeOptions how = {}) {
    const std::size_t before = subscribed.size();
    act([&](queue::Engine& e, Now now) { e.subscribe(topic, channel, how, waiter(2), now); });
    world.run_until([&] { return subscribed.size() > before; }, 60 * kSecond);
    if (subscribed.size() == before || !subscribed.back().outcome.ok()) return queue::ConsumerId::none;
    const queue::ConsumerId consumer = subscribed.back().consumer;
    act([&](queue::Engine& e, Now) { e.set_ready(consumer, rdy); });
    return consumer;
  }
  // FIN and waits until it is durable.
  bool finish(queue::ConsumerId consumer, queue::MessageId id) {
    const std::size_t before = commands.size();
    queue::Code code = queue::Code::ok;
    act([&](queue::Engine& e, Now now) { code = e.finish(consumer, id, now); });
    if (code != queue::Code::ok) return false;
    return world.run_until([&] { return commands.size() > before; }, 60 * kSecond) && commands.back().event.outcome.ok();
  }
  bool wait_deliveries(std::size_t count, std::int64_t limit_ns = 10 * kSecond) {
    return world.run_until([&] { return deliveries.size() >= count; }, limit_ns);
  }
  queue::Outcome administer(queue::Admin action, std::string_view topic, std::string_view channel = "") {
    const std::size_t before = admin.size();
    act([&](queue::Engine& e, Now now) { e.admin(action, topic, channel, waiter(3), now); });
    world.run_until([&] { return admin.size() > before; }, 60 * kSecond);
    return admin.size() > before ? admin.back().outcome : queue::Outcome{queue::Code::exiting, "no answer"};
  }
  queue::TopicStats topic_stats(std::string_view topic) {
    const std::size_t before = stats.size();
    act([&](queue::Engine& e, Now now) { e.stats(topic, "", waiter(4), now); });
    world.run_until([&] { return stats.size() > before; }, 60 * kSecond);
    if (stats.size() == before || stats.back().topics.size() != 1) return {};
    return stats.back().topics[0];
  }
  void slow_disk(std::int64_t ns) { disk.faults.latency_ns_min = disk.faults.latency_ns_max = ns; }

 private:
  struct Shard final : io::Shard {
    Shard(EngineWorld& owner, io::Host& host) : out(owner), engine(host, owner.options) {}
    void expire(Now now) override {
      if (engine.state() == queue::EngineState::closed) engine.open();
      std::vector<std::function<void(Now)>> due;
      due.swap(actions);
      for (const auto& action : due) action(now);
      engine.expire(now);
    }
    void settle(Now now) override {
      for (;;) {
        engine.advance(now);
        queue::Events& events = engine.events();
        if (events.empty()) break;
        for (auto& e : events.published) out.published.push_back({e, now.mono});
        for (auto& e : events.deliveries) out.deliveries.push_back({e, now.mono});
        for (auto& e : events.commands) out.commands.push_back({e, now.mono});
        for (auto& e : events.subscribed) out.subscribed.push_back(e);
        for (auto& e : events.admin) out.admin.push_back(e);
        for (auto& e : events.stats) out.stats.push_back(e);
        events.clear();
      }
      engine.submit(now);
      last = now;
    }
    Instant next_deadline() const override { return actions.empty() ? engine.next_deadline(last) : Instant{}; }

    EngineWorld& out;
    queue::Engine engine;
    std::vector<std::function<void(Now)>> actions;
    Now last{};
  };
};

}  // namespace rq::sim
