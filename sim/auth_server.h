// An auth server as a simulated process: answers each request as its owner says and closes. "" as an answer lets the client wait.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "io/sim/world.h"

namespace rq::sim {

class AuthServer {
 public:
  AuthServer(World& world, SimDisk& disk, std::string_view name, std::string address);
  AuthServer(const AuthServer&) = delete;

  void start() { process_.start(); }
  void stop() { process_.kill(); }

  // What goes out for a request head, all of it.
  std::function<std::string(const std::string& head)> answer;
  std::vector<std::string> heads;  // of the requests so far

  // 200 with that document.
  static std::string document(std::string_view json);
  static std::string grant(std::string_view permissions, std::string_view topic, std::string_view channels,
                           std::int64_t ttl = 3'600);
  static std::string status(int code, std::string_view body = "");

 private:
  class Shard;
  std::string address_;
  Process& process_;
};

}  // namespace rq::sim
