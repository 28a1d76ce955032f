#include "services/rustqueued/salvage.h"

#include <fmt/format.h>

#include <cstdio>

#include "core/storage/salvage.h"
#include "io/real/process.h"
#include "io/real/runtime.h"

namespace rq::service {
namespace {

class SalvageShard final : public io::Shard {
 public:
  SalvageShard(io::Host& host, const std::string& path) : salvage(host, path) {}
  void expire(Now) override {
    if (started_) return;
    started_ = true;
    salvage.start();
  }
  void settle(Now) override { salvage.settle(); }
  Instant next_deadline() const override { return Instant::never(); }

  storage::Salvage salvage;

 private:
  bool started_ = false;
};

}  // namespace

int salvage_directory(const std::string& path) {
  real::RuntimeOptions options;
  options.log_fd = 2;
  options.seed = real::entropy();
  real::Runtime runtime(options);
  SalvageShard shard(runtime.host(), path);
  while (!shard.salvage.done()) runtime.loop().step(shard);
  std::fputs(shard.salvage.report().c_str(), stdout);
  std::fflush(stdout);
  return shard.salvage.ok() ? 0 : 1;
}

}  // namespace rq::service
