// Log lines on a file descriptor (page 31 section 1.9): text or JSON, one event a line. Lines are collected until the end of a
// turn and then handed to a thread that writes them; what it cannot take is counted, and the count is a line of its own.
#pragma once

#include <string>
#include <string_view>
#include <thread>

#include "core/base/log_throttle.h"
#include "core/io/ports.h"
#include "io/real/log_writer.h"

namespace rq::real {

enum class LogFormat : std::uint8_t { text, json };

// RUST_LOG: "level" or "target=level,..."; the last part that concerns us wins. Missing or malformed: info. "off" and unknown
// targets: see the cases in tests/io/log_sink_test.cc.
struct LogFilter {
  bool off = false;
  io::Level least = io::Level::info;
  static LogFilter parse(std::string_view text);
  bool passes(io::Level level) const { return !off && level >= least; }
};

// One line with its line feed. `fields` is "key=value key=\"quoted value\"".
std::string format_line(LogFormat format, WallTime at, io::Level level, std::string_view event, std::string_view fields);

// Belongs to one thread, but for emergency().
class StdoutLog final : public io::LogSink {
 public:
  StdoutLog(const io::Clock& clock, int fd, LogFilter filter, std::size_t queue_bytes_max = LogWriter::kQueueBytesMax)
      : clock_(clock), filter_(filter), writer_(fd, queue_bytes_max) {}
  ~StdoutLog() { flush(); }
  void set_format(LogFormat format) { format_ = format; }
  void set_filter(LogFilter filter) { filter_ = filter; }
  // Errors always pass; of other events as many as LogThrottle admits.
  void log(io::Level level, std::string_view event, std::string_view fields) override;
  void flush();   // hands over what was logged since the last one; never waits
  void finish();  // flush(), and waits until it is written, at most LogWriter::kLastWait
  // Before the process aborts, on whatever thread: finish() on the owner's, else waits for what was handed over.
  void emergency();
  std::uint64_t dropped() { return refused_ + writer_.lost(); }  // lines for which there was no room, here or at the other end

 private:
  void append(io::Level level, std::string_view event, std::string_view fields);
  void report_left_out();

  const io::Clock& clock_;
  LogFilter filter_;
  LogFormat format_ = LogFormat::text;
  LogThrottle throttle_;
  std::string buffer_;
  std::uint64_t lines_ = 0;    // in buffer_
  std::uint64_t refused_ = 0;  // lines that the writer did not take
  std::uint64_t told_ = 0;     // of dropped(), in a line that was taken
  const std::thread::id owner_ = std::this_thread::get_id();
  LogWriter writer_;
};

}  // namespace rq::real
