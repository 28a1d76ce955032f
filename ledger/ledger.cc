#include "ledger/ledger.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/check.h"

namespace rq::ledger {
namespace {
constexpr std::uint64_t kSecondHash = 0x6c62272e07bb0142ULL;
constexpr std::size_t kLabelBytes = 24;
constexpr std::uint16_t kAttemptsMax = 65'535;
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

// True while the Broker cannot have timed this delivery out.
bool Ledger::lease_certain(const Consumer& consumer, const Held& held, Instant now) const {
  if (!consumer.open || consumer.doubtful || consumer.run != run_) return false;
  // A policy that was in force at the delivery cut the lease short, also when another one is by now.
  const Publish& publish = publishes_[messages_[held.message].publish];
  for (const Topic::Policy& policy : topics_[publish.topic].policies)
    if (policy.until + settings_.transit_ns >= held.at && expires(publish, policy.ttl_ns) <= now) return false;
  return now < held.at + (consumer.lease_ns - settings_.transit_ns);
}

// A delivery just arrived and is in `held`: if the connection now holds more than RDY allows, its oldest commands must have been
// credited, which happens only after their barrier.
void Ledger::take_credit(Consumer& consumer, Now now) {
  std::vector<std::pair<const std::string, Held>*> certain;
  for (auto& entry : consumer.held)
    if (lease_certain(consumer, entry.second, now.mono)) certain.push_back(&entry);
  if (certain.size() <= consumer.rdy_bound) return;
  std::size_t credits = certain.size() - consumer.rdy_bound;
  std::erase_if(certain, [](const auto* entry) { return entry->second.pending == Held::Pending::none; });
  std::sort(certain.begin(), certain.end(), [](const auto* a, const auto* b) { return a->second.order < b->second.order; });
  if (credits > certain.size()) {
    const Channel& channel = channels_[consumer.channel];
    find("L10",
         fmt::format("{}/{}: {} outstanding with RDY {}", topics_[channel.topic].name, channel.name, consumer.held.size(),
                     consumer.rdy_bound),
         now);
    credits = certain.size();
  }
  Channel& channel = channels_[consumer.channel];
  for (std::size_t i = 0; i < credits; ++i) {
    const Held& held = certain[i]->second;
    Copy& copy = channel.copies[held.message];
    if (held.pending == Held::Pending::req) {
      copy.requeued = std::max(copy.requeued, held.attempts);
    } else if (!copy.finished && now.mono >= channel.trust_from) {
      copy.finished = true;
      copy.finished_attempts = held.attempts;
      copy.finished_at = now.mono;
      ++totals_.fins_durable;
    }
    consumer.held.erase(certain[i]->first);
  }
}

void Ledger::delivered(ConsumerRef ref, std::string_view id, std::int64_t timestamp_ns, std::uint16_t attempts,
                       std::string_view body, Now now) {
  heard(ref, now);
  ++totals_.deliveries;
  Channel& channel = channels_[consumers_[ref].channel];
  const auto known = by_body_.find(hash64(body));
  if (known == by_body_.end() || messages_[known->second].bytes != body.size() ||
      messages_[known->second].check != hash64(body, kSecondHash)) {
    find("L1",
         fmt::format("{}/{}: message {} with {} bytes was never published", topics_[channel.topic].name, channel.name, id,
                     body.size()),
         now);
    return;
  }
  MessageRef message = known->second;
  if (topics_[channel.topic].letters) {
    check_letter(channel, message, now);
    message = letter(channel, message, id, timestamp_ns, now);
  }
  check_identity(channel, message, id, timestamp_ns, now);
  check_deadline(consumers_[ref], message, now);
  check_copy(ref, message, attempts, now);
  check_holders(ref, message, attempts, now);
  Copy& copy = channel.copies[message];
  if (copy.deliveries++ > 0) ++totals_.redeliveries;
  Consumer& consumer = consumers_[ref];
  // What a deleted Channel had handed out may arrive after its end, and says nothing of the one that came after it.
  if (consumer.run == copy.run && !consumer.doubtful) copy.highest = std::max(copy.highest, attempts);
  Held held;
  held.message = message;
  held.at = now.mono;
  held.attempts = attempts;
  consumer.held.insert_or_assign(std::string(id), held);
  take_credit(consumer, now);
}

// L1, L2, L7 for DPUB, L9.
void Ledger::check_identity(const Channel& channel, MessageRef ref, std::string_view id, std::int64_t timestamp_ns, Now now) {
  Record& record = messages_[ref];
  const Publish& publish = publishes_[record.publish];
  if (publish.topic != channel.topic)
    find("L1", describe(channel, ref) + " was published on " + topics_[publish.topic].name, now);
  if (publish.answer == Answer::refused) find("L1", describe(channel, ref) + " was refused, but is delivered", now);
  if (record.id.empty()) {
    record.id = id;
    record.timestamp_ns = timestamp_ns;
    if (const auto [other, fresh] = by_id_.emplace(std::string(id), ref); !fresh)
      find("L2", fmt::format("id {} belongs to {} and to {}", id, describe(channel, other->second), describe(channel, ref)), now);
  } else if (record.id != id || record.timestamp_ns != timestamp_ns) {
    find("L2",
         fmt::format("{} had id {} and timestamp {}, now {} and {}", describe(channel, ref), record.id, record.timestamp_ns, id,
                     timestamp_ns),
         now);
  }
  if (settings_.wall_is_steady && (timestamp_ns < publish.sent.wall.ns || timestamp_ns > now.wall.ns))
    find("L2",
         fmt::format("{} has timestamp {}, sent at {}, delivered at {}", describe(channel, ref), timestamp_ns,
                     publish.sent.wall.ns, now.wall.ns),
         now);
  const std::int64_t waited = now.mono - publish.sent.mono + (jumps_ns_ - publish.jumps_ns);
  if (publish.defer_ns > 0 && waited + settings_.delay_slack_ns < publish.defer_ns)
    find("L7",
         fmt::format("{} is delivered {} ms after its DPUB of {} ms", describe(channel, ref), waited / kMillisecond,
                     publish.defer_ns / kMillisecond),
         now);
  if (channel.emptied && publish.answer == Answer::ok && publish.ended.mono < channel.emptied_sent &&
      now.mono > channel.emptied->mono + settings_.transit_ns)
    find("L9", describe(channel, ref) + " was acknowledged before Empty and is delivered after it", now);
}

// L3 and L6.
void Ledger::check_copy(ConsumerRef ref, MessageRef message, std::uint16_t attempts, Now now) {
  const Consumer& consumer = consumers_[ref];
  Channel& channel = channels_[consumer.channel];
  Copy& copy = channel.copies[message];
  if (copy.run != run_ && consumer.run == run_) {
    copy.run_start_floor = last_stop_ == Stop::clean && run_ > 0 && copy.run + 1 == run_ ? copy.highest : copy.requeued;
    copy.run = run_;
    copy.seen.clear();
    copy.highest = 0;  // a crash may take back what the run before had reached
  }
  if (copy.finished && (consumer.opened.mono > copy.finished_at || (consumer.run == run_ && attempts > copy.finished_attempts)))
    find("L3",
         fmt::format("{} was finished at {} ms and is delivered again (attempts {})", describe(channel, message),
                     copy.finished_at.ns / kMillisecond, attempts),
         now);
  // Under TTL_DISCARD nothing moves.
  const Topic& topic = topics_[channel.topic];
  const bool moves = settings_.attempts_max > 0 && !topic.letters && topic.policies.empty();
  if (moves && attempts >= settings_.attempts_max)
    find("L12", fmt::format("{} shows attempts {}, which nobody may see", describe(channel, message), attempts), now);
  const bool settled = !settings_.moves_may_wait || run_ == 0;  // no crash so far, or the start has finished the move
  if (copy.moved && settled && consumer.opened.mono > copy.moved_at && untouched(channel))
    find("L12", describe(channel, message) + " is a dead letter and is delivered again", now);
  if (attempts == 0) find("L6", describe(channel, message) + " shows attempts 0", now);
  if (consumer.run != run_ || consumer.doubtful) return;
  if (now.mono < channel.trust_from) return copy.seen.clear();
  if (copy.seen.empty() && attempts <= copy.run_start_floor && attempts < kAttemptsMax)
    find("L6",
         fmt::format("{} shows attempts {} after a restart that had to keep {}", describe(channel, message), attempts,
                     copy.run_start_floor),
         now);
  if (attempts < kAttemptsMax && std::find(copy.seen.begin(), copy.seen.end(), attempts) != copy.seen.end())
    find("L6", fmt::format("{} shows attempts {} twice", describe(channel, message), attempts), now);
  copy.seen.push_back(attempts);
  std::uint64_t most = 1 + copy.deliveries + channel.hidden;
  for (ConsumerRef open : channel.open)
    most += hidden_deliveries(now.mono - consumers_[open].opened.mono, consumers_[open].lease_ns);
  if (attempts > most)
    find("L6", fmt::format("{} shows attempts {}, at most {} deliveries happened", describe(channel, message), attempts, most),
         now);
}

// L5, and L7 for REQ: somebody else still holds it.
void Ledger::check_holders(ConsumerRef ref, MessageRef message, std::uint16_t attempts, Now now) {
  if (consumers_[ref].run != run_) return;
  Channel& channel = channels_[consumers_[ref].channel];
  const std::string& id = messages_[message].id;
  for (ConsumerRef open : channel.open) {
    Consumer& holder = consumers_[open];
    const auto entry = holder.held.find(id);
    if (entry == holder.held.end()) continue;
    const Held& held = entry->second;
    if (held.attempts >= attempts || !lease_certain(holder, held, now.mono)) continue;
    if (held.pending != Held::Pending::req) {
      suspect(holder, "L5", describe(channel, message) + " is delivered while another connection holds it", now);
      continue;
    }
    const std::int64_t waited = now.mono - held.sent.mono + jumps_ns_;
    if (waited + settings_.delay_slack_ns < held.delay_ns)
      suspect(holder, "L7",
              fmt::format("{} is delivered {} ms after a REQ of {} ms", describe(channel, message), waited / kMillisecond,
                          held.delay_ns / kMillisecond),
              now);
  }
}

// A finding only if the Broker still had that connection: it is heard of again.
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

RemovalRef Ledger::removal_sent(Removal what, std::string_view topic, std::string_view channel, Now now) {
  removals_.push_back({what, std::string(topic), std::string(channel), now});
  const auto removal = static_cast<RemovalRef>(removals_.size() - 1);
  if (what == Removal::delete_topic) topics_[topic_ref(topic)].certain.reset();  // a new one is RELIABLE
  for (ChannelRef ref : affected(removals_.back())) distrust(channels_[ref], Instant::never());
  if (what == Removal::delete_channel) topics_[topic_ref(topic)].deletions.push_back({removal, now.mono, Instant::never()});
  return removal;
}

std::vector<ChannelRef> Ledger::affected(const RemovalRecord& removal) {
  if (removal.what == Removal::delete_topic) return topics_[topic_ref(removal.topic)].channels;
  if (removal.what == Removal::empty_topic) return {};
  return {channel_ref(removal.topic, removal.channel)};
}

// What was final may come back with a new Channel of that name; attempts may start again. No statement before `until`.
void Ledger::distrust(Channel& channel, Instant until) {
  for (auto& [ref, copy] : channel.copies) {
    const std::uint32_t deliveries = copy.deliveries;
    copy = Copy();
    copy.deliveries = deliveries;
    copy.run = run_;
  }
  for (ConsumerRef open : channel.open) consumers_[open].doubtful = true;
  channel.hidden += kAttemptsMax;
  channel.trust_from = until;
  channel.emptied.reset();
}

void Ledger::removal_ended(RemovalRef ref, bool succeeded, Now now) {
  const RemovalRecord removal = removals_[ref];
  // Given up, it may still be on its way.
  const Instant until = now.mono + (succeeded ? 1 : settings_.zombie_ns);
  Topic& topic = topics_[topic_ref(removal.topic)];
  if (succeeded) ++totals_.removals;
  for (Topic::Deletion& deletion : topic.deletions)
    if (deletion.removal == ref) deletion.until = until;
  for (ChannelRef each : affected(removal)) {
    Channel& channel = channels_[each];
    distrust(channel, until);
    channel.removed = until;
    if (removal.what == Removal::empty_channel) {
      if (succeeded) {
        channel.emptied = now;
        channel.emptied_sent = removal.sent.mono;
      }
      continue;
    }
    channel.created.reset();
    channel.first = false;
  }
  if (removal.what != Removal::delete_topic && removal.what != Removal::empty_topic) return;
  topic.removed = until;
  topic.had_durable = true;  // which Channel is the first one now cannot be known
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
