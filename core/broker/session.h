// One NSQ connection (page 10 sections 1 to 5, page 31 section 3): magic, commands, pipelined publishes, consuming, heartbeats,
// deadlines, and an end whose error frame the peer can read.
//
//   magic -> commands -> flushing (a fatal answer is on its way) -> lingering (input discarded until the peer closes) -> closed
//
//  I1 Answers leave in the order of their commands (D-17); at most 64 are owed, then the peer is not read.
//  I2 Everything that a peer can fill is bounded: input by one receive chunk and one admitted body, answers by I1, messages by
//     RDY.
//  I3 A publish keeps its byte reservation until the engine answered, also when the connection is gone; the session lives until
//     then, and until no Op of it is in flight.
//  I4 `on_*`, resume() and expire() change state and call the engine, and the network but for a close at once; flush() calls the
//     network for the rest, once a turn.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/broker/auth_service.h"
#include "core/broker/output.h"
#include "core/broker/session_env.h"
#include "core/broker/transport.h"
#include "core/nsq/command_parser.h"
#include "core/nsq/mpub.h"

namespace rq::broker {

class Session {
 public:
  static constexpr std::size_t kAnswersMax = 64;                     // D-17
  static constexpr std::size_t kBackedUpBytes = 128 * 1024;          // output at which the engine stops delivering
  static constexpr std::size_t kAnswerBacklogBytes = 64 * 1024;      // unsent answers at which the peer is not read
  static constexpr std::int64_t kLingerNs = 2 * kSecond;             // input discarded after a fatal error
  static constexpr std::int64_t kStandstillNs = 100 * kMillisecond;  // so late comes a deadline only when the process stood still
  static constexpr std::uint64_t kControlBodyBytesMax = 1 << 20;     // D-01: IDENTIFY, AUTH
  static constexpr std::uint32_t kControlRoomBytes = 2'048;          // of it charged at its size: one unit of the budget
  static constexpr std::size_t kPublishedTopicsMax = 256;            // Topics named in /stats for one connection

  Session(SessionEnv& env, std::uint32_t slot, io::StreamId stream, Now now);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Answers and deliveries of the engine.
  void on_published(std::uint32_t sequence, const queue::Outcome& outcome, Now now);
  void on_subscribed(const queue::SubscribeDone& done, Now now);
  void on_delivery(const queue::Delivery& delivery, Now now);
  void on_command_done(const queue::CommandDone& done);
  void on_policy_changed();  // of its Topic: messages that were not written yet end the connection
  void on_auth(AuthAnswer answer, Now now);
  void on_timed_out() { mark_dirty(); }
  void on_consumer_closed(const std::string& frame);

  void resume(Now now);  // takes what the peer sent, as far as it may be taken
  void flush(Now now);   // one write and one read; or the end
  void expire(Now now);  // a deadline of next_deadline() has come
  void gates_changed();  // drain, stop: deliveries on or off, idle sessions end when stopping
  void cut();            // closes at once
  Instant next_deadline() const;

  bool closed() const { return phase_ == Phase::closed; }
  bool can_be_destroyed() const {
    return closed() && !read_.in_flight && !write_.in_flight && !tls_op_.in_flight && answers_owed() == 0 && !subscribing_;
  }
  bool quiet() const;  // nothing owed, nothing unsent, no command half received
  queue::ConsumerId consumer() const { return consumer_; }
  std::uint64_t budget_used() const { return budget_used_; }
  ClientRow row() const;

  // For the Broker's lists; it clears them.
  bool dirty = false, touched = false;

 private:
  enum class Phase : std::uint8_t { magic, commands, flushing, lingering, closed };
  enum class Kind : std::uint8_t { none, identify, auth, pub, mpub, dpub };  // the command whose body is awaited
  enum class Held : std::uint8_t { no, line, size };                         // why the input stands still
  enum class Upgrade : std::uint8_t { none, answering, handshaking };        // after IDENTIFY: the answer leaves first
  enum class AuthWait : std::uint8_t { none, command, renewal };             // what the running question is for
  enum class Stage : std::uint8_t { first_byte, line, control_body, publish_body };

  // One owed answer. Publishes wait for the engine; anything else is ready at once and waits only for those before it.
  struct Answer {
    Kind kind = Kind::none;
    bool ready = false;
    bool ok = false;     // frame is OK
    bool fatal = false;  // close behind it
    std::string error;   // frame unless ok; empty with `fatal`: silent close
    std::uint64_t charge = 0;
    std::uint64_t body_bytes = 0;
    std::uint32_t messages = 0;
    std::uint32_t topic = 0;  // index into published_
    Instant since;
  };

  // session.cc: life, reading, deadlines
  void on_read(io::ReadOp& op);
  void on_write(io::Op& op);
  void take_magic(Now now);
  void take_commands(Now now);
  void complete(Now now);  // a command is done, its answer may be owed
  void mark_dirty();
  void note_stage(Now now);
  void end_of_input(Now now);
  void leave_channel();
  void close();  // closes the socket; Ops come back later
  bool finished() const;
  bool input_stands() const;          // something must be answered first
  std::uint64_t body_charge() const;  // of the announced body
  bool budget_allows(std::uint64_t charge) const;
  Stage stage_now() const;
  std::int64_t progress_limit_ns() const;
  std::int64_t message_limit_ns() const;
  Instant command_deadline() const;
  Instant idle_deadline() const;
  Instant write_deadline() const;
  bool heartbeats_on() const { return settings_.heartbeat_ms > 0; }
  void excuse_standstill(Now now);
  void heartbeat(Now now);
  void update_writable();

  // session_upgrade.cc: TLS and compression between the session and its stream
  void begin_upgrade();
  void step_upgrade(Now now);
  void on_tls(io::Op& op);
  void take_received(Slice data);
  bool decode_more();  // true: the parser has input again, or the connection was closed
  void submit_write();

  // session_commands.cc
  void run_line(Now now);
  bool is_barrier(std::string_view name) const;
  void run_control_line(Kind kind, Now now);
  void run_subscribe(Now now);
  void run_ready(Now now);
  void run_finish(Now now);
  void run_requeue(Now now);
  void run_touch(Now now);
  void run_close_wait(Now now);
  void finish_identify(Slice body, Now now);
  bool consumer_command(std::uint32_t params, Now now);  // state, parameters, id; false after an error
  void command_failed(std::string_view id, queue::Code why, Now now);

  // session_auth.cc
  void run_auth(Slice body, Now now);
  void auth_failed(std::string text, Now now);
  void ask_auth(AuthWait wait, Now now);
  bool authorized(AuthGrants::Permission permission, std::string_view topic, std::string_view channel, Now now);
  std::string auth_reply() const;
  std::string auth_refusal() const;
  void leave_auth();

  // session_publish.cc
  static std::string_view name_of(Kind kind);
  static std::string reason_text(const queue::Outcome& outcome);
  void run_publish_line(Kind kind, Now now);
  void run_size(Now now);
  void run_control_size(Now now);
  void run_control_room(Now now);
  bool charge_control(std::uint32_t room, Now now);
  void run_publish_size();
  void run_body(Now now);
  void publish(Slice body, Now now);
  void check_partial_mpub(Now now);
  std::string truncated_body();
  void release_body();                         // the body being received is given up
  std::optional<std::string> refusal() const;  // draining, disk pressure
  void count_refusal(std::string_view text, std::uint64_t charge);
  void refuse(std::string text, Now now);  // certainly not stored; the connection goes on unless configured otherwise
  void settle_publish(Answer& answer, const queue::Outcome& outcome, bool at_once);
  void release_charge(std::uint64_t bytes);
  void release_control(std::uint64_t bytes);  // of an IDENTIFY or AUTH

  // session_answers.cc
  std::size_t answers_owed() const { return answers_.size() - answers_head_; }
  queue::WaiterId next_waiter() const;  // of the answer that add_answer() adds next
  Answer& add_answer(Kind kind, Now now);
  void answer_ready(std::string error, bool fatal, Now now);  // in order, behind what is owed
  void fail(std::string text, Now now);                       // fatal error: nothing further is taken
  void pop_answers(Now now);
  void respond(nsq::FrameType type, std::string_view payload);
  std::uint32_t published_topic(std::string_view topic);
  const std::string& topic_of_publish() const;

  SessionEnv& env_;
  const std::uint32_t slot_;
  const io::StreamId stream_;
  io::ReadOp read_;
  io::Op write_, tls_op_;

  Phase phase_ = Phase::magic;
  int state_ = 0;  // page 10 section 1.8: 0 init, 3 subscribed, 4 closing
  nsq::CommandParser parser_;
  Transport transport_;
  Upgrade upgrade_ = Upgrade::none;
  bool upgraded_ = false;           // at most once in a connection's life
  bool tls_wanted_ = false;         // of this upgrade, and not begun
  io::PeerInfo peer_;               // the TLS fields are set once it runs
  bool decode_later_ = false;       // this turn has decoded enough
  std::uint64_t decoded_turn_ = 0;  // number of the turn that decoded_bytes_ belongs to
  std::size_t decoded_bytes_ = 0;
  std::string magic_;
  Held held_ = Held::no;
  bool input_ended_ = false;  // the peer finished writing
  bool input_taken_ = false;  // ... and everything it sent was taken
  bool taking_ = true;        // false after a fatal error or the end of input
  bool subscribing_ = false;
  bool first_done_ = false;                                                     // a first command was completed
  bool stage_fresh_ = true;                                                     // the next wait for bytes begins a new stage
  bool bytes_arrived_ = false, write_moved_ = false, answers_written_ = false;  // since the last resume()

  // The command whose body is awaited.
  Kind kind_ = Kind::none;
  std::uint32_t publish_topic_ = 0;  // row in published_
  std::string topic_of_publish_;     // when it has no row
  std::int64_t defer_ms_ = 0;
  std::uint64_t charge_ = 0;  // taken for the body being received
  std::string refused_;       // the answer when the body is being discarded
  nsq::MpubScanner scanner_;

  nsq::Negotiated settings_;
  std::string client_id_, hostname_, user_agent_;

  AuthLease auth_;
  std::string secret_;
  AuthWait auth_wait_ = AuthWait::none;
  Instant auth_since_;
  bool auth_late_ = false;         // a heartbeat was left out for an AUTH that had not come
  std::uint64_t auth_charge_ = 0;  // of the publish budget, for the secret

  std::vector<Answer> answers_;  // owed ones from answers_head_
  std::size_t answers_head_ = 0;
  std::uint32_t first_sequence_ = 0;  // of answers_[answers_head_]
  std::uint64_t budget_used_ = 0;

  std::string topic_, channel_;  // of the subscription
  queue::ConsumerId consumer_ = queue::ConsumerId::none;
  bool writable_ = true;
  Output output_;

  Instant connected_, last_bytes_, last_done_, next_tick_, write_since_, linger_until_;
  Instant excused_for_ = Instant::never(), excused_until_{};  // the last_done_ of the latest excuse, and until when it holds
  Stage stage_ = Stage::first_byte;
  Instant stage_since_;

  std::string remote_;
  std::int64_t connect_ts_ = 0;
  std::uint64_t messages_sent_ = 0, finished_ = 0, requeued_ = 0;
  std::vector<std::pair<std::string, std::uint64_t>> published_;
};

}  // namespace rq::broker
