// Scrub: reads every sealed segment of every Topic at a bounded rate and checks it against what was recorded at sealing (page 30
// section 6.2). A pass goes through the Topics by name; it begins at its time, and at once when somebody asks for one.
//
//  I1 One segment at a time, one call in flight, at most 1 MiB of memory.
//  I2 The sealed segments of a Topic are leased when the pass reaches it, and given back one by one: collection, eviction and the
//     deletion of the Topic wait for what is leased. A Topic that is being deleted gets its leases back at the next completion.
//  I3 Whatever does not match is a storage fault that names file, offset and position (D-42a).
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/queue/shared.h"
#include "core/storage/segment_check.h"

namespace rq::queue {

class Scrub {
 public:
  using Topics = std::map<std::string, std::unique_ptr<Topic>, std::less<>>;
  explicit Scrub(Shared& shared);

  void schedule(Instant first) { next_pass_ = first; }
  // A pass of its own for this waiter, behind the one that runs. One ScrubDone follows.
  void request(WaiterId waiter);
  void advance(Now now, const Topics& topics);
  // Every waiter gets the outcome; the pass ends, and no further one begins.
  void end(const Outcome& outcome);

  Instant next_deadline(Now now) const;
  bool idle() const { return !running_ && !op_.in_flight; }  // nothing is open
  bool asked() const { return !waiting_.empty() || !serving_.empty(); }

 private:
  void on_op(io::Op&) {}
  void begin_pass(Now now);
  bool next_segment(const Topics& topics);
  void end_segment(Topic& topic, Now now);
  void end_pass(Now now);
  void answer(std::vector<WaiterId>& waiters, const Outcome& outcome);
  Instant due(std::int64_t after_ns, Now now) const { return now.mono + after_ns; }

  Shared& shared_;
  io::Op op_;
  storage::SegmentCheck check_;
  std::vector<WaiterId> waiting_, serving_;  // for the next pass; for this one
  Instant next_pass_ = Instant::never();
  bool running_ = false;
  bool checking_ = false;  // check_ has a segment
  bool ended_ = false;
  Instant began_{};
  Instant ready_at_{};         // the rate allows the next piece then
  std::uint64_t counted_ = 0;  // of check_.bytes_read(): already in ready_at_
  std::uint64_t records_ = 0;  // of this pass
  std::string topic_;          // where the pass is; the segment's Topic while checking_
  std::uint64_t owner_ = 0;    // of that Topic: another one may have its name by now
};

}  // namespace rq::queue
