// What TTL_DISCARD means to the ledger (page 30 section 9): X of I-58, and L11.
#include <fmt/format.h>

#include <algorithm>

#include "ledger/ledger.h"

namespace rq::ledger {

void Ledger::policy_sent(std::string_view name, std::int64_t ttl_ns, Now now) {
  Topic& topic = topics_[topic_ref(name)];
  topic.certain.reset();
  if (ttl_ns > 0) topic.policies.push_back({ttl_ns, now.mono, Instant::never()});
  // A lease that the old deadline had cut short may end under the new policy: one delivery more for each connection.
  for (ChannelRef ref : topic.channels) channels_[ref].hidden += 1 + channels_[ref].open.size();
}

void Ledger::policy_in_force(std::string_view name, std::int64_t ttl_ns, Now now) {
  Topic& topic = topics_[topic_ref(name)];
  for (std::size_t i = 0; i < topic.policies.size(); ++i) {
    const bool newest = ttl_ns > 0 && i + 1 == topic.policies.size();
    if (!newest) topic.policies[i].until = std::min(topic.policies[i].until, now.mono);
  }
  if (ttl_ns > 0) topic.certain = Topic::Policy{ttl_ns, now.mono, Instant::never()};
}

// Not before then: the clock may have jumped forward since, and a timestamp is never before the publish was sent.
Instant Ledger::expires(const Publish& publish, std::int64_t ttl_ns) const {
  return publish.sent.mono + (ttl_ns - (jumps_ns_ - publish.jumps_ns));
}

bool Ledger::may_have_expired(const Publish& publish, Instant now) const {
  const std::vector<Topic::Policy>& policies = topics_[publish.topic].policies;
  return std::any_of(policies.begin(), policies.end(),
                     [&](const Topic::Policy& policy) { return expires(publish, policy.ttl_ns) <= std::min(policy.until, now); });
}

void Ledger::check_deadline(const Consumer& consumer, MessageRef message, Now now) {
  const Channel& channel = channels_[consumer.channel];
  const std::optional<Topic::Policy>& certain = topics_[channel.topic].certain;
  if (!certain || !settings_.wall_is_steady || consumer.doubtful || consumer.run != run_) return;
  if (now.mono <= certain->sent + settings_.transit_ns) return;
  const std::int64_t late = now.wall.ns - settings_.transit_ns - (messages_[message].timestamp_ns + certain->ttl_ns);
  if (late > 0)
    find("L11", fmt::format("{} is delivered {} ms after its deadline", describe(channel, message), late / kMillisecond), now);
}

}  // namespace rq::ledger
