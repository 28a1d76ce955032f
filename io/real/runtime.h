// Everything real that a program runs on: one loop, its threads and the ports, put together as a Host.
#pragma once

#include "core/io/turn.h"
#include "io/real/disk.h"
#include "io/real/log_sink.h"
#include "io/real/loop.h"
#include "io/real/net.h"
#include "io/real/offload.h"
#include "io/real/pool.h"

namespace rq::real {

struct RuntimeOptions {
  PoolOptions pool{};
  DiskOptions disk{};
  NetOptions net{};
  LogFilter log{};
  int log_fd = 1;
  std::uint64_t seed = 0;
};

class Runtime {
 public:
  explicit Runtime(RuntimeOptions options)
      : log_(loop_, options.log_fd, options.log),
        turn_(loop_, loop_),
        pool_(options.pool, [this] { loop_.wake(); }),
        disk_(turn_, pool_, std::move(options.disk)),
        net_(turn_, options.net, [this] { loop_.wake(); }),
        offload_(turn_, pool_),
        host_{loop_, loop_, disk_, net_, offload_, log_, Random(options.seed), nullptr} {
    loop_.attach(turn_, pool_, disk_, net_);
    net_.use_pool(pool_);
  }
  ~Runtime() {
    net_.stop();   // chunks go back to their pools
    pool_.stop();  // jobs point into the disk
  }

  io::Host& host() { return host_; }
  io::Turn& turn() { return turn_; }
  Loop& loop() { return loop_; }
  Pool& pool() { return pool_; }
  RealDisk& disk() { return disk_; }
  RealNet& net() { return net_; }
  StdoutLog& log() { return log_; }

 private:
  Loop loop_;
  StdoutLog log_;
  io::Turn turn_;
  Pool pool_;
  RealDisk disk_;
  RealNet net_;
  RealOffload offload_;
  io::Host host_;
};

}  // namespace rq::real
