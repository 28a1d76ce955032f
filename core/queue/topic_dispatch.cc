// Delivery: handing messages of a Channel to its consumers (page 30 sections 3.3 to 3.5).
#include <algorithm>
#include <utility>

#include "core/base/probe.h"
#include "core/queue/dead_letters.h"
#include "core/queue/fetch.h"
#include "core/queue/topic.h"

namespace rq::queue {
namespace {
constexpr std::size_t kBatchMessages = 64;  // page 30 section 3.4
constexpr std::int64_t kWindowSilenceNs = 60 * kSecond;
}  // namespace

void Topic::mark_dispatch(ChannelLane& lane) {
  if (!lane.dispatch_marked) {
    lane.dispatch_marked = true;
    dispatch_.push_back(&lane);
  }
  mark();
}

void Topic::mark_all_lanes() {
  for (const auto& [name, lane] : lanes_) mark_dispatch(*lane);
  mark();  // also without one: an operation or a pass may wait for the same thing
}

Consumer* Topic::next_ready(ChannelLane& lane) {
  for (std::size_t i = 0; i < lane.consumers.size(); ++i) {
    if (lane.next_consumer >= lane.consumers.size()) lane.next_consumer = 0;
    Consumer* consumer = shared_.consumers.find(lane.consumers[lane.next_consumer++]);
    RQ_CHECK(consumer != nullptr);
    if (consumer->ready()) return consumer;
  }
  return nullptr;
}

void Topic::dispatch(ChannelLane& lane, Now now) {
  const Code access = shared_.access.check(name_, lane.channel().name(), now.wall);
  const bool settled = !exclusive() && !discard_due(now);  // otherwise its end comes back here
  if (!settled && !exclusive()) want_discard();
  if (phase_ == Phase::live && access != Code::ok && !lane.removing) {
    refuse_consumers(lane, access);
  } else if (settled && phase_ == Phase::live && !paused() && !lane.removing && !lane.channel().paused()) {
    while (Consumer* consumer = next_ready(lane))
      if (!fill(lane, *consumer, now)) break;
  }
  if (memory_ != nullptr) let_go_of_finished(lane);
  note_window(lane, now);
  lane.reschedule(now);
}

// D-75: one line when a Channel stops at its ack window, and not again within a minute.
void Topic::note_window(ChannelLane& lane, Now now) {
  const bool full = phase_ == Phase::live && !lane.removing && lane.channel().blocked_by_ack_window(*log_);
  if (!std::exchange(lane.window_full, full) && full &&
      (lane.window_said == Instant::never() || now.mono >= lane.window_said + kWindowSilenceNs)) {
    lane.window_said = now.mono;
    shared_.host.log.log(io::Level::warn, "blocked_by_ack_window",
                         "topic=" + name_ + " channel=" + lane.channel().name() +
                             " oldest_unfinished=" + std::to_string(lane.channel().ack_floor() + 1));
  }
}

struct Topic::Batch {
  std::uint64_t bytes_max = 0;
  std::uint64_t bytes = 0, messages = 0;
  std::unique_ptr<Fetch> fetch;  // of what is not in the cache, and what comes after it
};

// Reserves up to a batch for one consumer and hands it over, or starts reading it. False when the Channel has nothing more to
// give now.
bool Topic::fill(ChannelLane& lane, Consumer& consumer, Now now) {
  const std::size_t want = std::min<std::uint64_t>(consumer.rdy - consumer.outstanding, kBatchMessages);
  Batch batch;
  batch.bytes_max =
      std::min(shared_.options.connection_delivery_inflight_bytes, shared_.options.node_delivery_inflight_bytes / 2);
  Taken taken = Taken::one;
  for (std::size_t i = 0; i < want && taken == Taken::one; ++i) taken = take_one(lane, consumer, batch, now);
  note_fetch(batch.messages, batch.bytes, batch.fetch != nullptr);
  if (batch.fetch) {
    consumer.fetching = true;
    fetches_.push_back(std::move(batch.fetch));
    fetches_.back()->start();
  }
  return taken != Taken::nothing;
}

Topic::Taken Topic::take_one(ChannelLane& lane, Consumer& consumer, Batch& batch, Now now) {
  if (!shared_.slot_left() || !shared_.slot_turns.may_take(lane)) {
    RQ_SOMETIMES(!shared_.slot_left(), "delivery: no message slot is free");
    shared_.slot_turns.wait(lane);
    return Taken::nothing;
  }
  Reservation reservation;
  const std::int64_t lease_ns = consumer.lease_ns() / (io::planted(shared_.host, "half_a_lease") ? 2 : 1);
  if (lane.channel().reserve(*log_, now, consumer.id, lease_ns, reservation) != Reserve::reserved) return Taken::nothing;
  lane.note_changed();
  const MessageMeta& message = reservation.message;
  const auto put_back = [&] { lane.channel().cancel(message.id, reservation.token); };
  if (expiring() && !limit_lease(lane, message, now)) {  // not durable yet, so that no pass could take it
    put_back();
    return Taken::nothing;
  }
  Slice body = log_->cached_body(message.position);
  if (batch.bytes > 0 && batch.bytes + message.body_bytes > batch.bytes_max) {  // the first one is always taken
    put_back();
    return Taken::batch_full;
  }
  if (body.empty() && !batch.fetch && (!shared_.read_left() || !shared_.read_turns.may_take(lane))) {
    put_back();
    shared_.read_turns.wait(lane);
    return Taken::nothing;
  }
  batch.bytes += message.body_bytes;
  ++batch.messages;
  ++consumer.outstanding;
  ++shared_.slots_in_use;
  if (!moved_away(lane, consumer, reservation, now) && !sampled_out(lane, consumer, reservation, now))
    pass_on(lane, consumer, batch, reservation, std::move(body));
  return Taken::one;
}

// Now, or with the batch.
void Topic::pass_on(ChannelLane& lane, Consumer& consumer, Batch& batch, const Reservation& reservation, Slice body) {
  const std::uint64_t held = 2 * std::uint64_t{reservation.message.body_bytes};
  if (!body.empty()) ++shared_.metrics.payload_cache_hits;
  if (!batch.fetch && !body.empty() && shared_.holds.take(held)) {
    consumer.held_bytes += held;
    return hand_over(consumer.id, reservation, std::move(body));
  }
  if (!batch.fetch) batch.fetch = std::make_unique<Fetch>(shared_, *this, lane, consumer.id);
  batch.fetch->add(reservation, std::move(body));
}

void Topic::note_fetch(std::uint64_t messages, std::uint64_t bytes, bool reads) {
  EngineMetrics& metrics = shared_.metrics;
  ++metrics.fetch_requests;
  if (messages == 0) {
    ++metrics.fetch_empty;
    return;
  }
  ++metrics.fetch_batches;
  metrics.fetch_messages += messages;
  metrics.fetch_bytes += bytes;
  if (!reads) metrics.payload_read_us.add_us(0);  // everything was in the cache
}

// A message that has been tried too often or is too old goes to the dead letters instead.
bool Topic::moved_away(ChannelLane& lane, Consumer& consumer, const Reservation& reservation, Now now) {
  const DeadLetterCause cause = shared_.dead_letters->cause(*this, reservation, now);
  if (cause == DeadLetterCause::none) return false;
  RQ_SOMETIMES(cause == DeadLetterCause::attempts, "dead letters: attempts are used up");
  RQ_SOMETIMES(cause == DeadLetterCause::age, "dead letters: a message is too old");
  shared_.dead_letters->want(lane, consumer.id, reservation, cause);
  return true;
}

bool Topic::sampled_out(ChannelLane& lane, Consumer& consumer, const Reservation& reservation, Now now) {
  if (consumer.options.sample_rate == 0) return false;
  const std::uint32_t turn = consumer.sample_turn;
  consumer.sample_turn = (turn + 1) % 100;
  if (turn < consumer.options.sample_rate) return false;
  RQ_SOMETIMES(true, "delivery: sampling finishes a message unseen");
  std::optional<storage::WalCommand> command;
  const Held held = lane.channel().finish(consumer.id, reservation.message.id, command);
  RQ_CHECK(held == Held::ok);
  lane.commit(command, {.consumer = consumer.id, .id = reservation.message.id, .silent = true}, now);
  return true;
}

void Topic::hand_over(ConsumerId consumer, const Reservation& reservation, Slice body) {
  const MessageMeta& message = reservation.message;
  shared_.events.deliveries.push_back({consumer, message.id, reservation.token, message.timestamp_ns, reservation.attempts,
                                       std::move(body), WallTime{expiry_of(message.timestamp_ns)}});
}

// The lease ends with the message at the latest. False: it has expired.
bool Topic::limit_lease(ChannelLane& lane, const MessageMeta& message, Now now) {
  if (expired(message.timestamp_ns, now)) return false;
  lane.channel().cap_lease(message.id, lease_limit(message.timestamp_ns, now));
  return true;
}

// One of the batch expired while it was read: none is handed over, as if nothing had been reserved (page 30 section 9.3).
bool Topic::cancel_expired(Fetch& fetch, Consumer& consumer, Now now) {
  const auto late = [&](const Fetch::Item& item) { return expired(item.reservation.message.timestamp_ns, now); };
  if (std::none_of(fetch.items.begin(), fetch.items.end(), late)) return false;
  for (const Fetch::Item& item : fetch.items)
    if (fetch.lane->channel().cancel(item.reservation.message.id, item.reservation.token)) shared_.give_back_slot(consumer);
  want_discard();
  mark_dispatch(*fetch.lane);
  return true;
}

// The bodies are there, or the storage has failed: then nothing is handed over any more.
void Topic::fetch_done(Fetch& fetch, Now now) {
  Consumer* consumer = shared_.consumers.find(fetch.consumer);
  if (consumer != nullptr) consumer->fetching = false;
  if (shared_.fault || fetch.lane == nullptr || consumer == nullptr) return;
  ChannelLane& lane = *fetch.lane;
  if (shared_.access.check(name_, lane.channel().name(), now.wall) != Code::ok) {
    cancel_fetch(fetch, lane, *consumer);
    return mark_dispatch(lane);
  }
  if (expiring() && cancel_expired(fetch, *consumer, now)) return;
  std::uint64_t not_handed = 0;
  for (Fetch::Item& item : fetch.items) {
    const Reservation& reservation = item.reservation;
    // The lease starts at the hand-over. A message that was emptied or timed out meanwhile is dropped here alone (O-06).
    const Held held = lane.channel().touch(consumer->id, reservation.message.id, now, consumer->lease_ns(),
                                           shared_.options.max_message_timeout_ms * kMillisecond);
    if (held != Held::ok) {
      RQ_SOMETIMES(true, "delivery: a message vanished while its body was read");
      not_handed += 2 * std::uint64_t{reservation.message.body_bytes};
      continue;
    }
    if (moved_away(lane, *consumer, reservation, now)) {
      not_handed += 2 * std::uint64_t{reservation.message.body_bytes};
      continue;
    }
    if (expiring()) limit_lease(lane, reservation.message, now);
    hand_over(consumer->id, reservation, std::move(item.body));
  }
  consumer->held_bytes += fetch.pass_on();
  shared_.give_back_bytes(*consumer, not_handed);
  mark_dispatch(lane);
}

std::uint64_t Topic::fetch_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& fetch : fetches_) bytes += fetch->held_bytes();
  return bytes;
}

void Topic::expire(ChannelLane& lane, Now now) {
  if (discard_due(now)) {  // first, so that a lease which ends with its message is no timeout
    discard_.wanted = true;
    pump_discard(now);
  }
  std::vector<Channel::Released> released;
  std::optional<storage::WalCommand> command;
  lane.channel().expire(now, released, command);
  if (!released.empty()) lane.note_changed();
  for (const Channel::Released& entry : released) {
    Consumer* consumer = shared_.consumers.find(entry.owner);
    if (consumer == nullptr) continue;
    RQ_SOMETIMES(true, "delivery: a message times out");
    shared_.give_back_slot(*consumer);
    ++shared_.metrics.timed_out_messages;
    shared_.events.timed_out.push_back({entry.owner, entry.id});
  }
  if (command) lane.commit(command, {}, now);
  mark_dispatch(lane);
}

void Topic::detach(Consumer& consumer) {
  ChannelLane& lane = *consumer.lane;
  for (const auto& fetch : fetches_) {
    if (fetch->consumer != consumer.id || fetch->lane == nullptr) continue;
    for (const Fetch::Item& item : fetch->items) lane.channel().cancel(item.reservation.message.id, item.reservation.token);
    fetch->consumer = ConsumerId::none;
    fetch->give_up();
  }
  shared_.dead_letters->forget(consumer.id);
  shared_.give_back_bytes(consumer, consumer.held_bytes);
  lane.channel().release_all(consumer.id);
  lane.note_changed();
  shared_.slots_in_use -= consumer.outstanding;
  std::erase(lane.consumers, consumer.id);
  mark_dispatch(lane);
  if (lane.ephemeral() && lane.consumers.empty() && !lane.removing) {
    RQ_SOMETIMES(true, "channel: the last consumer leaves an ephemeral Channel");
    remove_lane(lane.channel().name(), {});
    shared_.meta->bump_revision();
  }
}

void Topic::drop_fetches(ChannelLane& lane) {
  for (const auto& fetch : fetches_)
    if (fetch->lane == &lane) {
      fetch->lane = nullptr;
      fetch->give_up();
    }
}

}  // namespace rq::queue
