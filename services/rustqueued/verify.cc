#include "services/rustqueued/verify.h"

#include <fmt/format.h>

#include <cstdio>

#include "core/storage/opener.h"
#include "core/storage/verify.h"
#include "io/real/process.h"
#include "io/real/runtime.h"

namespace rq::service {
namespace {

// The opener works in turns and needs no other logic beside it.
class VerifyShard final : public io::Shard {
 public:
  VerifyShard(io::Host& host, storage::OpenOptions options) : opener(host, std::move(options)) {}
  void expire(Now) override {
    if (started_) return;
    started_ = true;
    opener.start();
  }
  void settle(Now) override {}
  Instant next_deadline() const override { return Instant::never(); }
  bool done() const { return started_ && opener.done(); }

  storage::Opener opener;

 private:
  bool started_ = false;
};

}  // namespace

int verify_directory(const std::string& path) {
  real::RuntimeOptions options;
  options.log_fd = 2;
  options.seed = real::entropy();
  real::Runtime runtime(options);
  storage::OpenOptions open;
  open.data_path = path;
  open.node_id = 0;
  open.read_only = true;
  open.pid = real::process_id();
  VerifyShard shard(runtime.host(), open);
  while (!shard.done()) runtime.loop().step(shard);
  const storage::VerifyReport report = storage::verify_report(shard.opener);
  if (!shard.opener.in_use()) std::fputs(report.text.c_str(), stdout);
  for (const storage::Fault& fault : shard.opener.faults()) fmt::print(stderr, "Error: {}\n", fault.message());
  std::fflush(stdout);
  return report.ok ? 0 : 1;
}

}  // namespace rq::service
