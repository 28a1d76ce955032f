#include "io/real/pool.h"

#include "io/real/thread.h"

namespace rq::real {

Pool::Pool(PoolOptions options, std::function<void()> wake) : options_(options), wake_(std::move(wake)) {}

Pool::~Pool() { stop(); }

void Pool::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  work_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  Job* job = finished_.take_all();
  while (job != nullptr) {
    Job* next = job->next;
    delete job;
    job = next;
  }
}

void Pool::submit(Job& job) {
  ++outstanding_;
  bool start = false;
  {
    std::lock_guard lock(mutex_);
    (job.lane == Lane::slow ? slow_ : quick_).push(job);
    ++queued_;
    start = queued_ > idle_ && threads_.size() < options_.threads_max;
  }
  if (!start) {
    work_.notify_one();
    return;
  }
  threads_.push_back(start_thread("rq-pool", [this] { work(); }));
}

Job* Pool::next_job(std::unique_lock<std::mutex>& lock) {
  for (;;) {
    if (Job* job = quick_.pop()) return job;
    if (slow_running_ < options_.slow_max) {
      if (Job* job = slow_.pop()) return job;
    }
    if (stopping_ && slow_.empty()) return nullptr;
    ++idle_;
    work_.wait(lock);
    --idle_;
  }
}

void Pool::work() {
  std::unique_lock lock(mutex_);
  while (Job* job = next_job(lock)) {
    const bool slow = job->lane == Lane::slow;
    --queued_;
    if (slow) ++slow_running_;
    lock.unlock();
    job->execute();
    bool first = false;
    {
      std::lock_guard finished(finished_mutex_);
      first = finished_.empty();
      finished_.push(*job);
    }
    if (first) wake_();
    lock.lock();
    if (slow) --slow_running_;
  }
  work_.notify_one();  // one that waited for a place in the slow lane may have to end, too
}

bool Pool::has_finished() {
  std::lock_guard lock(finished_mutex_);
  return !finished_.empty();
}

std::size_t Pool::finish_all() {
  Job* job = nullptr;
  {
    std::lock_guard lock(finished_mutex_);
    job = finished_.take_all();
  }
  std::size_t count = 0;
  while (job != nullptr) {
    Job* next = job->next;
    job->next = nullptr;
    --outstanding_;
    ++count;
    job->finish();
    job = next;
  }
  return count;
}

}  // namespace rq::real
