// One HTTP connection. Requests are taken one at a time; the next one is looked at when the answer before it is written, so a
// pipelining client holds no more than one request and one answer in memory.
//
//   head      between requests, and while a head arrives      -> parked, body, discard, waiting, writing
//   parked    the data directory is being opened (D-49)       -> body, discard, waiting, writing
//   body      a publish body arrives                          -> waiting, writing
//   discard   a body that the route does not want arrives     -> waiting, writing
//   waiting   the engine works on it, or its text is made     -> writing
//   writing   the answer is on its way                        -> head, linger, closed
//   linger    our half is shut; what still comes is dropped   -> closed
//   closed    until no Op is in flight
//
//  I1 At most one deadline, of the phase (D-35).
//  I2 Publish bytes are reserved before a body is read and given back when it is refused, or when the engine is done with it,
//     even if the connection is gone by then. Without a declared length they are reserved as the body's buffer grows, before it
//     does; what does not fit is answered at once, so that half bodies never wait for each other.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/broker/http_env.h"
#include "core/broker/http_routes.h"
#include "core/broker/rendering.h"
#include "core/broker/stats_view.h"
#include "core/http/body_buffer.h"
#include "core/http/request_parser.h"
#include "core/http/response.h"

namespace rq::broker {

class HttpConnection final : public DeadlineNode {
 public:
  static constexpr std::int64_t kHeadTimeoutNs = 30 * kSecond;   // D-35
  static constexpr std::int64_t kIdleTimeoutNs = 300 * kSecond;  // between requests
  static constexpr std::int64_t kWriteTimeoutNs = 30 * kSecond;  // without progress
  // An answer has kWriteTimeoutNs and the time that it takes at this rate, so that reading a byte now and then keeps none.
  static constexpr std::int64_t kWriteBytesPerSecondMin = 64 * 1024;
  static constexpr std::int64_t kOpeningWaitNs = 2 * kSecond;  // D-49
  static constexpr std::int64_t kLingerNs = 1 * kSecond;
  static constexpr std::size_t kHeadBytesMax = 64 * 1024;  // page 31 section 8
  static constexpr std::uint64_t kDiscardBytesMax = 256 * 1024;
  static constexpr std::uint64_t kOutputBytesMax = 256ull << 20;  // HttpEnv::output_bytes; beyond it statistics are refused

  HttpConnection(HttpEnv& env, std::uint32_t slot, io::StreamId stream);
  ~HttpConnection();
  HttpConnection(const HttpConnection&) = delete;

  void start();
  void work();  // what its input and finished writes allow; called once a turn when dirty
  void expired();
  void published(const queue::PublishDone& done);
  void admin_done(const queue::AdminDone& done);
  void stats_done(queue::StatsDone& done);
  // Goes on with the text of its answer, as far as this turn allows. False: there is more to make.
  bool render();
  void managed_done(const queue::ManagedDone& done);
  void scrub_done(const queue::ScrubDone& done);
  void opened();  // the data directory is open, or failed to open
  bool between_requests() const { return phase_ == Phase::head && served_ && !parser_.started() && input_.empty(); }
  void stop();  // closes at once when idle, else behind the answer
  void close();
  bool dead() const { return phase_ == Phase::closed && !read_.in_flight && !write_.in_flight; }

 private:
  enum class Phase : std::uint8_t { head, parked, body, discard, waiting, writing, linger, closed };
  class Discard final : public http::BodySink {
   public:
    void on_body(ConstBuf part) override { bytes += part.size(); }
    std::uint64_t bytes = 0;
  };

  void on_read(io::Op& op);
  void on_write(io::Op& op);
  void mark_dirty();
  void arm(std::int64_t timeout_ns);
  void arm_write();
  void disarm();
  void read_more();
  void take_input();
  void cut_short();
  void broken_request();
  void on_head();
  void begin();
  void begin_body();
  http::Response too_long() const;
  bool charge_body(std::uint64_t bytes);
  void act();
  void act_publish();
  void act_admin();
  void act_stats();
  void act_scrub();
  void act_config();
  void act_log_level();
  void act_registry();
  void act_drain();
  void act_managed();
  void act_fences();
  void act_live_feed();
  void hand_over_feed(std::optional<std::string> secret);
  http::Response native_head() const;
  std::optional<http::Response> refusal() const;  // of the token class, or of a route that this configuration does not have
  void answer_with(std::unique_ptr<Rendering> rendering, std::string_view content_type, std::uint64_t source_bytes);
  void end_rendering();
  void native_stats_done(queue::StatsDone& done);
  StatsView stats_view(std::vector<queue::TopicStats> topics) const;
  std::unique_ptr<Rendering> metrics(std::vector<queue::TopicStats> topics) const;
  http::Response health() const;
  http::Response info() const;
  queue::WaiterId wait(std::uint64_t messages, std::uint64_t bytes);
  void forget_waiter();
  void respond(http::Response response);
  void respond_closing(http::Response response);
  void queue_bytes(std::string bytes);
  void drop_rest();
  void flush();
  void written();
  void release_charge();

  HttpEnv& env_;
  const std::uint32_t slot_;
  const io::StreamId stream_;
  Phase phase_ = Phase::head;
  bool dirty_ = false;
  bool served_ = false;  // at least one request was answered here
  bool close_after_ = false;
  bool peer_done_ = false;  // no more input comes
  bool lost_ = false;       // reading or writing failed
  io::ReadOp read_;
  io::Op write_;
  Slice input_;  // not yet parsed
  http::RequestParser parser_{kHeadBytesMax};
  http::BodyBuffer body_;
  Discard discard_;
  std::optional<Routed> routed_;
  std::optional<http::Response> early_;  // the answer once the unwanted body is gone
  std::uint64_t charge_ = 0;
  std::uint64_t waiter_ = 0;  // 0: none
  std::string operation_;     // "Topic" or "Topic/Channel" of the management operation under way
  std::string pending_, sending_;
  std::unique_ptr<Rendering> rendering_;  // of the answer; what it gave is in rest_
  std::string_view rendered_type_;        // content type
  std::uint64_t source_bytes_ = 0;        // of what it is made from
  std::vector<std::string> rest_;         // of the answer's body, behind pending_
  std::size_t rest_at_ = 0;               // the first of them that is not in sending_ yet
  std::size_t sent_ = 0;
  Instant write_until_;  // of the answer
  bool write_done_ = false;
};

}  // namespace rq::broker
