// SIGINT and SIGTERM ask for the graceful stop; SIGPIPE is ignored.
#pragma once

#include <asio/signal_set.hpp>
#include <functional>

#include "io/real/loop.h"

namespace rq::real {

class StopSignals {
 public:
  // `on_stop` runs on the loop, outside a turn, for every such signal; a turn follows.
  StopSignals(Loop& loop, std::function<void(int)> on_stop);

 private:
  void wait();

  Loop& loop_;
  asio::signal_set signals_;
  std::function<void(int)> on_stop_;
};

}  // namespace rq::real
