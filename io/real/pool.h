// The threads beside the loop: file calls and offloaded functions run here, nothing else does.
//
//  I1 execute() runs on a worker and touches only what its job owns until it is finished; finish() runs on the loop.
//  I2 Jobs of the slow lane (writes and syncs, which may wait for a device) never occupy every thread, so that a read or an
//     offloaded function does not wait behind them.
//  I3 Finished jobs go back through one list; the loop is woken when it becomes non-empty.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace rq::real {

enum class Lane : unsigned char { quick, slow };

// A job is made with new. From submit() on it is the pool's, until finish(), which deletes or recycles it, or stop(), which
// deletes it.
struct Job {
  Job* next = nullptr;
  Lane lane = Lane::quick;
  virtual void execute() noexcept = 0;
  virtual void finish() = 0;
  Job() = default;
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;
  virtual ~Job() = default;
};

// First in, first out, through Job::next.
class JobQueue {
 public:
  bool empty() const { return head_ == nullptr; }
  void push(Job& job) {
    job.next = nullptr;
    *tail_ = &job;
    tail_ = &job.next;
  }
  Job* pop() {
    Job* job = head_;
    if (job == nullptr) return nullptr;
    head_ = job->next;
    if (head_ == nullptr) tail_ = &head_;
    job->next = nullptr;
    return job;
  }
  Job* take_all() {
    Job* all = head_;
    head_ = nullptr;
    tail_ = &head_;
    return all;
  }

 private:
  Job* head_ = nullptr;
  Job** tail_ = &head_;
};

struct PoolOptions {
  unsigned threads_max = 12;  // started when they are first needed
  unsigned slow_max = 9;      // at most so many of them in the slow lane
};

class Pool {
 public:
  // `wake` is called from workers and must be safe there.
  Pool(PoolOptions options, std::function<void()> wake);
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  // Loop thread only.
  void submit(Job& job);
  bool has_finished();
  std::size_t finish_all();  // calls finish() of every finished job, in the order in which they ended
  // Waits for the jobs that were submitted; their finish() is not called any more. Whatever jobs point to must outlive this call.
  void stop();
  bool idle() const { return outstanding_ == 0; }
  unsigned slow_max() const { return options_.slow_max; }

 private:
  void work();
  Job* next_job(std::unique_lock<std::mutex>& lock);

  const PoolOptions options_;
  const std::function<void()> wake_;
  std::size_t outstanding_ = 0;  // submitted and not finished; loop thread

  std::mutex mutex_;
  std::condition_variable work_;
  JobQueue quick_, slow_;
  unsigned queued_ = 0, idle_ = 0, slow_running_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> threads_;

  std::mutex finished_mutex_;
  JobQueue finished_;
};

}  // namespace rq::real
