#include "core/queue/scrub.h"

#include <algorithm>

#include "core/base/probe.h"
#include "core/queue/topic.h"

namespace rq::queue {
namespace {

constexpr std::uint64_t kIntervalSecondsMax = 1ull << 33;
constexpr std::uint64_t kRateMax = 1ull << 40;

}  // namespace

Scrub::Scrub(Shared& shared) : shared_(shared) { io::bind<&Scrub::on_op>(op_, this); }

void Scrub::request(WaiterId waiter) {
  waiting_.push_back(waiter);
  if (ended_) answer(waiting_, {Code::exiting, "exiting"});
}

void Scrub::answer(std::vector<WaiterId>& waiters, const Outcome& outcome) {
  for (WaiterId waiter : waiters) shared_.events.scrubbed.push_back({waiter, outcome, outcome.ok() ? records_ : 0});
  waiters.clear();
}

void Scrub::end(const Outcome& outcome) {
  ended_ = true;
  next_pass_ = Instant::never();
  answer(serving_, outcome);
  answer(waiting_, outcome);
}

Instant Scrub::next_deadline(Now now) const {
  if (op_.in_flight) return Instant::never();
  if (running_) return ended_ ? now.mono : std::max(ready_at_, now.mono);
  return ended_ ? Instant::never() : next_pass_;
}

void Scrub::begin_pass(Now now) {
  running_ = true;
  began_ = ready_at_ = now.mono;
  records_ = 0;
  topic_.clear();
  serving_.swap(waiting_);
}

void Scrub::end_pass(Now now) {
  running_ = false;
  if (ended_) return;
  const std::int64_t took_ns = std::max<std::int64_t>(0, now.mono - began_);
  shared_.metrics.scrub_us.add_us(static_cast<std::uint64_t>(took_ns) / 1'000);
  shared_.host.log.log(io::Level::info, "scrub_done", "records=" + std::to_string(records_));
  answer(serving_, {});
  const auto interval = static_cast<std::int64_t>(std::min(shared_.options.scrub_interval_seconds, kIntervalSecondsMax));
  next_pass_ = now.mono + interval * kSecond;
}

// The lowest segment under lease of the Topic where the pass is, or of the next one that has any. False at the end of the pass.
bool Scrub::next_segment(const Topics& topics) {
  auto at = topics.find(topic_);
  if (at == topics.end() || at->second->owner() != owner_ || at->second->disk() == nullptr ||
      at->second->disk()->leased() == nullptr) {
    for (at = topics.upper_bound(topic_); at != topics.end(); ++at)
      if (at->second->phase() == Topic::Phase::live && at->second->disk() != nullptr && at->second->disk()->lease_sealed()) break;
    if (at == topics.end()) return false;
    topic_ = at->first;
    owner_ = at->second->owner();
  }
  const storage::SegmentInfo& segment = *at->second->disk()->leased();
  check_.begin(shared_.paths.segment(topic_, segment.base), shared_.paths.sidecar(topic_, segment.base), segment);
  counted_ = 0;
  checking_ = true;
  return true;
}

void Scrub::end_segment(Topic& topic, Now now) {
  checking_ = false;
  if (ended_ || topic.phase() != Topic::Phase::live) {
    RQ_SOMETIMES(!ended_, "scrub: a Topic is deleted while its segments are read");
    topic.disk()->release_leases();
    topic.mark();
    return;
  }
  if (check_.out_of_handles()) {
    ready_at_ = now.mono + storage::ScriptRetries::kAfterNs;
    return;
  }
  if (check_.fault()) {
    storage::Fault fault = *check_.fault();
    fault.file = shared_.paths.relative(fault.file);
    fault.what = "scrub of Topic " + topic.name() + ": " + fault.what;
    shared_.set_fault(fault);
    return;
  }
  records_ += check_.records();
  topic.disk()->release_leased();
  if (topic.exclusive()) topic.mark();  // an eviction may wait for it
}

void Scrub::advance(Now now, const Topics& topics) {
  while (!op_.in_flight && !shared_.fault) {
    if (!running_) {
      if (ended_ || (waiting_.empty() && now.mono < next_pass_)) return;
      begin_pass(now);
    }
    if (!checking_) {
      const auto at = topics.find(topic_);
      const bool holds = at != topics.end() && at->second->owner() == owner_ && at->second->disk() != nullptr &&
                         at->second->disk()->leased() != nullptr;
      if (holds && (ended_ || at->second->phase() != Topic::Phase::live)) {
        end_segment(*at->second, now);
        continue;
      }
      if (!ended_ && now.mono < ready_at_) return;
      if (ended_ || !next_segment(topics)) {
        end_pass(now);
        continue;
      }
    }
    Topic& topic = *topics.at(topic_);  // its deletion waits for the lease
    if (ended_ || topic.phase() != Topic::Phase::live) {
      check_.give_up();
    } else if (now.mono < ready_at_) {
      return;
    }
    if (check_.poll({shared_.host.disk, op_})) end_segment(topic, now);
    const std::uint64_t rate = std::min(shared_.options.scrub_bytes_per_second, kRateMax);
    const std::uint64_t piece = check_.bytes_read() - counted_;  // at most 1 MiB
    counted_ += piece;
    ready_at_ = std::max(ready_at_, now.mono) + static_cast<std::int64_t>(piece * 1'000'000'000ull / rate);
  }
}

}  // namespace rq::queue
