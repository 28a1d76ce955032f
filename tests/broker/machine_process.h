// A simulated process that is nothing but one machine of core/broker with settle(), expire() and next_deadline().
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/slice.h"
#include "core/io/turn.h"
#include "io/sim/world.h"

namespace rq::broker::test {

template <class Machine>
class MachineProcess {
 public:
  using Make = std::function<std::unique_ptr<Machine>(io::Host&, ChunkPool&)>;

  MachineProcess(sim::World& world, sim::SimDisk& disk, Make make)
      : process_(world.make_process("machine", disk, [make = std::move(make)](io::Host& host, io::Turn&) {
          return std::unique_ptr<io::Shard, void (*)(io::Shard*)>(new Shard(host, make),
                                                                  [](io::Shard* shard) { delete static_cast<Shard*>(shard); });
        })) {
    world.set_log([this](std::string_view, io::Level, std::string_view event, std::string_view fields) {
      log.push_back(std::string(event).append(" ").append(fields));
    });
    process_.start();
    process_.poke();
  }
  // Whoever calls into it asks for a turn behind it.
  Machine& operator*() { return *static_cast<Shard*>(process_.shard())->machine; }
  Machine* operator->() { return &**this; }
  void poke() { process_.poke(); }

  std::vector<std::string> log;  // "<event> <fields>"

 private:
  struct Shard final : io::Shard {
    Shard(io::Host& host, const Make& make) : machine(make(host, pool)) {}
    void expire(Now now) override { machine->expire(now); }
    void settle(Now now) override { machine->settle(now); }
    Instant next_deadline() const override { return machine->next_deadline(); }
    ChunkPool pool;
    std::unique_ptr<Machine> machine;
  };
  sim::Process& process_;
};

}  // namespace rq::broker::test
