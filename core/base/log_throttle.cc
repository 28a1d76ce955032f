#include "core/base/log_throttle.h"

namespace rq {

LogThrottle::Entry* LogThrottle::entry(std::string_view event) {
  for (Entry& known : entries_)
    if (known.event == event) return &known;
  if (entries_.size() >= kEventsMax) return nullptr;
  return &entries_.emplace_back(Entry{std::string(event), Instant{}});
}

bool LogThrottle::admit(std::string_view event, Instant now) {
  Entry* known = entry(event);
  if (known == nullptr) return true;
  if (now >= known->ends_at && known->left_out == 0) {
    known->ends_at = now + kWindowNs;
    known->lines = 0;
  }
  if (known->lines < kLinesMax) {
    ++known->lines;
    return true;
  }
  if (known->left_out++ == 0) ++holding_;
  return false;
}

std::optional<LogThrottle::Report> LogThrottle::take_report(Instant now) {
  if (holding_ == 0) return std::nullopt;
  for (Entry& known : entries_) {
    if (known.left_out == 0 || now < known.ends_at) continue;
    Report report{known.event, known.left_out};
    known.left_out = 0;
    --holding_;
    return report;
  }
  return std::nullopt;
}

}  // namespace rq
