#include "core/queue/metadata_budget.h"

#include <algorithm>
#include <iterator>

#include "core/base/check.h"
#include "core/base/probe.h"
#include "core/queue/topic.h"
#include "core/storage/page_cache.h"

namespace rq::queue {

MetadataBudget::MetadataBudget(std::uint64_t bytes)
    : bytes_(bytes),
      active_max_((bytes - std::min(bytes, storage::PageCache::kPageCharge)) / kMessageBytes) {}  // one page is always possible

std::uint64_t MetadataBudget::left_for_pages() const { return bytes_ - std::min(bytes_, active_bytes()); }

bool MetadataBudget::fits(std::uint64_t tails, std::uint64_t messages) const {
  return tails == 0 || tails + messages <= active_max_;
}

void MetadataBudget::set_active(Topic& topic, std::uint64_t messages) {
  Tail& tail = topic.metadata;
  if (tail.messages == messages) return;
  if (tail.sealing) {
    sealing_ -= tail.messages;
  } else if (tail.messages > 0) {
    by_size_.erase({tail.messages, topic.owner()});
  }
  const bool freed = messages < tail.messages;
  active_ = active_ - tail.messages + messages;
  tail.messages = messages;
  if (messages == 0) {
    tail.sealing = false;
  } else if (tail.sealing) {
    sealing_ += messages;
  } else {
    by_size_.emplace(std::pair{messages, topic.owner()}, &topic);
  }
  if (freed) wake();
}

void MetadataBudget::wake() {
  if (!waiting_.empty()) waiting_.front()->mark();
}

bool MetadataBudget::admit(Topic& topic, std::uint64_t messages) {
  if (waiting_.empty() || waiting_.front() == &topic) {
    if (fits(active_, messages)) {
      leave(topic);
      return true;
    }
    seal_for(messages);
  }
  if (!topic.metadata.waiting) {
    topic.metadata.waiting = true;
    waiting_.push_back(&topic);
  }
  return false;
}

void MetadataBudget::leave(Topic& topic) {
  if (!std::exchange(topic.metadata.waiting, false)) return;
  std::erase(waiting_, &topic);
  wake();
}

void MetadataBudget::after_append(Topic& topic) {
  if (active_ > active_max_ && !topic.metadata.sealing) seal(topic);
}

void MetadataBudget::seal_for(std::uint64_t messages) {
  while (!by_size_.empty() && !fits(active_ - sealing_, messages)) {
    RQ_SOMETIMES(true, "metadata: the largest tail is sealed to make room");
    seal(*std::prev(by_size_.end())->second);
  }
}

void MetadataBudget::seal(Topic& topic) {
  Tail& tail = topic.metadata;
  RQ_CHECK(!tail.sealing && tail.messages > 0);
  by_size_.erase({tail.messages, topic.owner()});
  tail.sealing = true;
  sealing_ += tail.messages;
  topic.mark();
}

}  // namespace rq::queue
