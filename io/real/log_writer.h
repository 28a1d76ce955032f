// The thread that writes log lines, so that a slow or stopped reader of them never holds up the loop.
//
//  I1 push() never waits for the reader: what does not fit into the queue is refused whole.
//  I2 Lines leave in the order in which they came, and never torn by a refusal.
//  I3 A reader that is gone ends the writing; everything after is taken and forgotten.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

namespace rq::real {

class LogWriter {
 public:
  static constexpr std::size_t kQueueBytesMax = 1 << 20;  // what a reader that stopped may cost

  explicit LogWriter(int fd, std::size_t queue_bytes_max = kQueueBytesMax) : fd_(fd), queue_bytes_max_(queue_bytes_max) {}
  ~LogWriter();  // waits for a reader that reads, at most kLastWait
  LogWriter(const LogWriter&) = delete;

  // Whole lines. False: the queue holds queue_bytes_max already, nothing was taken. Any thread.
  bool push(std::string_view lines);
  // Waits until everything taken before is written, at most `limit`; false when it is not. Any thread but the writer's.
  bool drain(std::chrono::milliseconds limit);

  static constexpr std::chrono::milliseconds kLastWait{1'000};

 private:
  void run();
  bool write_all(std::string_view text);

  const int fd_;
  const std::size_t queue_bytes_max_;
  std::mutex mutex_;
  std::condition_variable something_, nothing_;
  std::string queue_;
  bool busy_ = false;  // the thread holds lines that it has not written yet
  bool stopping_ = false;
  bool reader_gone_ = false;
  std::thread thread_;  // started by the first push
};

}  // namespace rq::real
