// A delivery against everything known about its message and its Channel: L1 to L3, L5 to L7, L9, L10, L12.
#include <fmt/format.h>

#include <algorithm>

#include "ledger/ledger.h"

namespace rq::ledger {

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

}  // namespace rq::ledger
