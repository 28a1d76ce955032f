// Removing the front of a TopicLog (page 20 section 1.2 U10, page 30 section 6).
#include <algorithm>

#include "core/base/probe.h"
#include "core/storage/topic_log.h"

namespace rq::storage {

std::size_t TopicLog::collectable(Position retain_from) const {
  const std::size_t most = leased() == nullptr ? sealed_.size() : sealed_index(lease_from_);
  std::size_t count = 0;
  while (count < most && sealed_[count].last_position < retain_from) ++count;
  return count;
}

std::size_t TopicLog::sealed_index(LogIndex base) const {
  const auto found = std::lower_bound(sealed_.begin(), sealed_.end(), base,
                                      [](const SegmentInfo& segment, LogIndex wanted) { return segment.base < wanted; });
  return static_cast<std::size_t>(found - sealed_.begin());
}

bool TopicLog::lease_sealed() {
  RQ_CHECK(leased() == nullptr);
  if (sealed_.empty()) return false;
  lease_from_ = sealed_.front().base;
  lease_through_ = sealed_.back().base;
  return true;
}

const SegmentInfo* TopicLog::leased() const {
  return lease_from_ > lease_through_ ? nullptr : &sealed_[sealed_index(lease_from_)];
}

void TopicLog::release_leased() {
  RQ_CHECK(leased() != nullptr);
  lease_from_ = leased()->base + 1;
}

void TopicLog::release_leases() { lease_from_ = lease_through_ + 1; }

bool TopicLog::active_collectable(Position retain_from) const {
  return sealed_.empty() && active_.message_count > 0 && written() < retain_from;
}

void TopicLog::collect(std::size_t count, Script& script) {
  RQ_CHECK(count > 0 && count <= sealed_.size());
  RQ_SOMETIMES(true, "log: segments are collected");
  const Position last = sealed_[count - 1].last_position;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string log = shared_.paths.segment(name_, sealed_[i].base);
    const std::string sidecar = shared_.paths.sidecar(name_, sealed_[i].base);
    shared_.reads.forget(log);
    shared_.reads.forget(sidecar);
    script.unlink(log);
    script.unlink(sidecar);
    script.sync_dir(parent_of(log));
    shared_.pages.drop_segment(serial_, sealed_[i].base);
  }
  sealed_.erase(sealed_.begin(), sealed_.begin() + static_cast<std::ptrdiff_t>(count));
  std::erase_if(absent_, [last](const Range& range) { return range.last <= last; });
  if (!absent_.empty() && absent_.front().first <= last + 1) {
    absent_.front().first = 1;
  } else {
    absent_.insert(absent_.begin(), Range{1, last});
  }
}

}  // namespace rq::storage
