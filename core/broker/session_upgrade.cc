// The upgrade after IDENTIFY (page 10 section 3.4): its answer in clear, then TLS and an OK inside it, then compression and an OK
// through that. Input that came behind IDENTIFY belongs to the new layer. Nothing else is sent meanwhile, and nothing is read
// that the new layer does not read.
#include <algorithm>
#include <array>
#include <utility>

#include "core/base/probe.h"
#include "core/broker/session.h"

namespace rq::broker {

void Session::begin_upgrade() {
  if (!settings_.tls && !settings_.snappy && !settings_.deflate) return;
  upgraded_ = true;
  tls_wanted_ = settings_.tls;
  upgrade_ = Upgrade::answering;
  for (Slice& rest : parser_.take_rest()) transport_.hold(std::move(rest));
}

void Session::step_upgrade(Now now) {
  if (phase_ != Phase::commands || !output_.empty() || write_.in_flight) return;
  if (tls_wanted_) {
    if (read_.in_flight) return;
    tls_wanted_ = false;
    upgrade_ = Upgrade::handshaking;
    const std::deque<Slice> held = transport_.take_held();
    std::vector<ConstBuf> leftover;
    for (const Slice& slice : held) leftover.push_back(slice.bytes());
    const auto limit = static_cast<std::int64_t>(env_.config.limits.client_handshake_timeout_ms) * kMillisecond;
    env_.host.net.start_tls(tls_op_, stream_, leftover, now.mono + limit);
    return;
  }
  upgrade_ = Upgrade::none;
  last_done_ = now.mono;
  transport_.compress(settings_.snappy ? Transport::Kind::snappy : Transport::Kind::deflate,
                      static_cast<int>(settings_.deflate_level));
  respond(nsq::FrameType::response, nsq::kOk);
}

// A failed handshake closes without a frame in clear (D-04).
void Session::on_tls(io::Op& op) {
  mark_dirty();
  if (phase_ == Phase::closed) return;
  RQ_SOMETIMES(static_cast<bool>(op.error), "broker.tls_handshake_failed");
  if (op.error || phase_ != Phase::commands) return close();
  peer_ = env_.host.net.info(stream_);
  last_done_ = env_.turn.now().mono;
  upgrade_ = settings_.snappy || settings_.deflate ? Upgrade::answering : Upgrade::none;
  respond(nsq::FrameType::response, nsq::kOk);
}

void Session::take_received(Slice data) {
  if (upgrade_ != Upgrade::none || transport_.compressed()) {
    transport_.hold(std::move(data));
  } else {
    parser_.push(std::move(data));
  }
}

bool Session::decode_more() {
  if (!transport_.compressed() || !transport_.holds()) return false;
  if (decoded_turn_ != env_.turn.turns()) {
    decoded_turn_ = env_.turn.turns();
    decoded_bytes_ = 0;
  }
  if (decoded_bytes_ >= Transport::kDecodedBytesPerTurn) {
    RQ_SOMETIMES(true, "broker.decoding_goes_on_next_turn");
    decode_later_ = true;
    return false;
  }
  Transport::Decoded decoded = transport_.decode(env_.pool);
  if (decoded.failed) {
    RQ_SOMETIMES(true, "broker.undecodable_input");
    close();
    return true;
  }
  decoded_bytes_ += decoded.bytes.size();
  const bool some = !decoded.bytes.empty();
  parser_.push(std::move(decoded.bytes));
  return some;
}

void Session::submit_write() {
  if (transport_.compressed()) {
    const ConstBuf piece = transport_.encode(output_);
    env_.host.net.write_some(write_, stream_, std::span(&piece, 1));
    return;
  }
  std::array<ConstBuf, Output::kBuffersMax> buffers;
  const std::size_t count = output_.fill(buffers);
  env_.host.net.write_some(write_, stream_, std::span<const ConstBuf>(buffers.data(), count));
}

}  // namespace rq::broker
