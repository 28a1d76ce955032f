// An nsqlookupd as a simulated process: the TCP side of page 10 section 7.6. It keeps what its clients register for as long as
// their connections last, and can be told to misbehave.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "io/sim/world.h"

namespace rq::sim {

class LookupServer {
 public:
  LookupServer(World& world, SimDisk& disk, std::string_view name, std::string address);
  LookupServer(const LookupServer&) = delete;

  void start() { process_.start(); }
  void stop() { process_.kill(); }
  Process& process() { return process_; }

  // What it has heard since it was made: "IDENTIFY <json>", or the line of another command.
  std::vector<std::string> commands;
  // "topic" and "topic channel" of every connection that stands.
  std::set<std::string> names() const;
  std::size_t connections() const { return registered_.size(); }

  // The bytes that answer the command with that number (from 0, over all connections); by default a framed OK or an identity. An
  // empty answer is silence.
  std::function<std::string(std::size_t number, const std::string& command, const std::string& good)> answer;
  // Closes the connection instead of answering the command with that number.
  std::function<bool(std::size_t number)> cut;

  static std::string framed(std::string_view text);

 private:
  class Shard;
  std::string address_;
  std::map<const void*, std::set<std::string>> registered_;  // by connection
  Process& process_;
};

}  // namespace rq::sim
