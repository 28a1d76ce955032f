#include "ledger/ledger.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/check.h"

namespace rq::ledger {
namespace {
constexpr std::size_t kLabelBytes = 24;
}  // namespace

PublishRef Ledger::publish_sent(std::string_view topic, std::span<const std::string> bodies, std::int64_t defer_ns, Now now) {
  Publish publish;
  publish.topic = topic_ref(topic);
  publish.first = static_cast<MessageRef>(messages_.size());
  publish.count = static_cast<std::uint32_t>(bodies.size());
  publish.sent = now;
  publish.defer_ns = defer_ns;
  publish.jumps_ns = jumps_ns_;
  const auto ref = static_cast<PublishRef>(publishes_.size());
  for (const std::string& body : bodies) {
    const bool fresh = by_body_.emplace(hash64(body), static_cast<MessageRef>(messages_.size())).second;
    RQ_CHECK(fresh);  // the owner's bodies are unique
    Record record;
    record.publish = ref;
    record.bytes = static_cast<std::uint32_t>(body.size());
    record.check = hash64(body, kSecondHash);
    record.label = body.substr(0, kLabelBytes);
    messages_.push_back(std::move(record));
  }
  publishes_.push_back(publish);
  ++totals_.publishes;
  totals_.messages += bodies.size();
  return ref;
}

void Ledger::publish_answered(PublishRef ref, Answer answer, Now now) {
  Publish& publish = publishes_[ref];
  RQ_CHECK(publish.answer == Answer::waiting && answer != Answer::waiting);
  // An answer that was on its way when the power failed promises no more than one that had arrived.
  const bool late = answer == Answer::ok && settings_.relaxed_ns > 0 && publish.sent.mono <= power_lost_;
  if (late) answer = Answer::ambiguous;
  publish.answer = answer;
  publish.ended = now;
  std::uint64_t& total = answer == Answer::ok        ? totals_.acknowledged
                         : answer == Answer::refused ? totals_.refused
                                                     : totals_.ambiguous;
  total += publish.count;
}

std::uint32_t Ledger::topic_ref(std::string_view name) {
  for (std::uint32_t i = 0; i < topics_.size(); ++i)
    if (topics_[i].name == name) return i;
  topics_.push_back({});
  topics_.back().name = name;
  topics_.back().letters = !settings_.dead_letter_suffix.empty() && name.ends_with(settings_.dead_letter_suffix);
  return static_cast<std::uint32_t>(topics_.size() - 1);
}

ChannelRef Ledger::channel_ref(std::string_view topic, std::string_view name) {
  const std::uint32_t owner = topic_ref(topic);
  for (ChannelRef ref : topics_[owner].channels)
    if (channels_[ref].name == name) return ref;
  Channel channel;
  channel.topic = owner;
  channel.name = name;
  channel.ephemeral = name.ends_with("#ephemeral") || topic.ends_with("#ephemeral");  // D-21: nothing is promised
  channels_.push_back(std::move(channel));
  const auto ref = static_cast<ChannelRef>(channels_.size() - 1);
  topics_[owner].channels.push_back(ref);
  return ref;
}

// Its creation may happen from now on.
void Ledger::begin_channel(Channel& channel) {
  if (channel.ephemeral || channel.created || channel.first) return;
  Topic& topic = topics_[channel.topic];
  if (topic.had_durable) {
    // While no answer told which one was created first, either may have been: I-37 holds for neither of them then.
    for (const ChannelRef other : topic.channels)
      if (channels_[other].first && !channels_[other].created) channels_[other].first = false;
    return;
  }
  channel.first = true;
  topic.had_durable = true;
}

void Ledger::subscribe_sent(std::string_view topic, std::string_view name, Now) {
  Channel& channel = channels_[channel_ref(topic, name)];
  begin_channel(channel);
  channel.hidden += hidden_deliveries(0, settings_.zombie_ns);  // until it is answered, and if it never is
}

// How often one message can have been handed to a connection of that age without the client seeing it.
std::uint64_t Ledger::hidden_deliveries(std::int64_t age_ns, std::int64_t lease_ns) const {
  return 1 + static_cast<std::uint64_t>((age_ns + settings_.zombie_ns) / std::max<std::int64_t>(1, lease_ns));
}

ConsumerRef Ledger::subscribed(std::string_view topic, std::string_view name, std::int64_t lease_ns, Now now) {
  const ChannelRef ref = channel_ref(topic, name);
  Channel& channel = channels_[ref];
  begin_channel(channel);
  if (!channel.created) channel.created = now;
  Consumer consumer;
  consumer.channel = ref;
  consumer.lease_ns = lease_ns;
  consumer.opened = now;
  consumer.run = run_;
  consumers_.push_back(std::move(consumer));
  channel.open.push_back(static_cast<ConsumerRef>(consumers_.size() - 1));
  return channel.open.back();
}

void Ledger::channel_created(std::string_view topic, std::string_view name, Now now) {
  Channel& channel = channels_[channel_ref(topic, name)];
  begin_channel(channel);
  if (!channel.created) channel.created = now;
}

void Ledger::ready(ConsumerRef ref, std::uint32_t rdy) {
  Consumer& consumer = consumers_[ref];
  consumer.rdy_bound = std::max(consumer.rdy_bound, rdy);
}

void Ledger::suspect(Consumer& consumer, const char* rule, std::string text, Now now) {
  ++totals_.suspects;
  consumer.suspects.push_back({now.mono, rule, std::move(text)});
}

void Ledger::heard(ConsumerRef ref, Now now) {
  Consumer& consumer = consumers_[ref];
  if (consumer.suspects.empty()) return;
  std::vector<Suspect> rest;
  for (Suspect& suspect : consumer.suspects) {
    if (consumer.run != run_ || consumer.doubtful) continue;
    if (now.mono <= suspect.at + settings_.transit_ns) {
      rest.push_back(std::move(suspect));
      continue;
    }
    find(suspect.rule.c_str(), fmt::format("at {} ms: {}", suspect.at.ns / kMillisecond, suspect.text), now);
  }
  consumer.suspects = std::move(rest);
}

void Ledger::fin_sent(ConsumerRef ref, std::string_view id, Now now) {
  Consumer& consumer = consumers_[ref];
  ++totals_.fins;
  const auto entry = consumer.held.find(std::string(id));
  if (entry == consumer.held.end()) return;
  Held& held = entry->second;
  ++channels_[consumer.channel].copies[held.message].fins_open;
  if (held.pending != Held::Pending::none) return;
  held.pending = Held::Pending::fin;
  held.sent = now;
  held.order = ++order_;
}

void Ledger::req_sent(ConsumerRef ref, std::string_view id, std::int64_t delay_ns, Now now) {
  Consumer& consumer = consumers_[ref];
  ++totals_.requeues;
  const auto entry = consumer.held.find(std::string(id));
  if (entry == consumer.held.end() || entry->second.pending != Held::Pending::none) return;
  Held& held = entry->second;
  held.pending = Held::Pending::req;
  held.sent = now;
  held.delay_ns = delay_ns + jumps_ns_;
  held.order = ++order_;
}

void Ledger::command_refused(ConsumerRef ref, std::string_view id, bool fin, Now) {
  Consumer& consumer = consumers_[ref];
  ++totals_.refusals;
  const auto entry = consumer.held.find(std::string(id));
  if (entry == consumer.held.end()) return;
  Copy& copy = channels_[consumer.channel].copies[entry->second.message];
  if (fin && copy.fins_open > 0) --copy.fins_open;
  // The answer to a command for an earlier delivery of the same message says nothing about this one.
  const bool same = entry->second.pending == (fin ? Held::Pending::fin : Held::Pending::req);
  if (same) consumer.held.erase(entry);
}

void Ledger::doubtful(ConsumerRef ref) { consumers_[ref].doubtful = true; }

void Ledger::closed(ConsumerRef ref, Now now) {
  Consumer& consumer = consumers_[ref];
  if (!consumer.open) return;
  consumer.open = false;
  consumer.suspects.clear();
  consumer.held.clear();
  Channel& channel = channels_[consumer.channel];
  std::erase(channel.open, ref);
  channel.hidden += hidden_deliveries(now.mono - consumer.opened.mono, consumer.lease_ns);
}

// A power loss may have taken the tail that a relaxed mode had answered but not synced.
void Ledger::doubt_unsynced(Now now) {
  power_lost_ = now.mono;
  for (Publish& publish : publishes_) {
    if (publish.answer != Answer::ok || publish.ended.mono < unsynced_from_) continue;
    publish.answer = Answer::ambiguous;
    totals_.acknowledged -= publish.count;
    totals_.ambiguous += publish.count;
  }
}

void Ledger::broker_stopped(Stop how, Now now, bool served) {
  ++totals_.runs;
  if (served) unsynced_from_ = now.mono + -settings_.relaxed_ns;
  if (how == Stop::power_loss && settings_.relaxed_ns > 0) doubt_unsynced(now);
  if (how == Stop::clean) ++totals_.clean_stops;
  last_stop_ = how;
  for (Channel& channel : channels_)
    for (ConsumerRef ref : std::vector<ConsumerRef>(channel.open)) {
      Consumer& consumer = consumers_[ref];
      consumer.suspects.clear();
      channel.hidden += hidden_deliveries(now.mono - consumer.opened.mono, consumer.lease_ns);
    }
  for (Channel& channel : channels_) {
    channel.open.clear();
    if (channel.ephemeral) {
      channel.created.reset();
      channel.copies.clear();
    }
  }
  ++run_;
}

void Ledger::wall_stepped(std::int64_t delta_ns) {
  settings_.wall_is_steady = false;
  if (delta_ns > 0) jumps_ns_ += delta_ns;
}

void Ledger::find(const char* rule, std::string text, Now now) {
  if (findings_.size() < settings_.findings_max) findings_.push_back({rule, std::move(text), now});
}

}  // namespace rq::ledger
