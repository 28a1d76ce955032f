// How many lines one kind of event may write to the log: a burst, then silence until its window ends, then one report of how many
// were left out. A thousand connections that fail at once cost a reader fifty lines, not a thousand.
//
//  I1 Within one window of an event at most kLinesMax lines are admitted.
//  I2 Every line that was not is counted in exactly one report.
//  I3 Memory is bounded: events beyond kEventsMax kinds are admitted without being counted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/time.h"

namespace rq {

class LogThrottle {
 public:
  static constexpr std::uint64_t kLinesMax = 50;
  static constexpr std::int64_t kWindowNs = 10 * kSecond;
  static constexpr std::size_t kEventsMax = 128;

  bool admit(std::string_view event, Instant now);

  struct Report {
    std::string event;
    std::uint64_t lines = 0;  // left out in the window that ended
  };
  // One event whose window has ended with lines left out; call it until there is none.
  std::optional<Report> take_report(Instant now);
  bool holding() const { return holding_ > 0; }  // a report is due, now or later

 private:
  struct Entry {
    std::string event;
    Instant ends_at;
    std::uint64_t lines = 0, left_out = 0;
  };
  Entry* entry(std::string_view event);

  std::vector<Entry> entries_;
  std::size_t holding_ = 0;  // entries with left_out > 0
};

}  // namespace rq
