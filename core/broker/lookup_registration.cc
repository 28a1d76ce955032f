#include "core/broker/lookup_registration.h"

#include <algorithm>
#include <utility>

#include "core/base/json_writer.h"
#include "core/broker/server_view.h"
#include "core/nsq/identify.h"
#include "core/storage/names.h"

namespace rq::broker {
namespace {

std::vector<std::string> without_repetitions(std::vector<std::string> addresses) {
  std::vector<std::string> out;
  for (std::string& address : addresses)
    if (std::find(out.begin(), out.end(), address) == out.end()) out.push_back(std::move(address));
  return out;
}

std::string identity_text(const Config& config, std::uint64_t tcp_port, std::uint64_t http_port) {
  std::string out;
  JsonWriter json(out);
  json.begin_object();
  json.key("broadcast_address").value(config.node.broadcast_address).key("hostname").value(config.node.broadcast_address);
  json.key("http_port").value(http_port).key("tcp_port").value(tcp_port);
  json.key("version").value(nsq::server_version());
  json.end_object();
  return out;
}

}  // namespace

LookupRegistration::LookupRegistration(io::Host& host, const Config& config, ChunkPool& pool)
    : host_(host), config_(config), pool_(pool), addresses_(without_repetitions(config.network.nsqlookupd_tcp_addresses)) {}

void LookupRegistration::begin(std::uint64_t tcp_port, std::uint64_t http_port) {
  begun_ = true;
  identity_ = identity_text(config_, tcp_port, http_port);
  adjust_peers();
}

void LookupRegistration::end() {
  begun_ = false;
  adjust_peers();
}

void LookupRegistration::set_addresses(std::vector<std::string> addresses) {
  addresses_ = without_repetitions(std::move(addresses));
  adjust_peers();
}

// Peers for all addresses while the Broker serves, none before and after.
void LookupRegistration::adjust_peers() {
  std::vector<std::unique_ptr<LookupPeer>> wanted;
  for (const std::string& address : addresses_) {
    if (!begun_) break;
    const auto found = std::find_if(peers_.begin(), peers_.end(),
                                    [&](const auto& peer) { return peer != nullptr && peer->address() == address; });
    if (found == peers_.end()) {
      wanted.push_back(std::make_unique<LookupPeer>(host_, pool_, address, identity_));
    } else {
      wanted.push_back(std::move(*found));
    }
  }
  for (std::unique_ptr<LookupPeer>& peer : peers_) {
    if (peer == nullptr) continue;
    peer->end();
    leaving_.push_back(std::move(peer));
  }
  peers_ = std::move(wanted);
  if (!peers_.empty()) return;
  names_.clear();
  for (const auto& query : queries_) query->end();
  opening_.clear();
  known_ = stale_ = false;
}

bool LookupRegistration::registered(std::string_view address) const {
  return std::any_of(peers_.begin(), peers_.end(),
                     [&](const auto& peer) { return peer->address() == address && peer->registered(); });
}

void LookupRegistration::removed(std::string_view topic, std::string_view channel) {
  outdated_ = asked_;  // a snapshot on its way may still name it
  if (!known_) return;
  LookupNames::Commands commands;
  names_.remove(topic, channel, commands);
  if (!commands.empty()) revision_ = kUnlooked;
  for (const auto& peer : peers_) peer->send(commands);
}

// Ephemeral Topics that are not new, or that nobody can be asked about, are open with the next turn.
void LookupRegistration::note_opening(const queue::StatsDone& done, const std::vector<std::string>& fresh, std::size_t questions,
                                      Now now) {
  for (const auto& topic : done.topics)
    if (storage::ephemeral_name(topic.name)) opening_.try_emplace(topic.name, Opening{0, now.mono});
  for (const std::string& topic : fresh)
    if (storage::ephemeral_name(topic)) opening_[topic] = {questions, now.mono + kOpeningNs};
}

void LookupRegistration::open_topics(Now now, queue::Engine& engine) {
  std::erase_if(opening_, [&](const auto& entry) {
    const bool over = entry.second.questions == 0 || entry.second.until <= now.mono;
    if (over) engine.open(entry.first);
    return over;
  });
}

void LookupRegistration::on_stats(const queue::StatsDone& done, Now now) {
  asked_ = false;
  if (std::exchange(outdated_, false)) {  // a consumer that is sent here for a deleted name brings it back
    revision_ = kUnlooked;
    return;
  }
  if (!done.outcome.ok() || peers_.empty()) return;
  LookupNames::Commands commands;
  std::vector<std::string> fresh;
  names_.update(done.topics, commands, fresh);
  std::size_t questions = 0;  // about each of them
  if (known_)
    for (const auto& peer : peers_) questions += peer->ask(fresh) ? 1 : 0;
  note_opening(done, fresh, questions, now);
  known_ = true;
  if (io::planted(host_, "forget_name_changes")) commands.clear();
  for (const auto& peer : peers_) peer->send(commands);
}

void LookupRegistration::take_snapshot(Now now, queue::Engine& engine) {
  // Without an open engine there is nothing to wait for: next_deadline() asks for no turn.
  stale_ = engine.state() == queue::EngineState::open && (!known_ || revision_ != engine.registry_revision());
  if (!stale_ || asked_ || now.mono < snapshot_at_) return;
  asked_ = true;
  stale_ = false;
  revision_ = engine.registry_revision();
  snapshot_at_ = now.mono + kSnapshotNs + static_cast<std::int64_t>(names_.count()) * kSnapshotNsPerName;
  engine.stats({}, {}, make_waiter(WaiterKind::lookup, 0), now);
}

void LookupRegistration::settle(Now now, queue::Engine& engine) {
  std::erase_if(leaving_, [](const auto& peer) { return peer->over(); });
  take_channels(now, engine);
  engine.keep_for_known_channels(!peers_.empty());
  open_topics(now, engine);
  if (peers_.empty()) return;
  take_snapshot(now, engine);
  if (!known_) return;
  for (const auto& peer : peers_) peer->settle(now, names_);
  ask_for_channels(now);
}

void LookupRegistration::ask_for_channels(Now now) {
  for (const auto& peer : peers_)
    while (peer->can_be_asked() && queries_.size() < kQueriesMax)
      queries_.push_back(std::make_unique<LookupQuery>(host_, pool_, peer->http_address(), peer->take_question()));
  for (const auto& query : queries_) query->settle(now);
}

void LookupRegistration::take_channels(Now now, queue::Engine& engine) {
  for (const auto& query : queries_) {
    if (!query->over() || !begun_) continue;
    const auto opening = opening_.find(query->topic());
    if (opening != opening_.end() && opening->second.questions > 0) --opening->second.questions;
    for (const std::string& channel : query->channels()) {
      if (engine.has_topic(query->topic()) && !engine.has_channel(query->topic(), channel))
        engine.admin(queue::Admin::create_channel, query->topic(), channel, make_waiter(WaiterKind::lookup, 0), now);
    }
  }
  std::erase_if(queries_, [](const auto& query) { return query->over(); });
}

void LookupRegistration::expire(Now now) {
  for (const auto& peer : peers_) peer->expire(now);
  for (const auto& query : queries_) query->expire(now);
}

Instant LookupRegistration::next_deadline() const {
  Instant earliest = stale_ && !asked_ ? snapshot_at_ : Instant::never();
  if (!known_) return earliest;
  for (const auto& [topic, opening] : opening_) earliest = std::min(earliest, opening.until);
  for (const auto& peer : peers_) earliest = std::min(earliest, peer->next_deadline());
  for (const auto& query : queries_) earliest = std::min(earliest, query->next_deadline());
  return earliest;
}

}  // namespace rq::broker
