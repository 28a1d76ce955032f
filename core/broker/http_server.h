// The HTTP side of the Broker: its listener and connections (page 31 sections 4, 5 and 8, page 10 section 6). The Broker holds
// one and forwards the turn and the engine's answers to it.
//
//  I1 At most limits.max_http_connections connections (D-35). One more takes the place of the one that has been idle longest
//     between two requests, so that clients which keep connections lock no health check out; without any it is closed at once.
//  I2 An idle connection costs one node in a deadline lane and no work per turn.
//  I3 An answer for a connection that is gone is dropped, its publish budget given back.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/broker/http_connection.h"
#include "core/broker/http_env.h"
#include "core/broker/listener.h"

namespace rq::broker {

class HttpServer {
 public:
  HttpServer(io::Host& host, ServerView& view);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;

  void listen(std::string_view address);  // "ip:port"; asynchronous, serves from then on
  bool listening() const { return listener_.listening(); }
  bool failed() const { return listener_.failed(); }
  std::string failure() const { return listener_.failure(); }
  std::uint16_t port() const { return listener_.port(); }

  void on_published(const queue::PublishDone& done);
  void on_admin(const queue::AdminDone& done);
  void on_stats(queue::StatsDone& done);
  void on_managed(const queue::ManagedDone& done);
  void on_scrubbed(const queue::ScrubDone& done);

  void expire(Now now);
  void settle(Now now);
  Instant next_deadline() const;

  void stop_accepting();  // and closes idle connections; the others end behind their answer
  void close_all();
  std::uint64_t output_bytes() const { return env_.output_bytes; }
  void check_invariants() const;
  std::size_t connections() const { return static_cast<std::size_t>(env_.open); }

 private:
  void begin_turn(Now now);
  void take_accepted();
  bool make_room();  // true: an idle connection was closed
  void refuse(io::StreamId stream);
  void work();
  void render();
  HttpWaiter take_waiter(queue::WaiterId id);
  void note_removal(const HttpWaiter& waiter, const queue::Outcome& outcome);

  HttpEnv env_;
  Listener listener_;
  std::vector<std::unique_ptr<HttpConnection>> slots_;
  std::vector<std::uint32_t> free_;
  bool at_limit_ = false;  // the limit was reached and logged
};

}  // namespace rq::broker
