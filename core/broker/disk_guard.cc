#include "core/broker/disk_guard.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/probe.h"

namespace rq::broker {

std::uint64_t used_percent(const io::DiskUsage& usage) {
  if (usage.total == 0) return 100;
  const std::uint64_t used = usage.total - std::min(usage.available, usage.total);
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>(static_cast<Wide>(used) * 100 / usage.total);
}

bool pressure_after(const io::DiskUsage& usage, bool before, const Config::Storage& storage) {
  const std::uint64_t used = used_percent(usage);
  const bool short_of_space = usage.available <= storage.min_free_bytes;  // D-27
  if (used >= storage.disk_high_watermark_percent || short_of_space) return true;
  return before && used >= storage.disk_low_watermark_percent;
}

std::uint64_t bytes_until_pressure(const io::DiskUsage& usage, const Config::Storage& storage) {
  if (usage.available <= storage.min_free_bytes) return 0;
  const std::uint64_t free = usage.available - storage.min_free_bytes;
  __extension__ using Wide = unsigned __int128;
  const auto most = static_cast<std::uint64_t>(static_cast<Wide>(usage.total) * storage.disk_high_watermark_percent / 100);
  const std::uint64_t used = usage.total - std::min(usage.available, usage.total);
  return used >= most ? 0 : std::min(free, most - used);
}

DiskGuard::DiskGuard(io::Host& host, const Config::Storage& storage) : host_(host), storage_(storage) {
  io::bind<&DiskGuard::on_usage>(op_, this);
}

void DiskGuard::settle(Now now, std::uint64_t appended_bytes) {
  if (!ready(now)) return;
  if (now.mono < next_at_) {
    const std::uint64_t since = appended_bytes - appended_;
    if (since == 0 || pressure_) return;
    if (since < haste_bytes_) return;
  }
  appended_ = appended_bytes;
  last_at_ = now.mono;
  next_at_ = now.mono + kPeriodNs;
  host_.disk.usage(op_, storage_.data_path, reading_);
}

bool DiskGuard::eviction_due(Now now) const {
  if (!pressure_ || failed_ || !storage_.protective_eviction_enabled) return false;
  const auto grace = static_cast<std::int64_t>(std::min<std::uint64_t>(storage_.disk_pressure_grace_seconds, 1ull << 33));
  return now.mono - pressure_since_ >= grace * kSecond;
}

bool DiskGuard::room_for(std::uint64_t bytes) const {
  if (pressure_ || failed_ || usage_.available < bytes) return false;
  return !pressure_after({usage_.total, usage_.available - bytes}, false, storage_);
}

void DiskGuard::on_usage(io::Op& op) {
  ++readings_;
  fresh_ = true;
  failed_ = static_cast<bool>(op.error);
  if (!failed_) usage_ = reading_;
  haste_bytes_ = bytes_until_pressure(usage_, storage_) / 2;
  const bool before = pressure_;
  pressure_ = failed_ || pressure_after(usage_, before, storage_);
  if (pressure_ == before) return;
  if (pressure_) pressure_since_ = host_.clock.now();
  RQ_SOMETIMES(pressure_, "broker.disk_pressure");
  host_.log.log(pressure_ ? io::Level::warn : io::Level::info, pressure_ ? "disk_pressure_on" : "disk_pressure_off",
                fmt::format("used_percent={} available={} failed={}", used_percent(usage_), usage_.available, failed_));
}

}  // namespace rq::broker
