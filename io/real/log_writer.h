// The thread that writes log lines, so that a slow or stopped reader of them never holds up the loop.
//
//  I1 push() never waits for the reader: what does not fit into the queue is refused whole.
//  I2 Lines leave in the order in which they came, and never torn by a refusal.
//  I3 A reader that is gone ends the writing; everything after is taken and forgotten. Any other failure, a full volume say,
//     costs the lines that were being written, and the next ones are tried again.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
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

  // Lines that were taken and could not be written, so far. Any thread.
  std::uint64_t lost();

  static constexpr std::chrono::milliseconds kLastWait{1'000};

 private:
  void run();
  enum class Written : unsigned char { all, failed, reader_gone };
  Written write_all(std::string_view& text);  // what is not written is left in it

  const int fd_;
  const std::size_t queue_bytes_max_;
  std::mutex mutex_;
  std::condition_variable something_, nothing_;
  std::string queue_;
  bool busy_ = false;  // the thread holds lines that it has not written yet
  bool stopping_ = false;
  bool reader_gone_ = false;
  std::uint64_t lost_ = 0;
  std::thread thread_;  // started by the first push
};

}  // namespace rq::real
