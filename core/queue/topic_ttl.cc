// TTL_DISCARD: the expired prefix of a Topic goes from every Channel, then from the manifest (page 30 sections 9.2 and 9.3).
//
//   idle -> searching (metadata pages) -> evicting (Evict in every WAL) -> storing (manifest) -> idle
#include <algorithm>
#include <limits>
#include <utility>

#include "core/base/probe.h"
#include "core/queue/topic.h"

namespace rq::queue {
namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
constexpr std::uint64_t kPassMessagesMax = 65'536;

std::int64_t ttl_ns(const storage::Manifest& manifest) {
  std::int64_t ns = 0;
  if (__builtin_mul_overflow(manifest.message_ttl_seconds.value_or(0), kSecond, &ns)) ns = kNever;
  return ns;
}

}  // namespace

std::int64_t Topic::expiry_of(std::int64_t timestamp_ns) const {
  if (!manifest_.ttl_discard || io::planted(shared_.host, "keep_the_expired")) return kNever;
  std::int64_t at = 0;
  return __builtin_add_overflow(timestamp_ns, ttl_ns(manifest_), &at) ? kNever : at;
}

Instant Topic::lease_limit(std::int64_t timestamp_ns, Now now) const {
  const std::int64_t at = expiry_of(timestamp_ns);
  std::int64_t limit = 0;
  if (at == kNever || __builtin_sub_overflow(at, now.wall.ns, &limit) || __builtin_add_overflow(limit, now.mono.ns, &limit))
    return Instant::never();
  return Instant{limit};
}

void Topic::schedule_discard(std::int64_t next_timestamp_ns) {
  if (discard_at_ != kNever) shared_.expiries.erase({discard_at_, owner_});
  discard_at_ = phase_ != Phase::live || next_timestamp_ns == kNever ? kNever : expiry_of(next_timestamp_ns);
  if (discard_at_ != kNever) shared_.expiries.insert({discard_at_, owner_});
}

// After a publish: the Topic may have had nothing that expires.
void Topic::schedule_first_discard() {
  if (manifest_.ttl_discard && discard_at_ == kNever) schedule_discard(log_->oldest_timestamp_after(manifest_.expired_through));
}

void Topic::want_discard() {
  if (!std::exchange(discard_.wanted, true)) mark();  // else it waits for a script, whose end marks
}

void Topic::pump_discard(Now now) {
  if (discard_.step == Discard::Step::idle) {
    if (!std::exchange(discard_.wanted, false) || phase_ != Phase::live || !manifest_.ttl_discard) return;
    if (script_ || operation_running_ || evicting()) {
      discard_.wanted = true;  // its end marks the Topic
      return;
    }
    discard_.cutoff_ns = now.wall.ns - ttl_ns(manifest_);
    discard_.step = Discard::Step::searching;
    shared_.expiries.erase({discard_at_, owner_});
  }
  if (discard_.step == Discard::Step::searching) {
    if (!log_->expired_prefix(manifest_.expired_through, discard_.cutoff_ns, kPassMessagesMax, discard_.prefix)) return;
    if (discard_.prefix.count == 0) {
      discard_.ran_dry = true;
      return end_discard(discard_.prefix.next_timestamp_ns);
    }
    RQ_SOMETIMES(true, "topic: messages expire");
    end_opening();
    evict_everywhere(discard_.prefix.through, now);
    discard_.step = Discard::Step::evicting;
  }
  if (discard_.step == Discard::Step::evicting && !script_ && evicted_everywhere(discard_.prefix.through)) store_discard();
}

// Unrouted, fresh, deferred, requeued and in-flight copies all end here; what consumers hold of them is void.
void Topic::evict_everywhere(storage::Position through, Now now) {
  for (const auto& [name, lane] : lanes_) {
    std::vector<Channel::Released> released;
    if (memory_ != nullptr) let_go(*lane, through);
    std::optional<storage::WalCommand> command = lane->channel().evict_through(through, released);
    for (const Channel::Released& entry : released) {
      Consumer* consumer = shared_.consumers.find(entry.owner);
      if (consumer == nullptr) continue;
      shared_.give_back_slot(*consumer);
      shared_.events.timed_out.push_back({entry.owner, entry.id});
    }
    // A floor that rose over absent positions stands in memory alone.
    if (!command && !lane->in_memory() && lane->durable_floor() < through)
      command = storage::WalCommand{.kind = storage::WalCommand::Kind::evict, .position = through};
    if (command) lane->commit(command, {}, now);
    mark_dispatch(*lane);
  }
}

bool Topic::evicted_everywhere(storage::Position through) const {
  return std::all_of(lanes_.begin(), lanes_.end(), [through](const auto& entry) {
    return entry.second->in_memory() || entry.second->durable_floor() >= through;
  });
}

void Topic::store_discard() {
  const storage::Position through = discard_.prefix.through;
  manifest_.next_position = log_->next_position();
  storage::Manifest manifest = manifest_;
  manifest.expired_through = through;
  manifest.ttl_discarded_messages += discard_.prefix.count;
  manifest.unrouted_from = boundary_behind(through);
  begin_script(&Topic::on_discarded);
  store_manifest(storage::encode_manifest(manifest));
  stored_next_position_ = manifest.next_position;
  script_->start();
  discard_.step = Discard::Step::storing;
}

void Topic::on_discarded(void* self, storage::Script& script) {
  Topic& topic = *static_cast<Topic*>(self);
  topic.finished_ = std::move(topic.script_);
  if (script.failed()) {
    topic.mark();
    return topic.shared_.set_fault(script.fault());
  }
  const storage::MessageLog::Prefix prefix = topic.discard_.prefix;
  storage::Manifest& manifest = topic.manifest_;
  manifest.expired_through = prefix.through;
  manifest.ttl_discarded_messages += prefix.count;
  manifest.unrouted_from = topic.boundary_behind(prefix.through);
  if (topic.memory_ != nullptr) topic.memory_->drop_unheld(prefix.through);
  topic.shared_.metrics.ttl_discarded_messages += prefix.count;
  topic.shared_.host.log.log(io::Level::info, "ttl_discard",
                             "topic=" + topic.name_ + " through_position=" + std::to_string(prefix.through) +
                                 " messages=" + std::to_string(prefix.count));
  topic.end_discard(prefix.next_timestamp_ns);
}

void Topic::end_discard(std::int64_t next_timestamp_ns) {
  discard_.step = Discard::Step::idle;
  // What was published since the search is not in its answer.
  if (next_timestamp_ns == kNever) next_timestamp_ns = log_->oldest_timestamp_after(manifest_.expired_through);
  schedule_discard(next_timestamp_ns);
  mark_all_lanes();  // deliveries waited, and an operation may
}

}  // namespace rq::queue
