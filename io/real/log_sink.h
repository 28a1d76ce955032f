// Log lines on a file descriptor (page 31 section 1.9): text or JSON, one event a line, buffered until the end of a turn.
#pragma once

#include <string>
#include <string_view>

#include "core/io/ports.h"

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

class StdoutLog final : public io::LogSink {
 public:
  StdoutLog(const io::Clock& clock, int fd, LogFilter filter) : clock_(clock), fd_(fd), filter_(filter) {}
  ~StdoutLog() { flush(); }
  void set_format(LogFormat format) { format_ = format; }
  void set_filter(LogFilter filter) { filter_ = filter; }
  void log(io::Level level, std::string_view event, std::string_view fields) override;
  void flush();
  std::uint64_t dropped() const { return dropped_; }

 private:
  static constexpr std::size_t kBufferMax = 1 << 20;  // what a reader that stopped may cost

  const io::Clock& clock_;
  int fd_;
  LogFilter filter_;
  LogFormat format_ = LogFormat::text;
  std::string buffer_;
  std::uint64_t dropped_ = 0;
};

}  // namespace rq::real
