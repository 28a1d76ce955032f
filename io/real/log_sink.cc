#include "io/real/log_sink.h"

#include <fmt/format.h>
#include <time.h>

#include <optional>

#include "core/base/text.h"

namespace rq::real {
namespace {

constexpr std::string_view kTarget = "rustqueued";
constexpr std::size_t kTurnBytes = 64 * 1024;  // handed over before the end of the turn

std::optional<LogFilter> parse_level(std::string_view text) {
  const std::string name = lower(text);
  if (name == "off") return LogFilter{true, io::Level::error};
  if (name == "error") return LogFilter{false, io::Level::error};
  if (name == "warn") return LogFilter{false, io::Level::warn};
  if (name == "info") return LogFilter{false, io::Level::info};
  if (name == "debug" || name == "trace") return LogFilter{false, io::Level::debug};
  return std::nullopt;
}

const char* name_of(io::Level level) {
  switch (level) {
    case io::Level::debug:
      return "DEBUG";
    case io::Level::info:
      return "INFO";
    case io::Level::warn:
      return "WARN";
    case io::Level::error:
      return "ERROR";
  }
  return "INFO";
}

std::string timestamp(WallTime at) {
  const time_t seconds = static_cast<time_t>(at.ns / kSecond);
  tm utc{};
  ::gmtime_r(&seconds, &utc);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}Z", utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday, utc.tm_hour,
                     utc.tm_min, utc.tm_sec, at.ns % kSecond / kMicrosecond);
}

// A line stays one line, and JSON stays JSON, whatever a peer put into a name.
void append_quoted(std::string& out, std::string_view text) {
  out.push_back('"');
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out.push_back('\\');
      out.push_back(c);
    } else if (byte < 0x20 || byte >= 0x7f) {
      out += fmt::format("\\u{:04x}", byte);
    } else {
      out.push_back(c);
    }
  }
  out.push_back('"');
}

// Takes the next key=value off the front; false at the end. The value loses its quotes and escapes.
bool next_field(std::string_view& rest, std::string_view& key, std::string& value) {
  while (rest.starts_with(' ')) rest.remove_prefix(1);
  if (rest.empty()) return false;
  const std::size_t end = rest.find_first_of("= ");
  key = rest.substr(0, end);
  value.clear();
  if (end == std::string_view::npos || rest[end] == ' ') {
    rest.remove_prefix(key.size());
    return true;
  }
  rest.remove_prefix(end + 1);
  if (!rest.starts_with('"')) {
    const std::size_t space = rest.find(' ');
    value = rest.substr(0, space);
    rest.remove_prefix(value.size());
    return true;
  }
  std::size_t i = 1;
  for (; i < rest.size() && rest[i] != '"'; ++i) {
    if (rest[i] == '\\' && i + 1 < rest.size()) ++i;
    value.push_back(rest[i]);
  }
  rest.remove_prefix(std::min(i + 1, rest.size()));
  return true;
}

void append_json_fields(std::string& out, std::string_view fields) {
  std::string_view key;
  std::string value;
  while (next_field(fields, key, value)) {
    out.push_back(',');
    append_quoted(out, key);
    out.push_back(':');
    append_quoted(out, value);
  }
}

void append_text(std::string& out, std::string_view text) {
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte >= 0x7f) {
      out += fmt::format("\\x{:02x}", byte);
    } else {
      out.push_back(c);
    }
  }
}

}  // namespace

LogFilter LogFilter::parse(std::string_view text) {
  LogFilter general, own;
  bool own_set = false;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    const std::string_view part = text.substr(0, comma);
    text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
    if (part.empty()) continue;
    const std::size_t equals = part.find('=');
    const std::optional<LogFilter> level = parse_level(equals == std::string_view::npos ? part : part.substr(equals + 1));
    if (!level) return {};
    if (equals == std::string_view::npos) {
      general = *level;
    } else if (part.substr(0, equals) == kTarget) {
      own = *level;
      own_set = true;
    }
  }
  return own_set ? own : general;
}

std::string format_line(LogFormat format, WallTime at, io::Level level, std::string_view event, std::string_view fields) {
  if (format == LogFormat::text) {
    std::string line = fmt::format("{} {:>5} {}: ", timestamp(at), name_of(level), kTarget);
    append_text(line, event);
    if (!fields.empty()) line.push_back(' ');
    append_text(line, fields);
    line.push_back('\n');
    return line;
  }
  std::string line =
      fmt::format("{{\"timestamp\":\"{}\",\"level\":\"{}\",\"fields\":{{\"message\":", timestamp(at), name_of(level));
  append_quoted(line, event);
  append_json_fields(line, fields);
  line += fmt::format("}},\"target\":\"{}\"}}\n", kTarget);
  return line;
}

void StdoutLog::append(io::Level level, std::string_view event, std::string_view fields) {
  buffer_ += format_line(format_, clock_.wall(), level, event, fields);
  ++lines_;
}

void StdoutLog::log(io::Level level, std::string_view event, std::string_view fields) {
  if (!filter_.passes(level)) return;
  if (level != io::Level::error && !throttle_.admit(event, clock_.now())) return;
  append(level, event, fields);
  if (buffer_.size() >= kTurnBytes) flush();
}

void StdoutLog::report_left_out() {
  if (!throttle_.holding()) return;
  const Instant now = clock_.now();
  while (const auto report = throttle_.take_report(now))
    append(io::Level::warn, "log_lines_left_out", fmt::format("event={} lines={}", report->event, report->lines));
}

void StdoutLog::flush() {
  report_left_out();
  if (buffer_.empty()) return;
  if (const std::uint64_t dropped = this->dropped(); dropped > told_) {
    const std::string fields = fmt::format("lines={}", dropped - told_);
    if (writer_.push(format_line(format_, clock_.wall(), io::Level::warn, "log_lines_dropped", fields))) told_ = dropped;
  }
  if (!writer_.push(buffer_)) refused_ += lines_;
  buffer_.clear();
  lines_ = 0;
}

void StdoutLog::finish() {
  flush();
  writer_.drain(LogWriter::kLastWait);
}

void StdoutLog::emergency() {
  if (std::this_thread::get_id() == owner_) flush();
  writer_.drain(LogWriter::kLastWait);
}

}  // namespace rq::real
