#include "io/real/net_thread.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "core/base/check.h"
#include "io/real/thread.h"

namespace rq::real {
namespace {

constexpr std::uint64_t kBellTag = 0;

std::uint64_t tag_of(Endpoint& endpoint) { return reinterpret_cast<std::uint64_t>(&endpoint); }
Endpoint& endpoint_of(std::uint64_t tag) { return *reinterpret_cast<Endpoint*>(tag); }

// Moves everything to the end of `to`; a swap when that is empty, so that both keep their memory.
template <class T>
void move_all(std::vector<T>& from, std::vector<T>& to) {
  if (to.empty()) return std::swap(from, to);
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
  from.clear();
}

}  // namespace

NetThread::NetThread(unsigned index, std::function<void()> wake)
    : wake_(std::move(wake)), bell_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  RQ_CHECK(bell_ >= 0 && ready_.add(bell_, kBellTag));
  thread_ = start_thread("rq-net-" + std::to_string(index), [this] { run(); });
}

// ---- the loop's side

bool NetThread::add(Endpoint& endpoint) {
  if (!ready_.add(endpoint.socket.fd(), tag_of(endpoint))) return false;
  ++streams_;
  return true;
}

void NetThread::hand_over(Call call) {
  if (call.kind == Call::Kind::read) {
    ++loan_of(*call.pool).waiting;
  } else {
    urgent_ = true;
  }
  outgoing_.push_back(std::move(call));
}

NetThread::Loan& NetThread::loan_of(ChunkPool& pool) {
  for (Loan& loan : loans_) {
    if (loan.pool == &pool) return loan;
  }
  return loans_.emplace_back(Loan{&pool});
}

std::size_t NetThread::lent() const {
  std::size_t sum = 0;
  for (const Loan& loan : loans_) sum += loan.lent;
  return sum;
}

void NetThread::lend() {
  for (Loan& loan : loans_) {
    // Chunks ride with calls; alone they go only when the thread has none of them.
    if (outgoing_.empty() && loan.lent > 0) continue;
    for (const std::size_t want = std::min(kLoanMax, loan.waiting); loan.lent < want; ++loan.lent) {
      outgoing_chunks_.push_back(loan.pool->take());
    }
  }
}

void NetThread::flush() {
  lend();
  if (outgoing_.empty() && outgoing_chunks_.empty()) return;
  {
    std::lock_guard lock(calls_mutex_);
    move_all(outgoing_, calls_);
    move_all(outgoing_chunks_, chunks_);
    has_calls_.store(true);
  }
  const bool urgent = std::exchange(urgent_, false);
  const State state = state_.load();
  if (state == State::awake || (state == State::asleep && !urgent)) return;
  if (state_.exchange(State::awake) != State::awake) RQ_CHECK(::eventfd_write(bell_, 1) == 0);
}

void NetThread::collect(EndpointOwner& owner) {
  {
    std::lock_guard lock(results_mutex_);
    has_results_.store(false);
    move_all(results_, collected_);
  }
  for (Result& result : collected_) {
    if (result.kind == Result::Kind::closed) --streams_;
    if (result.kind == Result::Kind::read) {
      Loan& loan = loan_of(*result.pool);
      --loan.waiting;
      if (result.chunk != nullptr) --loan.lent;
    }
    deliver(result, owner);
  }
  collected_.clear();
}

void NetThread::stop() {
  if (!thread_.joinable()) return;
  flush();
  {
    std::lock_guard lock(calls_mutex_);
    stopping_ = true;
    has_calls_.store(true);
  }
  RQ_CHECK(::eventfd_write(bell_, 1) == 0);
  thread_.join();
  ::close(bell_);
  for (Result& result : results_) {
    if (result.chunk != nullptr) release_chunk(result.chunk);
  }
  results_.clear();
  for (Stock& stock : stocks_) {
    for (Chunk* chunk : stock.chunks) release_chunk(chunk);
  }
  stocks_.clear();
}

// ---- the thread's side

void NetThread::run() {
  for (bool more = true; more;) {
    epoll_event events[Readiness::kBatch];
    const int count = wait(events);
    // Events first: a close among the calls ends its endpoint, and none of the events just taken may be one of it.
    for (int i = 0; i < count; ++i) {
      if (events[i].data.u64 == kBellTag) continue;
      Endpoint& endpoint = endpoint_of(events[i].data.u64);
      endpoint.ready(events[i].events, *this);
      settle(endpoint);
    }
    more = take_batch();
    publish();
  }
}

// The counterpart of flush(): whoever is second of "calls are there" and "I sleep" sees the other.
int NetThread::wait(epoll_event (&events)[Readiness::kBatch]) {
  state_.store(unread_ > 0 || !starved_.empty() ? State::hungry : State::asleep);
  const int count = ready_.take(events, /*wait=*/!has_calls_.load());
  state_.store(State::awake);
  return count;
}

bool NetThread::take_batch() {
  if (!has_calls_.load()) return true;
  bool more = true;
  {
    std::lock_guard lock(calls_mutex_);
    has_calls_.store(false);
    std::swap(calls_, batch_);
    std::swap(chunks_, batch_chunks_);
    more = !stopping_;
  }
  for (Chunk* chunk : batch_chunks_) give_back(chunk);
  if (!batch_chunks_.empty()) serve_starved();
  batch_chunks_.clear();
  for (Call& call : batch_) {
    perform(call, *this);
    settle(*call.endpoint);
  }
  batch_.clear();
  return more;
}

void NetThread::serve_starved() {
  std::vector<Endpoint*> hungry;
  std::swap(hungry, starved_);
  for (Endpoint* endpoint : hungry) {
    endpoint->starved = false;
    if (endpoint->pool != nullptr) endpoint->try_read(*this);
    settle(*endpoint);
  }
}

void NetThread::settle(Endpoint& endpoint) {
  const bool unread = endpoint.socket.fd() >= 0 && endpoint.pool == nullptr && endpoint.socket.has_input();
  if (unread == endpoint.unread) return;
  endpoint.unread = unread;
  unread_ = unread ? unread_ + 1 : unread_ - 1;
}

void NetThread::publish() {
  if (done_.empty()) return;
  bool first = false;
  {
    std::lock_guard lock(results_mutex_);
    first = results_.empty();
    move_all(done_, results_);
    has_results_.store(true);
  }
  if (first) wake_();
}

NetThread::Stock& NetThread::stock_of(ChunkPool& pool) {
  for (Stock& stock : stocks_) {
    if (stock.pool == &pool) return stock;
  }
  return stocks_.emplace_back(Stock{&pool, {}});
}

Chunk* NetThread::take_chunk(Endpoint& endpoint) {
  std::vector<Chunk*>& chunks = stock_of(*endpoint.pool).chunks;
  if (chunks.empty()) {
    if (!std::exchange(endpoint.starved, true)) starved_.push_back(&endpoint);
    return nullptr;
  }
  Chunk* chunk = chunks.back();
  chunks.pop_back();
  return chunk;
}

void NetThread::give_back(Chunk* chunk) { stock_of(*chunk->pool).chunks.push_back(chunk); }

void NetThread::read_done(Endpoint& endpoint, ChunkPool& pool, io::Error error, Chunk* chunk, std::uint32_t bytes) {
  done_.push_back({Result::Kind::read, &endpoint, error, bytes, &pool, chunk});
}

void NetThread::write_done(Endpoint& endpoint, io::Error error, std::uint64_t bytes) {
  done_.push_back({Result::Kind::write, &endpoint, error, bytes});
}

void NetThread::handshake_done(Endpoint& endpoint, io::Error error, std::unique_ptr<io::PeerInfo> agreed) {
  done_.push_back({Result::Kind::handshake, &endpoint, error, 0, nullptr, nullptr, std::move(agreed)});
}

void NetThread::closed(Endpoint& endpoint) {
  if (std::exchange(endpoint.starved, false)) std::erase(starved_, &endpoint);
  done_.push_back({Result::Kind::closed, &endpoint});
}

}  // namespace rq::real
