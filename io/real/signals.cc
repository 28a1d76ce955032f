#include "io/real/signals.h"

#include <csignal>

namespace rq::real {

StopSignals::StopSignals(Loop& loop, std::function<void(int)> on_stop)
    : loop_(loop), signals_(loop.context(), SIGINT, SIGTERM), on_stop_(std::move(on_stop)) {
  std::signal(SIGPIPE, SIG_IGN);
  wait();
}

void StopSignals::wait() {
  signals_.async_wait([this](std::error_code failed, int signal) {
    if (failed) return;
    on_stop_(signal);
    loop_.poke();
    wait();
  });
}

}  // namespace rq::real
