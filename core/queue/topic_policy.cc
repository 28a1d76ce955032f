// The delivery policy of a Topic: RELIABLE or TTL_DISCARD (page 30 section 9.1).
#include <utility>

#include "core/queue/dead_letters.h"
#include "core/queue/topic.h"

namespace rq::queue {
namespace {

void set_policy(storage::Manifest& manifest, const DeliveryPolicy& policy) {
  manifest.ttl_discard = policy.ttl_discard;
  manifest.message_ttl_seconds.reset();
  if (policy.ttl_discard) manifest.message_ttl_seconds = policy.ttl_seconds;
}

}  // namespace

// Durable first, in force from then on; answered when nothing is due any more.
bool Topic::configure(Operation& operation, Now now) {
  if (!operation_running_ && operation.policy != policy()) {
    if (!shared_.dead_letters->begin_policy_change(*this)) return false;  // I-04
    storage::Manifest manifest = manifest_;
    set_policy(manifest, operation.policy);
    manifest.next_position = log_->next_position();
    begin_script(&Topic::on_operated);
    store_manifest(storage::encode_manifest(manifest));
    if (operation.policy.ttl_discard) shared_.dead_letters->drop_intents_of(*this, *script_);
    stored_next_position_ = manifest.next_position;
    operation_running_ = true;
    script_->start();
    return false;
  }
  if (std::exchange(operation_running_, false)) {
    shared_.dead_letters->end_policy_change();
    if (!operation.policy.ttl_discard) ++reliable_epoch_;
    set_policy(manifest_, operation.policy);
    for (const auto& [name, lane] : lanes_)
      for (ConsumerId consumer : lane->consumers)
        shared_.events.policy_changes.push_back({consumer, shared_.events.deliveries.size()});
    if (operation.waiter != kManagedWaiter) shared_.meta->bump_revision();  // a managed operation has its own
    operation.created = true;                                               // changed, at any rate
    retry_discard();
    schedule_discard(log_->oldest_timestamp_after(manifest_.expired_through));
    mark_all_lanes();
  }
  if (discard_due(now)) {
    want_discard();
    return false;
  }
  if (operation.waiter != WaiterId::none) shared_.events.admin.push_back({operation.waiter, {}, operation.created});
  return true;
}

}  // namespace rq::queue
