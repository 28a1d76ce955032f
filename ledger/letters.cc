// Dead letters: copies of messages under a new id in a Topic of their own (page 30 section 10).
#include "ledger/ledger.h"

namespace rq::ledger {

// Nothing was ever removed from the Channel on purpose, nor was a removal begun: a message has one life in it.
bool Ledger::untouched(const Channel& channel) const {
  return channel.removed == Instant{} && channel.trust_from == Instant{} && topics_[channel.topic].removed == Instant{};
}

// The letter belongs to a Channel of the Topic on which the message was published, and left it unfinished.
void Ledger::check_letter(const Channel& channel, MessageRef source, Now now) {
  ++totals_.letters;
  const std::string& name = topics_[channel.topic].name;
  const Topic& topic = topics_[publishes_[messages_[source].publish].topic];
  for (const ChannelRef ref : topic.channels) {
    Channel& from = channels_[ref];
    if (topic.name + "." + from.name + settings_.dead_letter_suffix != name) continue;
    Copy& copy = from.copies[source];
    if (copy.finished && untouched(from)) find("L12", describe(from, source) + " was finished and is a dead letter", now);
    if (!copy.moved) copy.moved_at = now.mono;
    copy.moved = true;
    return;
  }
  find("L1", describe(channel, source) + " was published on " + topic.name, now);
}

// The record of this letter; one message may have several, after a crash in the middle of its move.
MessageRef Ledger::letter(const Channel& channel, MessageRef source, std::string_view id, std::int64_t timestamp_ns, Now now) {
  const auto known = by_id_.find(std::string(id));
  if (known != by_id_.end()) {
    if (messages_[known->second].letter_of != source)
      find("L2", "the id of " + describe(channel, known->second) + " is also that of a dead letter", now);
    return known->second;
  }
  Publish publish;
  publish.topic = channel.topic;
  publish.first = static_cast<MessageRef>(messages_.size());
  publish.count = 1;
  publish.sent = {now.mono, WallTime{timestamp_ns}};
  publish.jumps_ns = jumps_ns_;
  publish.answer = Answer::ambiguous;
  Record record = messages_[source];
  record.publish = static_cast<PublishRef>(publishes_.size());
  record.id.clear();
  record.letter_of = source;
  publishes_.push_back(publish);
  messages_.push_back(std::move(record));
  return publish.first;
}

}  // namespace rq::ledger
