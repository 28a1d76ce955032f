#include "core/broker/civil_time.h"

#include <fmt/format.h>

#include "core/base/time.h"

namespace rq::broker {
namespace {

struct Civil {
  std::int64_t year;
  unsigned month, day, weekday;  // month and day from 1, weekday 0 = Sunday
  unsigned hour, minute, second;
};

// Days since 1970-01-01 to a date of the Gregorian calendar, counted in eras of 400 years that begin on 1 March.
Civil civil(std::int64_t unix_seconds) {
  std::int64_t days = unix_seconds / 86'400;
  std::int64_t rest = unix_seconds % 86'400;
  if (rest < 0) {
    rest += 86'400;
    --days;
  }
  const std::int64_t shifted = days + 719'468;
  const std::int64_t era = (shifted >= 0 ? shifted : shifted - 146'096) / 146'097;
  const auto day_of_era = static_cast<unsigned>(shifted - era * 146'097);
  const unsigned year_of_era = (day_of_era - day_of_era / 1'460 + day_of_era / 36'524 - day_of_era / 146'096) / 365;
  const unsigned day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const unsigned shifted_month = (5 * day_of_year + 2) / 153;
  Civil out{};
  out.day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
  out.month = shifted_month < 10 ? shifted_month + 3 : shifted_month - 9;
  out.year = era * 400 + year_of_era + (out.month <= 2 ? 1 : 0);
  out.weekday = static_cast<unsigned>(((days % 7) + 11) % 7);
  out.hour = static_cast<unsigned>(rest / 3'600);
  out.minute = static_cast<unsigned>(rest / 60 % 60);
  out.second = static_cast<unsigned>(rest % 60);
  return out;
}

}  // namespace

std::string rfc3339_seconds(std::int64_t unix_seconds) {
  const Civil c = civil(unix_seconds);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", c.year, c.month, c.day, c.hour, c.minute, c.second);
}

std::string http_date(std::int64_t unix_seconds) {
  static constexpr const char* kDays[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  static constexpr const char* kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const Civil c = civil(unix_seconds);
  return fmt::format("{}, {:02} {} {:04} {:02}:{:02}:{:02} GMT", kDays[c.weekday], c.day, kMonths[c.month - 1], c.year, c.hour,
                     c.minute, c.second);
}

std::string duration_text(std::int64_t ns) {
  if (ns <= 0) return "0s";
  const std::int64_t seconds = ns / kSecond;
  std::string out;
  if (seconds >= 3'600) out += fmt::format("{}h", seconds / 3'600);
  if (seconds >= 60) out += fmt::format("{}m", seconds / 60 % 60);
  out += std::to_string(seconds % 60);
  if (const std::int64_t part = ns % kSecond; part != 0) {
    std::string digits = fmt::format(".{:09}", part);
    digits.erase(digits.find_last_not_of('0') + 1);
    out += digits;
  }
  return out + "s";
}

}  // namespace rq::broker
