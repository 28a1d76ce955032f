// An HTTP server as a simulated process: answers the first request of each connection as its owner says and closes. "" as an
// answer lets the client wait.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/scripted_server.h"

namespace rq::sim {

class WebServer : public ScriptedServer {
 public:
  using ScriptedServer::ScriptedServer;

  // What goes out for a request head, all of it.
  std::function<std::string(const std::string& head)> answer;
  std::function<std::int64_t()> late_ns;  // how long it takes; by default no time
  std::vector<std::string> heads;         // of the requests so far

  static std::string status(int code, std::string_view body = "");
  static std::string document(std::string_view json);  // 200 with it

 private:
  void on_bytes(Conversation& conversation, Instant now) override;
};

}  // namespace rq::sim
