// The event loop: it collects what happened, runs turns while there is something to deliver, and otherwise waits in Asio for a
// socket, a worker, the deadline or a signal. One thread; only wake() may be called from others.
//
//  I1 A turn runs when an Op is pending, when the deadline has come, or when somebody asked for one (poke), and never otherwise.
//  I2 Workers cost at most one wake-up per wait, and none while the loop is busy.
//  I3 Behind a turn in which every peer stopped inside a command, the sockets rest for kGatherNs, so that its pieces cost one
//     look together; workers and deadlines end the rest at once.
#pragma once

#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/steady_timer.hpp>
#include <atomic>
#include <functional>

#include "core/io/turn.h"

namespace rq::real {

class RealDisk;
class RealNet;
class Pool;

class Loop final : public io::Clock, public io::Waker {
 public:
  static constexpr std::int64_t kGatherNs = 80'000;  // docs/transports.md

  Loop();
  ~Loop();

  Instant now() const noexcept override;
  WallTime wall() const noexcept override;
  void wake_at(Instant deadline) override { deadline_ = deadline; }

  // Before the first step. All of them outlive the last one.
  void attach(io::Turn& turn, Pool& pool, RealDisk& disk, RealNet& net);
  void wake();                    // any thread
  void poke() { poked_ = true; }  // loop thread: run a turn at the next step
  asio::io_context& context() { return context_; }

  // Collects and runs one turn if there is a reason for one (true). Otherwise waits, at most until `limit`, and returns false.
  bool step(io::Shard& shard, Instant limit = Instant::never());

 private:
  bool collect();
  void wait(Instant until);
  void gather();
  void arm_timer(Instant until);

  asio::io_context context_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_{context_.get_executor()};
  asio::steady_timer timer_{context_};
  asio::posix::stream_descriptor sockets_{context_};
  io::Turn* turn_ = nullptr;
  Pool* pool_ = nullptr;
  RealDisk* disk_ = nullptr;
  RealNet* net_ = nullptr;
  Instant deadline_ = Instant::never();
  Instant timer_at_ = Instant::never();  // what timer_ is armed for
  bool sockets_armed_ = false;
  bool poked_ = true;
  unsigned unseen_steps_ = 0;
  unsigned busy_steps_ = 0;
  enum : std::uint32_t { kAwake, kWaiting, kGathering };  // what wake() has to do
  std::atomic<std::uint32_t> rest_{kAwake};
};

}  // namespace rq::real
