// The faults of a plan: what disks and networks do by themselves, and what happens again and again while the safety phase lasts.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sim/actor.h"
#include "sim/broker_life.h"
#include "sim/cast.h"
#include "sim/policies.h"
#include "sim/sim_chaos.h"
#include "sim/watch.h"

namespace rq::sim {

class Trouble {
 public:
  Trouble(Stage& stage, SimDisk& disk, SimChaos& chaos)
      : stage_(stage), disk_(disk), chaos_(chaos), draws_(stage.world.random("faults")) {}
  Trouble(const Trouble&) = delete;

  void set_rates();
  void crashes(BrokerLife& life);  // kills, power losses, stops
  void clocks(BrokerLife& life);
  void policies(Policies& policies);
  void pressure(Watch& watch);     // the volume looks full
  void tokens();                   // of the control plane: its file changes
  void storage(BrokerLife& life);  // sealed data rots, and the Broker dies between two steps
  void network(Cast& cast);
  void put_token(std::string token);
  // Runs `action` again and again with a mean pause, while the safety phase lasts; 0: never.
  void every(const char* name, std::int64_t mean_ms, std::function<void(Random&)> action);
  void heal(BrokerLife& life);  // none of it any more

 private:
  void again(Random* stream, std::int64_t mean_ms, std::function<void(Random&)> action);
  void change_token(Random& draws);

  Stage& stage_;
  SimDisk& disk_;
  SimChaos& chaos_;
  const Random draws_;
  std::vector<std::unique_ptr<Random>> streams_;
  std::uint64_t tokens_ = 0;
};

}  // namespace rq::sim
