// One measured run, or the warm-up before it: connections are opened and subscribed, then messages are published as the options
// say, then everything must arrive, then consumers stop in good order.
//
//     connecting -> publishing -> draining -> stopping -> closing -> finished
//
//  I1 A latency starts when its command was due (fixed rate) or when it was sent (saturation), and ends at its OK. An arrival
//     that was due is sent however late it is, so a stalled server is in the figures.
//  I2 Every state ends: at its goal, or at a limit with error(). The limits of draining, and of stopping after it, end the run
//     with a result in which messages are missing.
#pragma once

#include <algorithm>
#include <deque>
#include <string>
#include <vector>

#include "bench/load/consumer.h"
#include "bench/load/latency.h"
#include "bench/load/link.h"
#include "bench/load/options.h"
#include "bench/load/producer.h"
#include "bench/load/schedule.h"

namespace rq::load {

struct PhaseResult {
  std::uint64_t published = 0;          // acknowledged messages
  std::uint64_t unique = 0, total = 0;  // received, as far as counted
  bool drain_timed_out = false;
  std::int64_t publish_ns = 0;  // start to the last OK
  std::int64_t drain_ns = 0;    // the last OK to complete delivery, or to the limit
  std::uint64_t missing() const { return published - std::min(published, unique); }
  std::uint64_t duplicates() const { return total - unique; }
};

class Phase {
 public:
  static constexpr std::int64_t kConnectNsMax = 10 * kSecond;
  static constexpr std::int64_t kSubscribeNsMax = 30 * kSecond;
  static constexpr std::int64_t kStopNsMax = 30 * kSecond;

  Phase(io::Host& host, const LoadOptions& options, RunNames names, std::uint64_t nonce, Now now);

  void expire(Now now);
  void settle(Now now);
  Instant next_deadline() const;

  bool finished() const { return state_ == State::finished; }
  const std::string& error() const { return error_; }  // set: the run is over, and there is no result
  const PhaseResult& result() const { return result_; }
  const Latency& latency() const { return latency_; }
  const RunNames& names() const { return names_; }
  const char* state_name() const;
  std::uint64_t published() const { return result_.published; }
  std::uint64_t received() const { return deliveries_.unique.count(); }

 private:
  enum class State : std::uint8_t { connecting, publishing, draining, stopping, closing, finished };
  struct Producing {
    Producing(io::Host& host, ChunkPool& pool, std::vector<Link*>& active, std::uint32_t index, std::string_view topic,
              const Body& body, std::uint32_t batch_size)
        : link(host, pool, active, index), machine(topic, body, batch_size) {}
    Link link;
    Producer machine;
    std::uint64_t due = 0, sent = 0;  // commands; due: with a fixed rate only
    bool ready = false;
  };
  struct Consuming {
    Consuming(io::Host& host, ChunkPool& pool, std::vector<Link*>& active, std::uint32_t index, const Body& body,
              Deliveries& deliveries)
        : link(host, pool, active, index), machine(body, deliveries) {}
    Link link;
    Consumer machine;
    bool asked = false, ready = false, done = false;
  };

  void handle(Link& link, Now now);
  void handle_producer(Producing& producer, Now now);
  void handle_consumer(Consuming& consumer);
  void drive(Now now);
  void start(Now now);
  void arrive(Now now);
  void feed(Producing& producer, std::size_t index, Now now);
  bool published_all(Now now) const;
  void stop(Now now);
  void close();
  bool all_idle() const;
  void fail(std::string why);
  void fail(const char* what, std::size_t index, const std::string& why);
  void lost(const char* what, std::size_t index, const Link& link);
  Instant overrun() const;
  std::int64_t patience() const { return static_cast<std::int64_t>(options_.drain_timeout_seconds) * kSecond; }

  io::Host& host_;
  const LoadOptions options_;
  const RunNames names_;
  const Body body_;
  const Schedule schedule_;
  ChunkPool pool_{64 * 1024, 64};
  std::vector<Link*> active_;
  std::deque<Producing> producers_;
  std::deque<Consuming> consumers_;
  Deliveries deliveries_;
  Latency latency_;
  PhaseResult result_;
  State state_ = State::connecting;
  std::string error_;
  std::size_t ready_ = 0;           // connections that may start
  std::size_t consumers_done_ = 0;  // whose server ended the connection
  std::uint64_t messages_ = 0;      // to be published; 2^64 - 1 when time is the limit
  std::uint64_t arrivals_ = 0;      // commands of a fixed-rate run
  std::uint64_t arrived_ = 0, answered_ = 0, taken_ = 0, waiting_ = 0;
  Instant began_;        // connecting
  Instant started_;      // publishing
  Instant publish_end_;  // of a saturation run with a duration
  Instant moved_;        // the last command or answer
  Instant limit_;        // of draining, then of stopping
};

}  // namespace rq::load
