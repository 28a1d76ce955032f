// A server of something else than NSQ as a simulated process: listens, takes what its connections send, and says what the class
// derived from it decides.
//
//  I1 What is said on a connection leaves in the order of the calls, none before its time.
//  I2 The owner outlives every turn of the process, not the process itself.
#pragma once

#include <string>
#include <string_view>

#include "io/sim/world.h"

namespace rq::sim {

class ScriptedServer {
 public:
  ScriptedServer(World& world, SimDisk& disk, std::string_view name, std::string address);
  virtual ~ScriptedServer() = default;
  ScriptedServer(const ScriptedServer&) = delete;

  void start() { process_.start(); }
  void stop() { process_.kill(); }
  Process& process() { return process_; }

 protected:
  // One connection.
  class Conversation {
   public:
    virtual ~Conversation() = default;
    virtual void say(std::string_view bytes, std::int64_t late_ns = 0) = 0;
    virtual void say_last(std::string_view bytes, std::int64_t late_ns = 0) = 0;  // and closes
    virtual void close() = 0;                                                     // at once
    virtual bool closed() const = 0;
    std::string input;  // received and not yet taken by on_bytes()
  };
  virtual void on_begin() {}  // the process starts; nothing of an earlier one is left
  virtual void on_open(Conversation&) {}
  virtual void on_bytes(Conversation& conversation, Instant now) = 0;  // not once it is closed
  virtual void on_close(Conversation&) {}

 private:
  class Shard;
  std::string address_;
  Process& process_;
};

}  // namespace rq::sim
