#include "io/real/offload.h"

namespace rq::real {
namespace {

struct OffloadJob final : Job {
  OffloadJob(io::Turn& turn_, io::Op& op_, void (*pure_)(void*) noexcept, void* argument_)
      : turn(turn_), op(op_), pure(pure_), argument(argument_) {}
  void execute() noexcept override { pure(argument); }
  void finish() override {
    turn.complete(op, {});
    delete this;
  }
  io::Turn& turn;
  io::Op& op;
  void (*pure)(void*) noexcept;
  void* argument;
};

}  // namespace

void RealOffload::run(io::Op& op, void (*pure)(void*) noexcept, void* job) {
  io::submit(op);
  pool_.submit(*new OffloadJob(turn_, op, pure, job));
}

}  // namespace rq::real
