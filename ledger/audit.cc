// The rules that can only be judged at the end: everything owed was delivered, requests are whole, ids ascend.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "ledger/ledger.h"

namespace rq::ledger {
namespace {
std::uint64_t number_of(std::string_view hex) {
  std::uint64_t value = 0;
  std::from_chars(hex.data(), hex.data() + hex.size(), value, 16);
  return value;
}
}  // namespace

// Whether this Channel certainly has to hold what the request published, were it stored.
bool Ledger::owed(const Channel& channel, const Publish& publish) const {
  if (channel.ephemeral || !channel.created || publish.topic != channel.topic) return false;
  const Instant sent = publish.sent.mono;
  if (may_have_expired(publish, Instant::never())) return false;
  if (sent < channel.removed || sent < topics_[channel.topic].removed) return false;
  if (sent >= channel.created->mono) return true;  // I-39
  for (const Topic::Deletion& deletion : topics_[channel.topic].deletions)
    if (channel.created->mono > deletion.sent && sent < deletion.until) return false;
  if (channel.first) return true;                                                                               // I-37
  return settings_.wall_is_steady && publish.sent.wall.ns > channel.created->wall.ns - settings_.bootstrap_ns;  // I-38
}

std::uint64_t Ledger::missing() const {
  std::uint64_t count = 0;
  for (const Channel& channel : channels_) {
    for (const Publish& publish : publishes_) {
      if (publish.answer != Answer::ok || !owed(channel, publish)) continue;
      for (MessageRef ref = publish.first; ref < publish.first + publish.count; ++ref) {
        const auto copy = channel.copies.find(ref);
        if (copy == channel.copies.end() || (copy->second.fins_open == 0 && !copy->second.moved)) ++count;
      }
    }
  }
  return count;
}

void Ledger::audit(Now now) {
  for (const Channel& channel : channels_) {
    for (const Publish& publish : publishes_) {
      if (publish.answer != Answer::ok || !owed(channel, publish)) continue;
      for (MessageRef ref = publish.first; ref < publish.first + publish.count; ++ref) {
        ++totals_.audited;
        const auto copy = channel.copies.find(ref);
        if (copy != channel.copies.end() && (copy->second.fins_open > 0 || copy->second.moved)) continue;
        find("L4",
             fmt::format("{} was acknowledged at {} ms, {}, and is not delivered", describe(channel, ref),
                         publish.ended.mono.ns / kMillisecond,
                         copy == channel.copies.end() || copy->second.deliveries == 0 ? "never seen" : "never finished"),
             now);
      }
    }
    audit_whole(channel, now);
  }
  audit_order(now);
}

// L8: a request without an answer is stored as a whole or not at all. In a relaxed mode a part of it may have been delivered
// before a power loss took all of it.
void Ledger::audit_whole(const Channel& channel, Now now) {
  if (settings_.relaxed_ns > 0) return;
  for (const Publish& publish : publishes_) {
    if (publish.count < 2 || publish.answer == Answer::ok || !owed(channel, publish)) continue;
    std::uint32_t seen = 0;
    for (MessageRef ref = publish.first; ref < publish.first + publish.count; ++ref) {
      const auto copy = channel.copies.find(ref);
      if (copy != channel.copies.end() && (copy->second.deliveries > 0 || copy->second.moved)) ++seen;
    }
    if (seen != 0 && seen != publish.count)
      find("L8", fmt::format("{}: {} of {} messages of one request", describe(channel, publish.first), seen, publish.count), now);
  }
}

// L8: consecutive ids inside a request, ascending from an answered request to the next one sent on that Topic.
void Ledger::audit_order(Now now) {
  struct Entry {
    Instant at;
    bool ends;  // at one instant a request is sent before another one's answer counts
    std::uint64_t low, high;
    PublishRef publish;
  };
  for (std::uint32_t topic = 0; topic < topics_.size(); ++topic) {
    std::vector<Entry> entries;
    for (PublishRef ref = 0; ref < publishes_.size(); ++ref) {
      const Publish& publish = publishes_[ref];
      if (publish.topic != topic) continue;
      std::uint64_t low = 0, high = 0;
      for (std::uint32_t i = 0; i < publish.count; ++i) {
        const std::string& id = messages_[publish.first + i].id;
        if (id.empty()) continue;
        const std::uint64_t number = number_of(id);
        if (low == 0) low = number;
        if (high != 0 && number != low + i && low == number_of(messages_[publish.first].id))
          find("L8", fmt::format("{}: ids of one request are not consecutive", messages_[publish.first].label), now);
        high = number;
      }
      if (low == 0) continue;
      entries.push_back({publish.sent.mono, false, low, high, ref});
      if (publish.answer == Answer::ok) entries.push_back({publish.ended.mono, true, low, high, ref});
    }
    std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
      if (a.at != b.at) return a.at < b.at;
      if (a.ends != b.ends) return !a.ends;
      return a.publish < b.publish;
    });
    std::uint64_t highest = 0;
    for (const Entry& entry : entries) {
      if (entry.ends) {
        highest = std::max(highest, entry.high);
      } else if (entry.low <= highest) {
        find("L8",
             fmt::format("{}: id {:016x} is not above {:016x}, which was acknowledged before it was sent",
                         messages_[publishes_[entry.publish].first].label, entry.low, highest),
             now);
      }
    }
  }
}

std::string Ledger::describe(const Channel& channel, MessageRef ref) const {
  const Record& record = messages_[ref];
  return fmt::format("{}/{}: \"{}\" ({})", topics_[channel.topic].name, channel.name, record.label,
                     record.id.empty() ? "id unknown" : record.id);
}

std::string Ledger::report() const {
  const Totals& t = totals_;
  std::string out = fmt::format(
      "{} messages in {} publishes: {} acknowledged, {} refused, {} ambiguous\n"
      "{} deliveries ({} again), {} FIN ({} seen durable), {} REQ, {} commands refused\n"
      "{} Broker runs ended ({} clean), {} removals, {} dead letters, {} copies audited\n",
      t.messages, t.publishes, t.acknowledged, t.refused, t.ambiguous, t.deliveries, t.redeliveries, t.fins, t.fins_durable,
      t.requeues, t.refusals, t.runs, t.clean_stops, t.removals, t.letters, t.audited);
  for (const Finding& finding : findings_)
    out += fmt::format("{} at {} ms: {}\n", finding.rule, finding.at.mono.ns / kMillisecond, finding.text);
  return out;
}

}  // namespace rq::ledger
