#include "core/broker/live_feed.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/base/check.h"
#include "core/base/probe.h"

namespace rq::broker {

LiveFeed::LiveFeed(LiveEnv& env, std::uint32_t slot, std::uint64_t number, LiveStart start, Now now)
    : env_(env),
      slot_(slot),
      number_(number),
      stream_(start.stream),
      topic_(std::move(start.topic)),
      accept_(std::move(start.accept)),
      date_(std::move(start.date)),
      epoch_(start.epoch),
      input_(std::move(start.input)) {
  io::bind<&LiveFeed::on_read>(read_, this);
  io::bind<&LiveFeed::on_write>(write_, this);
  remote_ = env_.host.net.info(stream_).address;
  connect_ts_ = now.wall.ns / kSecond;
  write_since_ = last_frame_ = now.mono;
}

void LiveFeed::mark_dirty() {
  if (dirty) return;
  dirty = true;
  env_.dirty.push_back(slot_);
}

// --- what the client sends

void LiveFeed::on_read(io::ReadOp& op) {
  mark_dirty();
  Slice data = std::move(op.data);
  if (phase_ == Phase::closed) return;
  if (op.error) {
    (op.error.code == io::Errc::eof ? input_ended_ : lost_) = true;
    return;
  }
  input_ = std::move(data);
}

// I2; an answer to the request goes first; somebody who only asks and does not read waits.
bool LiveFeed::input_stands() const { return output_.in_message() || !upgraded_ || output_.unsent_controls() > kUnsentBytesMax; }

void LiveFeed::take_input(Now now) {
  if (phase_ == Phase::closing || phase_ == Phase::lingering) input_ = Slice();
  while (!input_.empty() && !input_stands() && phase_ < Phase::closing) {
    const auto used = static_cast<std::uint32_t>(parser_.feed(input_.bytes()));
    input_ = input_.sub(used, input_.size() - used);
    if (std::exchange(frames_seen_, parser_.frames()) != parser_.frames()) last_frame_ = now.mono;
    if (parser_.failure() != 0) return close_with(parser_.failure(), "", now);
    const ws::Incoming incoming = parser_.take();
    if (incoming.kind != ws::Incoming::Kind::none) take(incoming, now);
  }
}

void LiveFeed::take(const ws::Incoming& incoming, Now now) {
  switch (incoming.kind) {
    case ws::Incoming::Kind::ping:
      ws::put_frame(output_.controls(), ws::Opcode::pong, incoming.payload);
      pinging_ = true;
      return;
    case ws::Incoming::Kind::close:
      return close_with(incoming.close_code, "", now);
    case ws::Incoming::Kind::text:
    case ws::Incoming::Kind::binary:
      if (phase_ == Phase::waiting) return take_secret(incoming, now);
      return end(live_end::kControl, now);
    case ws::Incoming::Kind::pong:
    case ws::Incoming::Kind::none:
      return;
  }
}

void LiveFeed::take_secret(const ws::Incoming& incoming, Now now) {
  std::optional<std::string> secret;
  if (incoming.kind == ws::Incoming::Kind::text) secret = auth_secret(incoming.payload);
  if (!secret) return auth_failed(live_end::kBadAuth, now);
  ask(std::move(*secret), now);
}

// --- the turn

void LiveFeed::on_write(io::Op& op) {
  mark_dirty();
  if (phase_ == Phase::closed) return;
  if (op.error) {
    lost_ = true;
    return;
  }
  message_done_ |= output_.advance(op.value);
  if (!output_.in_controls() && output_.controls().empty()) pinging_ = false;
}

void LiveFeed::resume(Now now) {
  if (phase_ == Phase::closed) return;
  if (std::exchange(message_done_, false)) message_written(now);
  const bool authenticating = phase_ == Phase::waiting || phase_ == Phase::asking;
  if (!lost_) take_input(now);
  if (phase_ == Phase::closed || !(lost_ || (input_ended_ && input_.empty() && phase_ != Phase::closing))) return;
  if (authenticating) {  // a connection error while its secret is awaited or looked at
    ++env_.counters.websocket_auth_failures;
    ++env_.counters.auth_failures;
  }
  close();
}

void LiveFeed::flush(Now now) {
  if (phase_ == Phase::closed) return;
  if (message_ && message_->expires <= now.wall) {
    message_expired(now);
    if (phase_ == Phase::closed) return;
  }
  if (phase_ == Phase::closing && output_.empty()) {
    phase_ = Phase::lingering;
    close_deadline_ = now.mono + kLingerNs;
    env_.host.net.shutdown_write(stream_);
    if (input_ended_) return close();
  }
  if (output_.submit(env_.host.net, stream_, write_)) write_since_ = now.mono;
  const bool stands = !input_.empty() || (upgraded_ && input_stands());
  if (!read_.in_flight && !input_ended_ && !stands) env_.host.net.read_some(read_, stream_, env_.pool);
}

Instant LiveFeed::write_deadline() const {
  if (output_.in_controls()) return write_since_ + (pinging_ ? write_limit_ns() : kControlNs);
  return Instant::never();
}

Instant LiveFeed::next_deadline() const {
  switch (phase_) {
    case Phase::asking:
      return write_deadline();
    case Phase::waiting:
      return std::min(write_deadline(), auth_deadline_);
    case Phase::subscribing:
      return write_deadline();
    case Phase::live: {
      Instant earliest = write_deadline();
      if (message_) earliest = std::min({earliest, message_->expires_mono, message_->since + write_limit_ns()});
      if (!output_.in_message()) earliest = std::min(earliest, next_tick_);
      if (lease_ && !asking_) earliest = std::min(earliest, lease_.expires());
      return earliest;
    }
    case Phase::closing:
    case Phase::lingering:
      return close_deadline_;
    case Phase::closed:
      break;
  }
  return Instant::never();
}

void LiveFeed::expire(Now now) {
  mark_dirty();
  const auto due = [&](Instant deadline) { return deadline <= now.mono; };
  if (phase_ == Phase::closed || message_done_) return;
  if (phase_ >= Phase::closing) {
    if (due(close_deadline_)) close();
    return;
  }
  const bool late_message = message_ && due(message_->since + write_limit_ns());
  if (late_message || due(write_deadline())) {
    if (late_message || pinging_) {
      RQ_SOMETIMES(true, "live feed: a slow client");
      ++env_.counters.websocket_slow_disconnects;
    }
    return close();
  }
  if (message_ && due(message_->expires_mono)) return message_expired(now);
  if (phase_ == Phase::waiting && due(auth_deadline_)) return auth_failed(live_end::kAuthTimeout, now);
  if (phase_ != Phase::live) return;
  if (auth_due(now)) {
    env_.engine.set_ready(consumer_, 0);
    ask(std::move(secret_), now);
  }
  if (!output_.in_message() && due(next_tick_)) tick(now);
}

void LiveFeed::tick(Now now) {
  // After a standstill of this process the peer is asked before it is judged: what it has said was not read yet.
  const bool late = now.mono - next_tick_ >= kStandstillNs;
  next_tick_ = next_tick_ + (1 + (now.mono - next_tick_) / interval_ns()) * interval_ns();
  RQ_SOMETIMES(late && now.mono - last_frame_ >= 2 * interval_ns(), "live feed: a standstill excused");
  if (!late && now.mono - last_frame_ >= 2 * interval_ns()) {
    ++env_.counters.websocket_slow_disconnects;
    return end(live_end::kHeartbeat, now);
  }
  ws::put_frame(output_.controls(), ws::Opcode::ping, "");
  pinging_ = true;
}

// --- the end

void LiveFeed::gates_changed(Now now) {
  if (phase_ >= Phase::closing) return;
  if (env_.gates.stopping) return end(live_end::kShutdown, now);
  if (env_.gates.draining || env_.gates.frozen) end(live_end::kDraining, now);
}

void LiveFeed::say(std::string_view control) {
  mark_dirty();
  ws::put_frame(output_.controls(), ws::Opcode::text, control);
}

void LiveFeed::end(const LiveEnd& why, Now now) {
  mark_dirty();
  if (phase_ >= Phase::closing) return;
  if (output_.in_message()) return close();
  if (!upgraded_) return refuse(503, why, now);
  say(error_control(why));
  close_with(why.close, why.code, now);
}

void LiveFeed::close_with(std::uint16_t code, std::string_view reason, Now now) {
  ws::put_close(output_.controls(), code, reason);
  begin_closing(now);
}

// Nothing is delivered any more; the last frames have a second.
void LiveFeed::begin_closing(Now now) {
  mark_dirty();
  phase_ = Phase::closing;
  close_deadline_ = now.mono + kControlNs;
  give_message_back();
  if (consumer_ != queue::ConsumerId::none) env_.engine.unsubscribe(std::exchange(consumer_, queue::ConsumerId::none), now);
  if (std::exchange(asking_, false)) env_.auth.cancel(kAuthSlots | slot_);
  lease_.reset();
  secret_.clear();
}

void LiveFeed::cut() { close(); }

void LiveFeed::close() {
  if (phase_ == Phase::closed) return;
  mark_dirty();
  if (phase_ < Phase::closing) begin_closing(env_.now);
  phase_ = Phase::closed;
  input_ = Slice();
  env_.host.net.close(stream_);
}

ClientRow LiveFeed::row() const {
  ClientRow row;
  row.consumer = consumer_;
  row.client_id = fmt::format("ws-{}", number_);
  row.hostname = "websocket";
  row.user_agent = kLiveProtocol;
  row.remote_address = remote_;
  row.state = 3;
  row.ready_count = message_ || asking_ ? 0 : 1;
  row.in_flight_count = env_.engine.in_flight_of(consumer_);
  row.message_count = row.finish_count = messages_sent_;
  row.connect_ts = connect_ts_;
  row.authed = static_cast<bool>(lease_);
  if (lease_) {
    row.auth_identity = lease_->identity();
    row.auth_identity_url = lease_->identity_url();
  }
  return row;
}

}  // namespace rq::broker
