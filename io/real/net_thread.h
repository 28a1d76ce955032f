// One thread that does the socket calls and the TLS of its share of the streams. The loop hands calls over in batches, results
// come back in batches.
//
//  I1 Between add() and its `closed` result an endpoint belongs to the thread; so do the buffers of calls that were handed over.
//  I2 Calls of one stream happen in their order. A batch wakes a sleeping thread at most once, and not at all when it holds only
//     reads of streams that have nothing to read: the event that brings their bytes wakes it.
//  I3 Reference counts of chunks are the loop's. It lends the thread empty chunks, at most kLoanMax a pool and never more than
//     reads wait, and takes them back with their bytes. A read that finds none left waits for the next loan, which every flush()
//     after a delivery brings: streams that wait for bytes hold no chunk.
//  I4 After stop() no call is under way and every chunk has gone back. Pools live until then.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "io/real/endpoint.h"
#include "io/real/readiness.h"

namespace rq::real {

class NetThread final : private EndpointOwner {
 public:
  static constexpr std::size_t kLoanMax = 64;  // chunks of one pool

  // `wake` is called from the thread when the first result waits.
  NetThread(unsigned index, std::function<void()> wake);
  ~NetThread() { stop(); }

  // ---- the loop's side
  bool add(Endpoint& endpoint);  // opened; false: errno says why, and the endpoint stays with the loop
  void hand_over(Call call);     // goes out with the next flush()
  void flush();
  bool has_results() const { return has_results_.load(); }
  void collect(EndpointOwner& owner);
  void stop();  // performs what was handed over, ends the thread and drops what was not collected
  std::size_t streams() const { return streams_; }
  std::size_t lent() const;  // chunks

 private:
  enum class State : std::uint8_t { awake, asleep, hungry };  // hungry: asleep, and reads or chunks would give it work
  struct Loan {
    ChunkPool* pool;
    std::size_t lent = 0, waiting = 0;  // chunks that are there; reads that were handed over and have no result yet
  };
  struct Stock {
    ChunkPool* pool;
    std::vector<Chunk*> chunks;
  };

  void lend();
  Loan& loan_of(ChunkPool& pool);

  // ---- the thread's side
  void run();
  int wait(epoll_event (&events)[Readiness::kBatch]);
  bool take_batch();  // false: the thread ends with it
  void serve_starved();
  void settle(Endpoint& endpoint);
  void publish();
  Stock& stock_of(ChunkPool& pool);

  Chunk* take_chunk(Endpoint& endpoint) override;
  void give_back(Chunk* chunk) override;
  void read_done(Endpoint& endpoint, ChunkPool& pool, io::Error error, Chunk* chunk, std::uint32_t bytes) override;
  void write_done(Endpoint& endpoint, io::Error error, std::uint64_t bytes) override;
  void handshake_done(Endpoint& endpoint, io::Error error, std::unique_ptr<io::PeerInfo> agreed) override;
  void closed(Endpoint& endpoint) override;

  const std::function<void()> wake_;
  Readiness ready_;
  int bell_;  // an eventfd in the set, edge-triggered and never read

  // The loop's.
  std::vector<Call> outgoing_;
  std::vector<Chunk*> outgoing_chunks_;
  bool urgent_ = false;  // outgoing_ has more than reads
  std::vector<Loan> loans_;
  std::vector<Result> collected_;
  std::size_t streams_ = 0;

  // Between both.
  std::mutex calls_mutex_;
  std::vector<Call> calls_;
  std::vector<Chunk*> chunks_;
  bool stopping_ = false;
  std::atomic<bool> has_calls_{false};
  std::atomic<State> state_{State::awake};
  std::mutex results_mutex_;
  std::vector<Result> results_;
  std::atomic<bool> has_results_{false};

  // The thread's.
  std::vector<Call> batch_;
  std::vector<Chunk*> batch_chunks_;
  std::vector<Result> done_;
  std::vector<Stock> stocks_;
  std::vector<Endpoint*> starved_;
  std::size_t unread_ = 0;  // endpoints that are unread

  std::thread thread_;
};

}  // namespace rq::real
