// The load generator as one shard: the warm-up if there is one, then the run. It works on ports, so the same object runs against
// a real server and against the Broker in the simulated world.
#pragma once

#include <optional>
#include <string>

#include "bench/load/phase.h"
#include "core/io/turn.h"

namespace rq::load {

class LoadShard final : public io::Shard {
 public:
  // `unique`: see names_for(). `nonce`: tells this run's messages from others'.
  LoadShard(io::Host& host, LoadOptions options, std::string unique, std::uint64_t nonce)
      : host_(host), options_(std::move(options)), unique_(std::move(unique)), nonce_(nonce) {}

  void expire(Now now) override;
  void settle(Now now) override;
  Instant next_deadline() const override { return phase_ && !done() ? phase_->next_deadline() : Instant::never(); }

  bool done() const { return !error_.empty() || (phase_ && !warming_ && phase_->finished()); }
  const std::string& error() const { return error_; }  // set: there is no result
  const LoadOptions& options() const { return options_; }
  const Phase* phase() const { return phase_ ? &*phase_ : nullptr; }  // the current one; the measured one when done()
  bool warming() const { return warming_; }

 private:
  void begin(bool warmup, Now now);

  io::Host& host_;
  const LoadOptions options_;
  const std::string unique_;
  const std::uint64_t nonce_;
  std::optional<Phase> phase_;
  bool warming_ = false;
  std::string error_;
};

}  // namespace rq::load
