// Looks at the running Broker every 20 ms of the safety phase: its objects' invariants (page 30: I-02, I-13, I-18 to I-20, I-44),
// and what it must not do while it is quiesced or its volume full.
#pragma once

#include <cstdint>

#include "sim/actor.h"
#include "sim/broker_life.h"
#include "sim/policies.h"

namespace rq::sim {

class Watch {
 public:
  Watch(Stage& stage, BrokerLife& life, Policies& policies, const SimDisk& disk)
      : stage_(stage), life_(life), policies_(policies), disk_(disk) {}
  Watch(const Watch&) = delete;

  void look_at_policies();
  void look_inside();
  void volume_is_full();  // from now on, until the disk says otherwise

  std::uint64_t quiesced() const { return quiesced_; }  // how often the Broker was

 private:
  void watch_quiesced();
  void watch_pressure();

  Stage& stage_;
  BrokerLife& life_;
  Policies& policies_;
  const SimDisk& disk_;
  Instant watched_quiesced_ = Instant::never();
  std::uint64_t moved_ = 0;  // publishes and deliveries when it was last looked at
  std::uint64_t quiesced_ = 0;
  Instant full_since_{};                              // while the volume claims to be full
  std::uint64_t full_boot_ = 0, full_published_ = 0;  // of the Broker that knows it, and what it had published then
};

}  // namespace rq::sim
