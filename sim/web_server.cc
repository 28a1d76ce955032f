#include "sim/web_server.h"

#include <fmt/format.h>

namespace rq::sim {

void WebServer::on_bytes(Conversation& conversation, Instant) {
  const std::size_t end = conversation.input.find("\r\n\r\n");
  if (end == std::string::npos) return;
  heads.push_back(conversation.input.substr(0, end + 4));
  conversation.input.erase(0, end + 4);
  const std::string text = answer ? answer(heads.back()) : status(500);  // before late_ns(): both may draw
  conversation.say_last(text, late_ns ? late_ns() : 0);
}

std::string WebServer::status(int code, std::string_view body) {
  return fmt::format("HTTP/1.1 {} Answer\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{}", code, body.size(),
                     body);
}
std::string WebServer::document(std::string_view json) { return status(200, json); }

}  // namespace rq::sim
