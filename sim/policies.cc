#include "sim/policies.h"

namespace rq::sim {
namespace {

constexpr std::int64_t kGiveUpNs = 20 * kSecond;  // the Topic was deleted and is there again

std::int64_t ttl_ns(const queue::DeliveryPolicy& policy) { return static_cast<std::int64_t>(policy.ttl_seconds) * kSecond; }

}  // namespace

void Policies::change(Random& draws, Now now) {
  const std::string topic = "topic" + std::to_string(draws.below(static_cast<std::uint64_t>(swarm_.topics)));
  const bool reliable = draws.below(3) == 0;
  const std::uint64_t seconds = 1 + draws.below(static_cast<std::uint64_t>(swarm_.ttl_s));
  look(now);
  if (!change_) configure(topic, reliable ? queue::DeliveryPolicy{} : queue::DeliveryPolicy{true, seconds}, now);
}

void Policies::configure(const std::string& topic, const queue::DeliveryPolicy& policy, Now now) {
  if (!broker_.serving() || !broker_.broker().engine().has_topic(topic)) return;
  ledger_.policy_sent(topic, ttl_ns(policy), now);
  broker_.broker().engine().configure(topic, policy, false, queue::WaiterId::none, broker_.process().turn().now());
  broker_.process().poke();
  change_ = Change{topic, policy, now, broker_.boots};
}

void Policies::look(Now now) {
  if (!change_) return;
  const bool lost = broker_.boots != change_->boot || now.mono > change_->sent.mono + kGiveUpNs;
  if (lost) {
    change_.reset();
  } else if (broker_.serving() && broker_.broker().engine().policy_of(change_->topic) == change_->policy) {
    ledger_.policy_in_force(change_->topic, ttl_ns(change_->policy), now);
    change_.reset();
  }
}

bool Policies::settle(Now now) {
  look(now);
  if (change_) return false;
  if (!broker_.serving()) return false;
  for (std::int64_t i = 0; i < swarm_.topics; ++i) {
    const std::string topic = "topic" + std::to_string(i);
    const std::optional<queue::DeliveryPolicy> policy = broker_.broker().engine().policy_of(topic);
    if (!policy || !policy->ttl_discard) continue;
    configure(topic, {}, now);
    return false;
  }
  return true;
}

}  // namespace rq::sim
