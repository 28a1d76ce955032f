#include "bench/load/load_shard.h"

#include <fmt/format.h>

namespace rq::load {

void LoadShard::begin(bool warmup, Now now) {
  LoadOptions options = options_;
  if (warmup) options.duration_seconds = options_.warmup_seconds;
  warming_ = warmup;
  phase_.emplace(host_, options, names_for(options_, unique_, warmup), nonce_, now);
}

void LoadShard::expire(Now now) {
  if (!phase_) begin(options_.warmup_seconds > 0, now);
  if (!done()) phase_->expire(now);
}

void LoadShard::settle(Now now) {
  if (done()) return;
  phase_->settle(now);
  if (!phase_->error().empty()) error_ = (warming_ ? "warm-up: " : "") + phase_->error();
  if (!warming_ || !phase_->finished()) return;
  const PhaseResult& result = phase_->result();
  if (options_.consumers > 0 && (result.missing() > 0 || result.duplicates() > 0)) {
    error_ = fmt::format("warm-up: {} messages are missing and {} came twice", result.missing(), result.duplicates());
    return;
  }
  begin(false, now);
}

}  // namespace rq::load
