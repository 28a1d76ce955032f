// The Broker of a run through its starts, crashes and stops: tells the ledger of every end, judges whether it had a reason, and
// starts it again.
#pragma once

#include <cstdint>
#include <string>

#include "sim/actor.h"
#include "sim/broker_process.h"
#include "sim/rot.h"

namespace rq::sim {

class BrokerLife {
 public:
  BrokerLife(Stage& stage, SimDisk& disk);
  BrokerLife(const BrokerLife&) = delete;

  BrokerProcess& process() { return process_; }
  Rot& rot() { return rot_; }
  bool serving() const { return process_.serving(); }
  bool running() const { return process_.running(); }
  broker::Broker& broker() { return process_.broker(); }  // must be running

  void boot();                             // unless it runs
  void crash(bool power);                  // kill(), and a start later
  void kill(bool power);                   // `power`: the disk loses its cache
  void request_stop();                     // if it runs
  void hold(bool yes) { holding_ = yes; }  // no automatic restart

  struct Ends {
    std::uint64_t kills = 0, power_losses = 0, failed_exits = 0, clean_exits = 0;
    std::uint64_t while_opening = 0;  // kills and power losses before it served
  };
  const Ends& ends() const { return ends_; }

 private:
  void gone();
  void on_end(const BrokerProcess::Ended& ended);
  void restart_later();
  std::uint64_t injected() const;

  Stage& stage_;
  SimDisk& disk_;
  BrokerProcess process_;
  Rot rot_;
  Random draws_;
  Ends ends_;
  std::uint64_t injected_at_boot_ = 0, handles_at_boot_ = 0;
  bool stopping_ = false;  // SIGTERM was sent
  bool holding_ = false;
};

}  // namespace rq::sim
