// Looks at the volume once a second and says whether publishing must wait (page 30 section 8, page 31 section 2.6). Between the
// two watermarks the last answer holds; a failed reading counts as pressure. Writers that could fill the volume within that
// second bring the next reading forward, so that they are throttled before they meet its end.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "core/broker/config.h"
#include "core/io/ports.h"

namespace rq::broker {

// floor((total - available) * 100 / total); 100 for an empty total.
std::uint64_t used_percent(const io::DiskUsage& usage);
// What holds after this reading, given what held before it.
bool pressure_after(const io::DiskUsage& usage, bool before, const Config::Storage& storage);
// How many more bytes may come into use before pressure starts; 0 when it holds.
std::uint64_t bytes_until_pressure(const io::DiskUsage& usage, const Config::Storage& storage);

class DiskGuard {
 public:
  static constexpr std::int64_t kPeriodNs = kSecond;
  static constexpr std::int64_t kHastePeriodNs = 10 * kMillisecond;  // of readings that were brought forward

  DiskGuard(io::Host& host, const Config::Storage& storage);

  void begin() { begun_ = true; }               // the data directory exists
  bool known() const { return readings_ > 0; }  // a first reading is there, good or bad
  bool failed() const { return failed_; }       // the latest reading failed
  bool pressure() const { return pressure_; }
  const io::DiskUsage& usage() const { return usage_; }  // of the latest good reading
  // Once after each reading.
  bool take_reading() { return std::exchange(fresh_, false); }
  // Pressure has lasted so long that the oldest segments go (protective eviction); not on the word of a reading that failed.
  bool eviction_due(Now now) const;
  // That many bytes more in use would be no pressure either.
  bool room_for(std::uint64_t bytes) const;
  // settle() may have something to do; asked first, since it is called every turn.
  bool ready(Now now) const {
    return begun_ && !op_.in_flight && (now.mono >= next_at_ || now.mono - last_at_ >= kHastePeriodNs);
  }
  // `appended_bytes`: what this process has written since its start.
  void settle(Now now, std::uint64_t appended_bytes);
  void end() { begun_ = false; }
  Instant next_deadline() const { return begun_ && !op_.in_flight ? next_at_ : Instant::never(); }

 private:
  void on_usage(io::Op& op);

  io::Host& host_;
  const Config::Storage& storage_;
  io::Op op_;
  io::DiskUsage reading_, usage_;
  bool begun_ = false, failed_ = false, pressure_ = false, fresh_ = false;
  Instant pressure_since_{};
  std::uint64_t readings_ = 0;
  Instant next_at_{}, last_at_{};
  std::uint64_t appended_ = 0;              // when the latest reading began
  std::uint64_t haste_bytes_ = UINT64_MAX;  // so many more bring the next one forward
};

}  // namespace rq::broker
