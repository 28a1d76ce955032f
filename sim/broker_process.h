// The Broker as a simulated process: does what main() of rustqueued does around it. It starts in the first turn, and the process
// ends at the end of the turn in which exit_state() left `running`.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "core/broker/broker.h"
#include "io/sim/world.h"

namespace rq::sim {

class BrokerProcess {
 public:
  struct Ended {
    broker::Broker::Exit exit = broker::Broker::Exit::running;
    std::string reason;
    bool served = false;  // it had accepted connections
  };
  using OnEnd = std::function<void(const Ended&)>;

  BrokerProcess(World& world, std::string_view name, SimDisk& disk, broker::Config config);
  BrokerProcess(const BrokerProcess&) = delete;

  void boot();
  void kill();
  void request_stop();
  bool running() const { return process_.running(); }
  bool serving() const;
  bool served() const;  // it has opened its directory and accepted connections
  broker::Broker& broker();
  Process& process() { return process_; }

  broker::Config config;       // used by the next boot()
  std::optional<Ended> ended;  // how the last process that ended by itself ended; reset by boot()
  std::uint64_t boots = 0;
  std::uint64_t idle_turns_max = 0;  // longest row of turns without an event that each asked for another one at once
  const char* idle_cause = "";       // and who asked
  OnEnd on_end;                      // called after the process is gone

 private:
  class Shard;
  World& world_;
  Process& process_;
};

}  // namespace rq::sim
