#include "core/broker/session.h"

#include "core/base/check.h"
#include "core/base/probe.h"
#include "core/broker/peer_address.h"

namespace rq::broker {

Session::Session(SessionEnv& env, std::uint32_t slot, io::StreamId stream, Now now)
    : env_(env), slot_(slot), stream_(stream), settings_(nsq::defaults(env.identify)), output_(env.spare) {
  io::bind<&Session::on_read>(read_, this);
  io::bind<&Session::on_write>(write_, this);
  io::bind<&Session::on_tls>(tls_op_, this);
  remote_ = env_.host.net.info(stream_).address;
  client_id_ = hostname_ = without_port(remote_);
  connect_ts_ = now.wall.ns / kSecond;
  connected_ = last_bytes_ = last_done_ = stage_since_ = write_since_ = now.mono;
  next_tick_ = now.mono + settings_.heartbeat_ms * kMillisecond;
}

void Session::mark_dirty() {
  if (dirty) return;
  dirty = true;
  env_.dirty.push_back(slot_);
}

// --- what the network brought

void Session::on_read(io::ReadOp& op) {
  mark_dirty();
  Slice data = std::move(op.data);
  if (phase_ == Phase::closed) return;
  if (op.error.code == io::Errc::eof) {
    input_ended_ = true;
    if (phase_ == Phase::lingering) close();
    return;
  }
  if (op.error) {
    RQ_SOMETIMES(consumer_ != queue::ConsumerId::none, "broker.consumer_connection_reset");
    close();
    return;
  }
  bytes_arrived_ = true;
  if (phase_ == Phase::magic || (phase_ == Phase::commands && taking_)) take_received(std::move(data));
}

void Session::on_write(io::Op& op) {
  mark_dirty();
  if (phase_ == Phase::closed) return;
  if (op.error) {
    close();
    return;
  }
  const bool answers = output_.batch_has_answers();
  const Output::Progress progress = output_.advance(transport_.compressed() ? transport_.written(op.value) : op.value);
  if (progress.body_bytes > 0) env_.engine.written(consumer_, progress.body_bytes);
  write_moved_ |= progress.piece;
  answers_written_ |= progress.batch && answers;
  update_writable();
}

// --- taking input

void Session::resume(Now now) {
  if (bytes_arrived_) last_bytes_ = now.mono;
  if (write_moved_) write_since_ = now.mono;
  if (answers_written_) last_done_ = now.mono;
  bytes_arrived_ = write_moved_ = answers_written_ = false;
  if (phase_ == Phase::magic) take_magic(now);
  if (phase_ == Phase::commands && taking_) take_commands(now);
}

void Session::take_magic(Now now) {
  if (!parser_.take_prefix(magic_, nsq::kMagic.size())) {
    if (input_ended_) close();
    return;
  }
  phase_ = Phase::commands;
  stage_since_ = now.mono;
  if (magic_ != nsq::kMagic) fail("E_BAD_PROTOCOL", now);
}

void Session::take_commands(Now now) {
  using Step = nsq::CommandParser::Step;
  while (taking_) {
    if (input_stands()) {
      stage_fresh_ = true;
      return;
    }
    if (held_ != Held::no) {
      const Held held = std::exchange(held_, Held::no);
      held == Held::line ? run_line(now) : run_size(now);
      continue;
    }
    switch (parser_.next()) {
      case Step::line:
        run_line(now);
        break;
      case Step::size:
        run_size(now);
        break;
      case Step::room:
        run_control_room(now);
        break;
      case Step::body:
        run_body(now);
        break;
      case Step::skipped:
        refuse(std::exchange(refused_, {}), now);
        break;
      case Step::line_too_long:
        fail("E_INVALID command line too long", now);
        break;
      case Step::need_more:
        if (decode_more()) break;
        if (decode_later_) return;
        if (parser_.awaiting_body() && kind_ == Kind::mpub) check_partial_mpub(now);
        if (taking_ && input_ended_) end_of_input(now);
        note_stage(now);
        return;
    }
  }
}

bool Session::input_stands() const {
  if (subscribing_ || auth_wait_ != AuthWait::none || upgrade_ != Upgrade::none || answers_owed() >= kAnswersMax) return true;
  if (output_.unsent_answer_bytes() > kAnswerBacklogBytes) return true;
  if (held_ == Held::line) return answers_owed() > 0;
  return held_ == Held::size && !budget_allows(body_charge());
}

void Session::complete(Now now) {
  kind_ = Kind::none;
  first_done_ = true;
  stage_fresh_ = true;
  last_done_ = now.mono;
}

// The peer has finished writing and nothing complete is left: what is owed is still answered, then the socket is closed.
void Session::end_of_input(Now now) {
  if (parser_.awaiting_size() || parser_.awaiting_body()) fail(truncated_body(), now);
  taking_ = false;
  input_taken_ = true;
  parser_.clear();
  release_body();
  leave_channel();
}

// --- deadlines

Session::Stage Session::stage_now() const {
  if (!parser_.inside_command()) return Stage::first_byte;
  if (parser_.awaited().empty()) return Stage::line;
  return kind_ == Kind::identify || kind_ == Kind::auth ? Stage::control_body : Stage::publish_body;
}

void Session::note_stage(Now now) {
  const Stage stage = stage_now();
  // A later command has one time limit from its first byte on; the stages of the first command have one each.
  const bool goes_on = first_done_ && stage_ == Stage::line && stage != Stage::first_byte;
  if (stage_fresh_ || (stage != stage_ && !goes_on)) stage_since_ = now.mono;
  stage_fresh_ = false;
  stage_ = stage;
}

std::int64_t Session::progress_limit_ns() const {
  if (!heartbeats_on()) return 60 * kSecond;
  return std::max(2 * settings_.heartbeat_ms * kMillisecond, 5 * kSecond);
}

std::int64_t Session::message_limit_ns() const {
  if (!heartbeats_on()) return 60 * kSecond;
  return std::max(2 * settings_.heartbeat_ms * kMillisecond, kSecond);
}

Instant Session::command_deadline() const {
  if (!taking_ || input_ended_ || input_stands()) return Instant::never();
  const auto handshake = static_cast<std::int64_t>(env_.config.limits.client_handshake_timeout_ms) * kMillisecond;
  const auto command = static_cast<std::int64_t>(env_.config.limits.tcp_command_timeout_ms) * kMillisecond;
  switch (stage_) {
    case Stage::first_byte:
      return first_done_ ? Instant::never() : stage_since_ + handshake;
    case Stage::line:
    case Stage::control_body:
      return stage_since_ + (first_done_ ? command : handshake);
    case Stage::publish_body:
      return std::min(stage_since_ + command, last_bytes_ + progress_limit_ns());  // D-19
  }
  return Instant::never();
}

// The peer has to show that it lives; time that the Broker needs is not held against it (D-15).
Instant Session::idle_deadline() const {
  const bool busy = upgrade_ != Upgrade::none || auth_wait_ != AuthWait::none || answers_owed() > 0 ||
                    output_.unsent_answer_bytes() > 0 || (taking_ && parser_.inside_command());
  if (!heartbeats_on() || busy) return Instant::never();
  return std::max(last_done_ + 2 * settings_.heartbeat_ms * kMillisecond, excused_until_);
}

Instant Session::write_deadline() const {
  if (!output_.writing()) return Instant::never();
  return write_since_ + (output_.batch_has_messages() ? message_limit_ns() : progress_limit_ns());
}

Instant Session::next_deadline() const {
  switch (phase_) {
    case Phase::magic:
      return connected_ + static_cast<std::int64_t>(env_.config.limits.client_handshake_timeout_ms) * kMillisecond;
    case Phase::commands: {
      if (decode_later_) return {};  // the next turn
      Instant earliest = std::min({write_deadline(), idle_deadline(), output_.expires_mono()});
      earliest = std::min(earliest, command_deadline());
      if (auth_wait_ != AuthWait::none) earliest = std::min(earliest, auth_since_ + progress_limit_ns());
      if (answers_owed() > 0) earliest = std::min(earliest, answers_[answers_head_].since + progress_limit_ns());
      return heartbeats_on() ? std::min(earliest, next_tick_) : earliest;
    }
    case Phase::flushing:
      return std::min(write_deadline(), output_.expires_mono());
    case Phase::lingering:
      return linger_until_;
    case Phase::closed:
      break;
  }
  return Instant::never();
}

void Session::expire(Now now) {
  mark_dirty();
  const auto due = [&](Instant deadline) { return deadline <= now.mono; };
  if (phase_ != Phase::commands) {
    if (due(next_deadline())) close();
    return;
  }
  decode_later_ = false;
  excuse_standstill(now);
  const bool asking = auth_wait_ != AuthWait::none && due(auth_since_ + progress_limit_ns());
  const bool stuck = asking || (answers_owed() > 0 && due(answers_[answers_head_].since + progress_limit_ns()));
  RQ_SOMETIMES(stuck, "broker.progress_limit");
  RQ_SOMETIMES(due(idle_deadline()), "broker.silent_client_closed");
  RQ_SOMETIMES(due(write_deadline()), "broker.write_deadline");
  if (stuck || due(write_deadline()) || due(idle_deadline()) || due(output_.expires_mono())) {
    close();
    return;
  }
  if (due(command_deadline())) {
    const std::string_view name = parser_.awaited();
    fail("E_INVALID " + std::string(name.empty() ? "command" : name) + " timed out", now);
    return;
  }
  if (heartbeats_on() && due(next_tick_)) heartbeat(now);
}

// This process, or its machine, stood still while the deadline came: heartbeats did not go out, and what the peer has said was
// not read yet. Once for each time that the peer was heard, it has one interval more.
void Session::excuse_standstill(Now now) {
  const Instant due = idle_deadline();
  if (due == Instant::never() || now.mono - due < kStandstillNs || excused_for_ == last_done_) return;
  RQ_SOMETIMES(true, "broker.standstill_excused");
  excused_for_ = last_done_;
  excused_until_ = now.mono + settings_.heartbeat_ms * kMillisecond;
}

void Session::heartbeat(Now now) {
  const std::int64_t interval = settings_.heartbeat_ms * kMillisecond;
  next_tick_ = next_tick_ + (1 + (now.mono - next_tick_) / interval) * interval;  // missed ticks are skipped
  // IDENTIFY or AUTH may be on its way, and clients take the next frame as its answer (page 10 section 1.6). The first command
  // has its own time limit; for AUTH they get one more interval.
  if (!first_done_ || (env_.auth.enabled() && !auth_ && !std::exchange(auth_late_, true))) {
    last_done_ = now.mono;
    return;
  }
  const bool handshake = kind_ == Kind::identify || kind_ == Kind::auth;  // its reply must be the next frame
  if (!handshake && upgrade_ == Upgrade::none && taking_ && !output_.heartbeat_staged()) output_.heartbeat();
}

// --- output

void Session::update_writable() {
  const std::size_t limit = writable_ ? kBackedUpBytes : kBackedUpBytes / 2;
  const bool writable = env_.gates.delivering() && output_.unsent_bytes() < limit;
  if (writable == writable_) return;
  RQ_SOMETIMES(!writable && env_.gates.delivering(), "broker.output_backed_up");
  writable_ = writable;
  if (consumer_ != queue::ConsumerId::none) env_.engine.set_writable(consumer_, writable);
}

void Session::gates_changed() {
  mark_dirty();
  update_writable();
}

bool Session::finished() const {
  if (phase_ == Phase::magic) return env_.gates.stopping;
  if (phase_ != Phase::commands || answers_owed() > 0 || !output_.empty()) return false;
  if (input_taken_) return true;
  const bool holds = consumer_ != queue::ConsumerId::none && env_.engine.in_flight_of(consumer_) > 0;
  return env_.gates.stopping && !parser_.inside_command() && !holds;
}

bool Session::quiet() const {
  return answers_owed() == 0 && auth_wait_ == AuthWait::none && output_.empty() &&
         (phase_ != Phase::commands || !parser_.inside_command());
}

void Session::flush(Now now) {
  if (phase_ == Phase::flushing && output_.empty()) {
    env_.host.net.shutdown_write(stream_);
    phase_ = Phase::lingering;
    linger_until_ = now.mono + kLingerNs;
    if (input_ended_) close();
  }
  if (finished() || output_.expires() <= now.wall) close();
  if (upgrade_ == Upgrade::answering) step_upgrade(now);
  if (phase_ == Phase::closed) return;
  if (!write_.in_flight) {
    if (output_.begin()) write_since_ = now.mono;
    if (output_.writing()) submit_write();
  }
  const bool stands = phase_ == Phase::commands && taking_ && (parser_.has_input() || transport_.holds() || input_stands());
  const bool waits = phase_ == Phase::commands && !taking_;  // a fatal answer, or the end, is on its way
  if (!read_.in_flight && !input_ended_ && !stands && !waits) {
    read_.midway = transport_.compressed() && (parser_.inside_command() || transport_.midway());
    env_.host.net.read_some(read_, stream_, env_.pool);
  }
}

// --- the end

void Session::leave_channel() {
  if (consumer_ == queue::ConsumerId::none) return;
  env_.engine.unsubscribe(std::exchange(consumer_, queue::ConsumerId::none), env_.turn.now());
}

void Session::close() {
  if (phase_ == Phase::closed) return;
  phase_ = Phase::closed;
  taking_ = false;
  mark_dirty();
  parser_.clear();
  release_body();
  leave_auth();
  for (const Output::Handed& handed : output_.abandon()) {
    if (consumer_ != queue::ConsumerId::none) env_.engine.cancel(consumer_, handed.id, handed.token);
  }
  leave_channel();
  env_.host.net.close(stream_);
}

void Session::cut() { close(); }

ClientRow Session::row() const {
  ClientRow row;
  row.consumer = consumer_;
  row.client_id = client_id_;
  row.hostname = hostname_;
  row.user_agent = user_agent_;
  row.remote_address = remote_;
  row.state = state_;
  if (consumer_ != queue::ConsumerId::none) {
    row.ready_count = env_.engine.ready_of(consumer_);
    row.in_flight_count = env_.engine.in_flight_of(consumer_);
  }
  row.message_count = messages_sent_;
  row.finish_count = finished_;
  row.requeue_count = requeued_;
  row.connect_ts = connect_ts_;
  row.snappy = transport_.kind() == Transport::Kind::snappy;
  row.deflate = transport_.kind() == Transport::Kind::deflate;
  row.tls = peer_.tls;
  row.tls_version = peer_.tls_version;
  row.tls_cipher_suite = peer_.tls_cipher;
  if (auth_) {
    row.authed = true;
    row.auth_identity = auth_->identity();
    row.auth_identity_url = auth_->identity_url();
  }
  row.sample_rate = static_cast<std::uint32_t>(settings_.sample_rate);
  for (const auto& [topic, count] : published_) {
    if (count > 0) row.pub_counts.emplace_back(topic, count);
  }
  return row;
}

}  // namespace rq::broker
