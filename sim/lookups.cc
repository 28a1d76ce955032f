#include "sim/lookups.h"

#include <fmt/format.h>

namespace rq::sim {
namespace {

constexpr std::uint32_t kAlways = 1'024;
constexpr std::int64_t kSilenceNs = 40 * kSecond;  // a client that said nothing for so long is gone: it pings every 15 s

// What it knows of a Topic: a Channel to be made, and some that must not be.
std::string channels_of(const std::string& head, std::size_t number) {
  const std::string topic = head.substr(0, head.find(' ', 5)).substr(std::string("GET /channels?topic=").size());
  const bool known = topic == Lookups::kNewTopic || (topic.starts_with("topic") && topic.find('.') == std::string::npos);
  if (!known) return R"({"channels":[]})";
  return fmt::format(R"({{"channels":["ghost#ephemeral","no ghost!","{}"]}})", Lookups::channel(number));
}

}  // namespace

Lookups::Server::Server(World& world, SimDisk& disk, std::size_t number, Random random)
    : tcp(world, disk, fmt::format("lookup-{}", number), address(static_cast<std::int64_t>(number)), number == 0 ? 4161 : 4261),
      web(world, disk, fmt::format("lookup-{}-http", number), number == 0 ? "127.0.0.1:4161" : "127.0.0.1:4261"),
      draws(random) {
  tcp.answer = [this](std::size_t, const std::string&, const std::string& good) { return lie(good, true); };
  tcp.cut = [this](std::size_t) { return draws.chance(lies / 4); };
  tcp.late_ns = web.late_ns = [this] { return lateness(); };
  web.answer = [this, number](const std::string& head) { return lie(WebServer::document(channels_of(head, number)), false); };
}

std::string Lookups::Server::lie(const std::string& good, bool framed) {
  if (!draws.chance(lies)) return good;
  switch (draws.below(5)) {
    case 0:
      return "";
    case 1:
      return framed ? LookupServer::framed("E_INVALID") : WebServer::status(500);
    case 2:
      return "\xff\xff\xff\xff\r\n\r\n";
    case 3:
      return good + good;
    default:
      return good.substr(0, good.size() / 2);
  }
}

std::int64_t Lookups::Server::lateness() {
  return draws.chance(lies) ? static_cast<std::int64_t>(draws.below(3'000)) * kMillisecond : 0;
}

Lookups::Lookups(Stage& stage, SimDisk& disk) : stage_(stage) {
  const Swarm& swarm = stage.swarm;
  const Random draws = stage.world.random("lookup");
  for (std::size_t i = 0; i < static_cast<std::size_t>(swarm.lookups); ++i) {
    servers_.push_back(std::make_unique<Server>(stage.world, disk, i, draws.split(channel(i))));
    servers_.back()->lies = broken(i) ? kAlways : static_cast<std::uint32_t>(swarm.lookup_lies);
  }
  if (servers_.empty()) return;
  for (std::int64_t t = 0; t < swarm.topics; ++t) stage.ledger.channels_may_appear("topic" + std::to_string(t));
  stage.ledger.channels_may_appear(kNewTopic);
}

void Lookups::start() {
  for (const auto& server : servers_) {
    server->tcp.start();
    server->web.start();
  }
}

void Lookups::disturb(Random& draws) {
  Server& server = *servers_[draws.below(servers_.size())];
  const std::uint64_t what = draws.below(4), spell_ms = draws.below(6'000);
  if (what == 0) {
    const std::string& name = server.tcp.process().name();
    stage_.world.partition(name, "broker");
    stage_.world.partition("broker", name);
    stage_.world.at(static_cast<std::int64_t>(spell_ms) * kMillisecond, [this] {
      if (!stage_.calm) stage_.world.heal();
    });
    return;
  }
  ScriptedServer& side = what == 1 ? static_cast<ScriptedServer&>(server.web) : server.tcp;
  side.process().running() ? side.stop() : side.start();
}

void Lookups::heal() {
  start();
  for (std::size_t i = 0; i < servers_.size(); ++i)
    if (!broken(i)) servers_[i]->lies = 0;
}

std::string Lookups::difference(const std::set<std::string>& names) const {
  std::string out;
  const Instant heard_since{std::max<std::int64_t>(0, stage_.world.now().ns - kSilenceNs)};
  for (std::size_t i = 0; i < servers_.size(); ++i) {
    if (broken(i)) continue;
    const std::set<std::string> held = servers_[i]->tcp.names(heard_since);
    for (const std::string& name : held)
      if (!names.contains(name)) out += fmt::format(" +{} ({})", name, i);
    for (const std::string& name : names)
      if (!held.contains(name)) out += fmt::format(" -{} ({})", name, i);
  }
  return out;
}

}  // namespace rq::sim
