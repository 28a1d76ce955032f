// An nsqlookupd as a simulated process: the TCP side of page 10 section 7.6. It keeps what its clients register for as long as
// their connections last, and can be told to misbehave.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "sim/scripted_server.h"

namespace rq::sim {

class LookupServer final : public ScriptedServer {
 public:
  // `http_port`: where its HTTP side listens, as it says after IDENTIFY.
  LookupServer(World& world, SimDisk& disk, std::string_view name, std::string address, int http_port = 4161)
      : ScriptedServer(world, disk, name, std::move(address)), http_port_(http_port) {}

  // What it has heard since it was made: "IDENTIFY <json>", or the line of another command.
  std::vector<std::string> commands;
  // "topic" and "topic channel" of every connection that stands and has said something since then.
  std::set<std::string> names(Instant heard_since = {}) const;
  std::size_t connections() const { return clients_.size(); }

  // The bytes that answer the command with that number (from 0, over all connections); by default a framed OK or an identity. An
  // empty answer is silence.
  std::function<std::string(std::size_t number, const std::string& command, const std::string& good)> answer;
  std::function<std::int64_t()> late_ns;  // how long an answer takes; by default no time
  // Closes the connection instead of answering the command with that number.
  std::function<bool(std::size_t number)> cut;

  static std::string framed(std::string_view text);

 private:
  struct Client {
    bool greeted = false;
    Instant heard;
    std::set<std::string> names;
  };
  void on_begin() override { clients_.clear(); }
  void on_open(Conversation& conversation) override { clients_[&conversation]; }
  void on_bytes(Conversation& conversation, Instant now) override;
  void on_close(Conversation& conversation) override { clients_.erase(&conversation); }
  bool take_command(Conversation& conversation);
  void obey(Conversation& conversation, const std::string& command);

  int http_port_;
  std::map<const void*, Client> clients_;  // by connection
};

}  // namespace rq::sim
