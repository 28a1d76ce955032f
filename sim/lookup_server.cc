#include "sim/lookup_server.h"

#include <fmt/format.h>

#include "core/base/bytes.h"

namespace rq::sim {

void LookupServer::on_bytes(Conversation& conversation, Instant now) {
  Client& client = clients_[&conversation];
  client.heard = now;
  if (!client.greeted) {
    if (conversation.input.size() < 4) return;
    if (!conversation.input.starts_with("  V1")) return conversation.close();
    client.greeted = true;
    conversation.input.erase(0, 4);
  }
  while (!conversation.closed() && take_command(conversation)) {
  }
}

bool LookupServer::take_command(Conversation& conversation) {
  std::string& input = conversation.input;
  const std::size_t end = input.find('\n');
  if (end == std::string::npos) return false;
  std::string command = input.substr(0, end);
  std::size_t used = end + 1;
  if (command == "IDENTIFY") {
    if (input.size() < used + 4) return false;
    const std::uint32_t size = load32(bytes_of(input).data() + used);
    if (input.size() < used + 4 + size) return false;
    command += ' ';
    command += input.substr(used + 4, size);
    used += 4 + size;
  }
  input.erase(0, used);
  obey(conversation, command);
  return true;
}

void LookupServer::obey(Conversation& conversation, const std::string& command) {
  const std::size_t number = commands.size();
  commands.push_back(command);
  if (cut && cut(number)) return conversation.close();
  std::set<std::string>& names = clients_[&conversation].names;
  if (command.starts_with("REGISTER ")) {
    const std::string name = command.substr(9);
    names.insert(name);
    names.insert(name.substr(0, name.find(' ')));
  } else if (command.starts_with("UNREGISTER ")) {
    names.erase(command.substr(11));
  }
  const std::string identity = fmt::format(
      R"({{"broadcast_address":"127.0.0.1","hostname":"lookup","http_port":{},"tcp_port":4160,"version":"1.3.0"}})", http_port_);
  const std::string good = framed(command.starts_with("IDENTIFY") ? identity : "OK");
  const std::string text = answer ? answer(number, command, good) : good;  // before late_ns(): both may draw
  conversation.say(text, late_ns ? late_ns() : 0);
}

std::set<std::string> LookupServer::names(Instant heard_since) const {
  std::set<std::string> all;
  for (const auto& [connection, client] : clients_)
    if (client.heard >= heard_since) all.insert(client.names.begin(), client.names.end());
  return all;
}

std::string LookupServer::framed(std::string_view text) {
  std::string out;
  put32(out, static_cast<std::uint32_t>(text.size()));
  return out.append(text);
}

}  // namespace rq::sim
