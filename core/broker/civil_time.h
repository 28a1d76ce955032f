// Dates as text, without a time zone database: everything is UTC.
#pragma once

#include <cstdint>
#include <string>

namespace rq::broker {

std::string rfc3339_seconds(std::int64_t unix_seconds);  // 2026-11-29T23:17:13Z
std::string http_date(std::int64_t unix_seconds);        // Sun, 06 Nov 1994 08:49:37 GMT
// As nsqd prints durations: 1m33.686474458s, 0s, 1h0m5s.
std::string duration_text(std::int64_t ns);

}  // namespace rq::broker
