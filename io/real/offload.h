// Offload over the worker pool.
#pragma once

#include "core/io/turn.h"
#include "io/real/pool.h"

namespace rq::real {

class RealOffload final : public io::Offload {
 public:
  RealOffload(io::Turn& turn, Pool& pool) : turn_(turn), pool_(pool) {}
  void run(io::Op& op, void (*pure)(void*) noexcept, void* job) override;

 private:
  io::Turn& turn_;
  Pool& pool_;
};

}  // namespace rq::real
