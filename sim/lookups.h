// The nsqlookupd servers that the Broker of a run is registered with, each two processes: its TCP and its HTTP side. They die,
// come back, are cut off, answer late or wrongly. Each knows a Channel of every Topic of the workload, which the Broker has to
// make when the Topic is new.
//
// What they hold the Broker to, once everything has healed: a server that works holds the names that the Broker has, no others;
// the Channels that it knows of a new Topic are made, and only those that a Topic can have; a stop takes every name off.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "sim/actor.h"
#include "sim/lookup_server.h"
#include "sim/web_server.h"

namespace rq::sim {

class Lookups {
 public:
  static constexpr const char* kNewTopic = "found";  // one that they know and the workload does not use
  static std::string address(std::int64_t number) { return number == 0 ? "127.0.0.1:4160" : "127.0.0.1:4260"; }
  static std::string channel(std::size_t number) { return "known" + std::to_string(number); }

  Lookups(Stage& stage, SimDisk& disk);
  Lookups(const Lookups&) = delete;

  std::size_t count() const { return servers_.size(); }
  void start();
  void disturb(Random& draws);  // one of them dies, comes back or is cut off for a while
  void heal();                  // from now on all answer well, but for one that the plan wants broken

  bool broken(std::size_t number) const { return number == 0 && stage_.swarm.lookup_broken > 0; }
  // What a server that works holds too much ("+name") or too little ("-name") beside these; empty: nothing.
  std::string difference(const std::set<std::string>& names) const;

 private:
  struct Server {
    Server(World& world, SimDisk& disk, std::size_t number, Random random);
    std::string lie(const std::string& good, bool framed);
    std::int64_t lateness();
    LookupServer tcp;
    WebServer web;
    Random draws;
    std::uint32_t lies = 0;  // per 1024 answers
  };

  Stage& stage_;
  std::vector<std::unique_ptr<Server>> servers_;
};

}  // namespace rq::sim
