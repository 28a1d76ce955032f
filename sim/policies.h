// Changes the policies of Topics while the Broker runs, one change at a time, and tells the ledger what may be and what certainly
// is in force.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "ledger/ledger.h"
#include "sim/broker_process.h"
#include "sim/swarm.h"

namespace rq::sim {

class Policies {
 public:
  Policies(BrokerProcess& broker, ledger::Ledger& ledger, const Swarm& swarm) : broker_(broker), ledger_(ledger), swarm_(swarm) {}

  // A random change of a random Topic, unless one is under way.
  void change(Random& draws, Now now);
  // Looks whether the change under way is in force.
  void look(Now now);
  // Makes one more Topic RELIABLE; true when all are.
  bool settle(Now now);

 private:
  void configure(const std::string& topic, const queue::DeliveryPolicy& policy, Now now);

  struct Change {
    std::string topic;
    queue::DeliveryPolicy policy;
    Now sent;
    std::uint64_t boot;  // of the Broker it was sent to
  };
  BrokerProcess& broker_;
  ledger::Ledger& ledger_;
  const Swarm& swarm_;
  std::optional<Change> change_;
};

}  // namespace rq::sim
