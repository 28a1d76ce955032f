// One WebSocket live feed (page 31 section 6): from the checked upgrade request to its last frame. Best effort: it starts at the
// tail, has at most one message on its way, and finishes it itself once the frame is written.
//
//   asking (AUTH of the header, before the 101) -> subscribing
//   waiting (101 sent, the client's secret is awaited) -> asking -> subscribing
//   subscribing -> live
//   any -> closing (last frames on their way) -> lingering (our half is shut) -> closed
//
//  I1 `on_*`, resume() and expire() only change state and call the engine; flush() calls the network, once a turn.
//  I2 While a message is written nothing that came is looked at and no ping goes out; its deadline bounds that (6.5, 6.7).
//  I3 A message that cannot be finished in time takes the connection with it, without a close frame; one that was not begun is
//     given back.
//  I4 Frame memory is held from the delivery to the end of the write, or of the connection.
//  I5 A Topic that was RELIABLE at any moment since the handshake ends the feed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/broker/admission.h"
#include "core/broker/auth_service.h"
#include "core/broker/live_output.h"
#include "core/broker/live_text.h"
#include "core/broker/server_view.h"
#include "core/ws/frame.h"

namespace rq::broker {

// What an upgrade request that passed the checks of section 6.1 leaves to its feed.
struct LiveStart {
  io::StreamId stream = io::StreamId::none;
  Slice input;  // what came behind the request
  std::string topic;
  std::uint64_t epoch = 0;            // reliable epoch of the Topic
  std::string accept;                 // Sec-WebSocket-Accept
  std::optional<std::string> secret;  // of the Authorization header, when AUTH is configured
  std::string date;                   // for a refusal
};

// What all feeds of a Broker share.
struct LiveEnv {
  io::Host& host;
  const Config& config;
  queue::Engine& engine;
  ChunkPool& pool;
  BrokerCounters& counters;
  const Gates& gates;
  AuthService& auth;
  ByteBudget frame_memory;
  std::vector<std::uint32_t> dirty;  // slots with work for this turn
  Now now;                           // of this turn
};

class LiveFeed {
 public:
  static constexpr std::int64_t kControlNs = kSecond;  // a text control, and an error with its close
  static constexpr std::int64_t kLingerNs = kSecond;
  static constexpr std::int64_t kStandstillNs = 100 * kMillisecond;  // so late comes a tick only when the process stood still
  static constexpr std::size_t kUnsentBytesMax = 4'096;              // controls at which the client is not read

  // `number` counts the feeds of this process from 1.
  LiveFeed(LiveEnv& env, std::uint32_t slot, std::uint64_t number, LiveStart start, Now now);
  LiveFeed(const LiveFeed&) = delete;

  void begin(std::optional<std::string> secret, Now now);  // once

  void on_auth(AuthAnswer answer, Now now);
  void on_subscribed(const queue::SubscribeDone& done, Now now);
  void on_delivery(const queue::Delivery& delivery, Now now);
  void on_policy_changed(Now now);
  void on_consumer_closed(Now now) { end(live_end::kTopicClosed, now); }
  void on_timed_out() { mark_dirty(); }
  void gates_changed(Now now);
  void end(const LiveEnd& why, Now now);  // by an error control; a message being written takes the connection with it
  void cut();                             // closes at once

  void resume(Now now);
  void flush(Now now);
  void expire(Now now);
  Instant next_deadline() const;

  const std::string& topic() const { return topic_; }
  queue::ConsumerId consumer() const { return consumer_; }
  bool upgraded() const { return upgraded_; }
  bool can_be_destroyed() const { return phase_ == Phase::closed && !read_.in_flight && !write_.in_flight && !subscribing_; }
  ClientRow row() const;
  // In questions to AUTH; sessions have the lower half of the slots.
  static constexpr std::uint32_t kAuthSlots = 0x8000'0000;
  static bool owns(std::uint32_t auth_slot) { return auth_slot >= kAuthSlots; }

  bool dirty = false, touched = false;  // for the Broker's lists

 private:
  enum class Phase : std::uint8_t { asking, waiting, subscribing, live, closing, lingering, closed };

  void on_read(io::ReadOp& op);
  void on_write(io::Op& op);
  void mark_dirty();
  void upgrade();
  void ask(std::string secret, Now now);
  void auth_failed(const LiveEnd& why, Now now);
  void subscribe(Now now);
  void take_input(Now now);
  void take(const ws::Incoming& incoming, Now now);
  void take_secret(const ws::Incoming& incoming, Now now);
  bool input_stands() const;
  void say(std::string_view control);
  void refuse(int status, const LiveEnd& why, Now now);  // instead of the 101
  void close_with(std::uint16_t code, std::string_view reason, Now now);
  void begin_closing(Now now);
  void begin_message(const queue::Delivery& delivery, Now now);
  void message_written(Now now);
  void give_message_back();
  void message_expired(Now now);
  void tick(Now now);
  bool was_reliable() const;
  static const LiveEnd& end_for(queue::Code code);
  void close();
  Instant write_deadline() const;
  bool auth_due(Now now) const { return lease_ && !asking_ && lease_.expires() <= now.mono; }
  std::int64_t interval_ns() const { return static_cast<std::int64_t>(env_.config.limits.heartbeat_interval_ms) * kMillisecond; }
  std::int64_t write_limit_ns() const {
    return static_cast<std::int64_t>(env_.config.limits.tcp_command_timeout_ms) * kMillisecond;
  }

  LiveEnv& env_;
  const std::uint32_t slot_;
  const std::uint64_t number_;
  const io::StreamId stream_;
  const std::string topic_, accept_, date_;
  const std::uint64_t epoch_;
  io::ReadOp read_;
  io::Op write_;
  Phase phase_ = Phase::subscribing;
  bool upgraded_ = false;
  bool subscribing_ = false;
  bool lost_ = false, input_ended_ = false;
  bool message_done_ = false;
  bool pinging_ = false;  // the controls being written hold a ping or a pong: late is slow
  bool asking_ = false;
  ws::FrameParser parser_{kLiveIncomingBytesMax};
  std::uint64_t frames_seen_ = 0;
  Slice input_;
  LiveOutput output_;
  Instant write_since_, auth_deadline_, close_deadline_, next_tick_, last_frame_;
  std::string secret_;
  AuthLease lease_;
  queue::ConsumerId consumer_ = queue::ConsumerId::none;
  struct Message {
    queue::MessageId id = 0;
    queue::Token token = 0;
    std::int64_t timestamp_ns = 0;
    std::uint64_t body_bytes = 0;
    WallTime expires;
    Instant expires_mono, since;
  };
  std::optional<Message> message_;  // delivered, not finished
  std::string remote_;
  std::int64_t connect_ts_ = 0;
  std::uint64_t messages_sent_ = 0;
};

}  // namespace rq::broker
