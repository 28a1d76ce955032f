// What was emptied or deleted on purpose is owed to nobody.
#include "ledger/ledger.h"

namespace rq::ledger {

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

}  // namespace rq::ledger
