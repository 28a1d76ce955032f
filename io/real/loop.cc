#include "io/real/loop.h"

#include <linux/futex.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <asio/post.hpp>

#include "io/real/disk.h"
#include "io/real/net.h"
#include "io/real/pool.h"

namespace rq::real {
namespace {

std::int64_t read_clock(clockid_t id) {
  timespec t{};
  ::clock_gettime(id, &t);
  return t.tv_sec * kSecond + t.tv_nsec;
}

constexpr unsigned kBusyStepsMax = 64;   // turns without a wait before Asio is asked for signals
constexpr unsigned kUnseenStepsMax = 2;  // turns in which the sockets may go unseen because Asio watches them

}  // namespace

Loop::Loop() = default;

Loop::~Loop() {
  if (sockets_.is_open()) sockets_.release();  // the set belongs to the net
}

Instant Loop::now() const noexcept { return {read_clock(CLOCK_MONOTONIC)}; }
WallTime Loop::wall() const noexcept { return {read_clock(CLOCK_REALTIME)}; }

void Loop::attach(io::Turn& turn, Pool& pool, RealDisk& disk, RealNet& net) {
  turn_ = &turn;
  pool_ = &pool;
  disk_ = &disk;
  net_ = &net;
  sockets_.assign(net.fd());
  ::prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);  // 50 us otherwise, nearly as much as gather() waits
}

void Loop::wake() {
  const std::uint32_t rest = rest_.exchange(kAwake);
  if (rest == kWaiting) asio::post(context_, [] {});
  if (rest == kGathering) ::syscall(SYS_futex, &rest_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

bool Loop::collect() {
  // While the watch on the sockets is armed, the next wait ends at once if they have something: what woke the loop was the pool
  // or a network thread. With those the loop's own sockets are listeners and connects, for which the look at signals is enough.
  const bool unseen = sockets_armed_ && (net_->threaded() || unseen_steps_ < kUnseenStepsMax);
  unseen_steps_ = unseen ? unseen_steps_ + 1 : 0;
  const bool more = !unseen && net_->collect();
  net_->collect_results();
  if (pool_->has_finished()) {
    pool_->finish_all();
    disk_->flush();  // calls that waited behind the finished ones
  }
  return more;
}

bool Loop::step(io::Shard& shard, Instant limit) {
  if (net_->take_midway() && !turn_->pending() && !poked_) gather();
  collect();
  const bool timed = deadline_ != Instant::never() || net_->next_deadline() != Instant::never();
  const Instant at = timed ? now() : Instant{};
  if (timed) net_->expire(at);
  if (turn_->pending() || poked_ || deadline_ <= at) {
    poked_ = false;
    turn_->run(shard);
    disk_->flush();
    net_->flush();
    if (++busy_steps_ >= kBusyStepsMax) {
      busy_steps_ = 0;
      context_.poll();
    }
    return true;
  }
  busy_steps_ = 0;
  wait(std::min({deadline_, net_->next_deadline(), limit}));
  return false;
}

void Loop::wait(Instant until) {
  if (!sockets_armed_) {
    sockets_armed_ = true;
    sockets_.async_wait(asio::posix::descriptor_base::wait_read, [this](std::error_code) { sockets_armed_ = false; });
  }
  arm_timer(until);
  net_->flush();  // what was called outside a turn
  rest_.store(kWaiting);
  if (!pool_->has_finished() && !net_->has_results()) context_.run_one();
  rest_.store(kAwake);
}

void Loop::gather() {
  const Instant until = std::min({now() + kGatherNs, deadline_, net_->next_deadline()});
  const timespec at{until.ns / kSecond, until.ns % kSecond};
  rest_.store(kGathering);
  if (!pool_->has_finished()) {
    ::syscall(SYS_futex, &rest_, FUTEX_WAIT_BITSET_PRIVATE, kGathering, &at, nullptr, FUTEX_BITSET_MATCH_ANY);
  }
  rest_.store(kAwake);
}

void Loop::arm_timer(Instant until) {
  // A timer that ends too early costs one idle step; moving it costs a system call each time.
  if (until >= timer_at_) return;
  timer_at_ = until;
  timer_.expires_at(asio::steady_timer::time_point(std::chrono::nanoseconds(until.ns)));
  timer_.async_wait([this](std::error_code failed) {
    if (!failed) timer_at_ = Instant::never();
  });
}

}  // namespace rq::real
