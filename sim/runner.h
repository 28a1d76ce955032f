// One seed: a Broker, producers, consumers and an administrator in one simulated world, through three phases.
//
//  safety    the plan's faults are on: kills, power losses, failing disks, cut networks
//  liveness  everything heals; within bounded virtual time every acknowledged message must have been finished, and the lookup
//            servers know the Broker's names
//  audit     clean stop, opened twice without a difference, power loss, everything left is consumed, the ledger is judged
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "io/sim/world.h"
#include "ledger/ledger.h"
#include "sim/swarm.h"

namespace rq::sim {

struct RunOptions {
  std::set<std::string> plants;  // bugs switched on, see sim/plants.h
  bool plain = false;            // start from the default plan instead of drawing one
  std::string overrides;         // of that plan, "key=value ..."
  bool trace = false;
  bool keep_directories = false;  // fills RunResult::directories
};

struct RunResult {
  std::string failure;  // empty: no finding
  std::string plan;     // Swarm::text()
  std::string report;   // the ledger's
  std::uint64_t trace_hash = 0;
  std::uint64_t events = 0;
  std::int64_t virtual_ns = 0;
  ledger::Totals totals;
  FaultCounts faults;
  std::uint64_t feed_messages = 0;         // read by live feeds
  std::uint64_t channels_learned = 0;      // made because a lookup server knew them, in the safety phase
  std::uint64_t quiesced = 0;              // how often the Broker was drained, frozen and quiet
  std::uint64_t misdeeds = 0;              // connections of clients that misbehave
  std::uint64_t rots = 0, rots_found = 0;  // flipped bits in sealed data; those that ended the Broker with their file named
  std::uint64_t opening_kills = 0;         // kills and power losses before it served
  // The Broker's files, by path, as a SIGKILL leaves them: at the end of "safety", and at the "end".
  std::map<std::string, std::map<std::string, std::string>> directories;
  std::uint64_t boots = 0, kills = 0, power_losses = 0, failed_exits = 0, clean_exits = 0;  // of the Broker
};

RunResult run_seed(std::uint64_t seed, const RunOptions& options = {});

}  // namespace rq::sim
