#include "core/queue/channel.h"

#include <algorithm>
#include <utility>

#include "core/base/check.h"
#include "core/base/probe.h"
#include "core/queue/channel_state.h"

namespace rq::queue {
namespace {

using Kind = storage::WalCommand::Kind;

WallTime wall_of_ms(std::int64_t ms) {
  std::int64_t ns = 0;
  if (__builtin_mul_overflow(ms, kMillisecond, &ns))
    ns = ms < 0 ? std::numeric_limits<std::int64_t>::min() : std::numeric_limits<std::int64_t>::max();
  return {ns};
}

}  // namespace

// --- steps

void Channel::State::advance() {
  while (true) {
    if (acks.contains(floor + 1)) {
      floor = acks.next_clear(floor + 1) - 1;
      acks.erase_through(floor);
    } else if (!gaps.empty() && gaps.ranges().front().first <= floor + 1) {
      floor = std::max(floor, gaps.ranges().front().last);
      gaps.erase_through(floor);
    } else {
      break;
    }
  }
  cursor = std::max(cursor, floor + 1);
}

void Channel::State::acknowledge(Position position) {
  if (position <= floor) return;
  if (reports_finished) finished.push_back(position);
  if (position != floor + 1) {
    acks.insert(position);
    return;
  }
  floor = position;
  advance();
}

void Channel::State::add_gap(Position first, Position last) {
  gaps.add(first, last);
  advance();
}

void Channel::State::finish_through(Position through, std::vector<Released>& released) {
  while (Outstanding::Entry* entry = outstanding.lowest()) {
    if (entry->position() > through) break;
    if (entry->state == Outstanding::State::in_flight) released.push_back({entry->owner->id, entry->meta.id});
    outstanding.erase(*entry);
  }
  floor = std::max(floor, through);
  acks.erase_through(floor);
  gaps.erase_through(floor);
  deferred.erase_through(floor);
  advance();
}

// --- life

Channel::Channel(storage::ChannelImage image, bool ephemeral, const ChannelSettings& settings, Token& tokens)
    : state_(std::make_unique<State>(settings, tokens)) {
  State& s = *state_;
  s.name = std::move(image.name);
  s.ephemeral = ephemeral;
  s.paused = image.paused;
  s.barrier = image.barrier;
  // A stored floor is never below its barrier: this is a new Channel, which counts messages from its start.
  s.origin = image.ack_floor < image.barrier ? image.barrier : image.message_count_origin;
  s.floor = std::max(image.ack_floor, image.barrier);
  s.cursor = s.floor + 1;
  s.requeue_count = image.requeue_count;
  s.timeout_count = image.timeout_count;
  s.stored_timeout_count = image.timeout_count;
  for (Position position : image.acknowledged)
    if (position > s.floor) s.acks.insert(position);
  s.advance();

  // A recorded attempt or target makes an unfinished position one to offer again (page 30 section 3.1).
  for (const auto& [position, attempts] : image.attempts)
    if (!s.is_finished(position)) s.outstanding.add(position).attempts = attempts;
  for (const auto& [position, target_ms] : image.requeued_until_ms) {
    if (s.is_finished(position)) continue;
    Outstanding::Entry* entry = s.outstanding.at(position);
    if (entry == nullptr) entry = &s.outstanding.add(position);
    entry->target_ms = target_ms;
    s.outstanding.wait(*entry, {wall_of_ms(target_ms), Instant::never()});
  }
}

Channel::~Channel() = default;

const std::string& Channel::name() const { return state_->name; }
bool Channel::ephemeral() const { return state_->ephemeral; }
bool Channel::paused() const { return state_->paused; }

// --- reservations that end without a command

bool Channel::cancel(MessageId id, Token token) {
  Outstanding::Entry* entry = state_->outstanding.in_flight_by_id(id);
  if (entry == nullptr || entry->token != token) return false;
  if (!entry->attempts_capped) --entry->attempts;
  state_->outstanding.offer(*entry);
  return true;
}

std::size_t Channel::release_all(ConsumerId owner) {
  std::size_t released = 0;
  for (; Outstanding::Entry* entry = state_->outstanding.first_held_by(owner); ++released) state_->outstanding.offer(*entry);
  RQ_SOMETIMES(released > 0, "channel: a consumer left with messages in flight");
  return released;
}

std::uint64_t Channel::held_by(ConsumerId owner) const { return state_->outstanding.held_by(owner); }

// --- consumer commands

Held Channel::finish(ConsumerId owner, MessageId id, std::optional<storage::WalCommand>& out, MessageMeta* meta) {
  out.reset();
  State& s = *state_;
  Outstanding::Entry* entry = s.outstanding.in_flight_by_id(id);
  if (entry == nullptr) return Held::not_in_flight;
  if (entry->owner->id != owner) return Held::not_owner;
  if (meta != nullptr) *meta = entry->meta;
  const Position position = entry->position();
  if (s.records()) out = storage::WalCommand{.kind = Kind::finish, .position = position, .id = id};
  s.outstanding.erase(*entry);
  s.acknowledge(position);
  return Held::ok;
}

Held Channel::requeue(ConsumerId owner, MessageId id, std::int64_t delay_ms, Now now, std::optional<storage::WalCommand>& out) {
  out.reset();
  State& s = *state_;
  Outstanding::Entry* entry = s.outstanding.in_flight_by_id(id);
  if (entry == nullptr) return Held::not_in_flight;
  if (entry->owner->id != owner) return Held::not_owner;
  delay_ms = std::max<std::int64_t>(delay_ms, 0);
  // The stored target has milliseconds: rounded up, so that no message comes before its delay has passed.
  const std::int64_t from_ms = now.wall.ms() + (delay_ms > 0 && now.wall.ns % kMillisecond > 0 ? 1 : 0);
  std::int64_t target_ms = 0;
  if (__builtin_add_overflow(from_ms, delay_ms, &target_ms)) target_ms = std::numeric_limits<std::int64_t>::max();
  ++s.requeue_count;
  entry->target_ms = target_ms;
  if (s.records()) {
    out = storage::WalCommand{.kind = s.counted() ? Kind::requeue_counted : Kind::requeue,
                              .position = entry->position(),
                              .id = id,
                              .available_at_ms = target_ms,
                              .attempts = entry->attempts};
    if (s.counted()) out->count = s.requeue_count;
  }
  if (delay_ms == 0) {
    s.outstanding.offer(*entry);
  } else {
    std::int64_t delay_ns = 0;
    if (__builtin_mul_overflow(delay_ms, kMillisecond, &delay_ns)) delay_ns = std::numeric_limits<std::int64_t>::max();
    s.outstanding.wait(*entry, {wall_of_ms(target_ms), now.mono + delay_ns});
  }
  return Held::ok;
}

Held Channel::touch(ConsumerId owner, MessageId id, Now now, std::int64_t timeout_ns, std::int64_t max_timeout_ns) {
  Outstanding::Entry* entry = state_->outstanding.in_flight_by_id(id);
  if (entry == nullptr) return Held::not_in_flight;
  if (entry->owner->id != owner) return Held::not_owner;
  const Instant wanted = now.mono + timeout_ns;
  const Instant limit = entry->delivered + max_timeout_ns;
  // What has reached the limit gets a lane of its own: those deadlines follow the deliveries, not the touches.
  if (wanted <= limit)
    state_->outstanding.renew(*entry, wanted, timeout_ns);
  else
    state_->outstanding.renew(*entry, limit, ~max_timeout_ns);
  RQ_SOMETIMES(wanted > limit, "channel: a touch was capped by the maximum message timeout");
  return Held::ok;
}

void Channel::cap_lease(MessageId id, Instant limit) {
  constexpr std::int64_t kCappedLane = -1;  // deadlines that follow the timestamps of messages
  Outstanding::Entry* entry = state_->outstanding.in_flight_by_id(id);
  if (entry != nullptr && limit < entry->deadline()) state_->outstanding.renew(*entry, limit, kCappedLane);
}

std::optional<std::int64_t> Channel::timestamp_in_flight(MessageId id) const {
  const Outstanding::Entry* entry = state_->outstanding.in_flight_by_id(id);
  if (entry == nullptr) return std::nullopt;
  return entry->meta.timestamp_ns;
}

bool Channel::take_over(MessageId id, Token token) {
  Outstanding::Entry* entry = state_->outstanding.in_flight_by_id(id);
  if (entry == nullptr || entry->token != token) return false;
  state_->outstanding.hand_to(*entry, ConsumerId::broker);
  return true;
}

bool Channel::release(MessageId id, Token token) {
  Outstanding::Entry* entry = state_->outstanding.in_flight_by_id(id);
  if (entry == nullptr || entry->token != token) return false;
  state_->outstanding.offer(*entry);
  return true;
}

bool Channel::finish_position(Position position, MessageId id, std::optional<storage::WalCommand>& out) {
  out.reset();
  State& s = *state_;
  if (s.is_finished(position)) return false;
  if (Outstanding::Entry* entry = s.outstanding.at(position)) s.outstanding.erase(*entry);
  if (s.records()) out = storage::WalCommand{.kind = Kind::finish, .position = position, .id = id};
  s.acknowledge(position);
  return true;
}

// --- time

void Channel::expire(Now now, std::vector<Released>& released, std::optional<storage::WalCommand>& out) {
  out.reset();
  State& s = *state_;
  const std::uint64_t before = s.timeout_count;
  while (Outstanding::Entry* entry = s.outstanding.earliest_in_flight()) {
    if (entry->deadline() > now.mono) break;
    ++s.timeout_count;
    released.push_back({entry->owner->id, entry->meta.id});
    s.outstanding.offer(*entry);
  }
  if (s.timeout_count == before) return;
  RQ_SOMETIMES(true, "channel: a message timed out");
  if (s.records() && s.counted()) out = storage::WalCommand{.kind = Kind::timeout, .count = s.timeout_count};
}

Instant Channel::next_deadline(Now now) const {
  const Instant at = state_->outstanding.earliest_deadline();
  if (state_->paused) return at;
  return std::min({at, state_->outstanding.next_wake(now), state_->deferred.next_deadline(now)});
}

// --- administration

std::optional<storage::WalCommand> Channel::set_paused(bool paused) {
  if (state_->paused == paused) return std::nullopt;
  state_->paused = paused;
  if (!state_->records()) return std::nullopt;
  return storage::WalCommand{.kind = Kind::pause, .paused = paused};
}

std::optional<storage::WalCommand> Channel::empty_through(Position through, std::vector<Released>& released) {
  if (through <= state_->floor) return std::nullopt;
  state_->finish_through(through, released);
  if (!state_->records()) return std::nullopt;
  return storage::WalCommand{.kind = Kind::empty, .position = through};
}

std::optional<storage::WalCommand> Channel::evict_through(Position through, std::vector<Released>& released) {
  std::optional<storage::WalCommand> command = empty_through(through, released);
  if (command) command->kind = Kind::evict;
  return command;
}

void Channel::drop_absent(const MessageView& view) {
  State& s = *state_;
  std::vector<Released> none;
  while (true) {
    const Position next = view.next_present(s.floor + 1);
    if (next <= s.floor + 1) return;
    Position last = next - 1;
    // A message in flight keeps its position until its consumer or its timeout settles it.
    if (const std::optional<Position> held = lowest_in_flight()) last = std::min(last, *held - 1);
    if (last <= s.floor) return;
    s.finish_through(last, none);
  }
}

void Channel::drop(Position first, Position last) { state_->add_gap(first, last); }
void Channel::report_finished() { state_->reports_finished = true; }
std::vector<Position> Channel::take_finished() { return std::exchange(state_->finished, {}); }

}  // namespace rq::queue
