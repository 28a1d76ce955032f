// The suite's world on real files and loopback sockets.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "io/real/runtime.h"
#include "tests/io/port_world.h"

namespace rq::test {
namespace {

class RealWorld final : public PortWorld {
 public:
  explicit RealWorld(unsigned io_threads) : runtime_(options(io_threads)) {
    const char* base = std::getenv("TMPDIR");
    std::string name = std::string(base == nullptr ? "/tmp" : base) + "/rq_ports_XXXXXX";
    RQ_CHECK(::mkdtemp(name.data()) != nullptr);
    root_ = name;
  }
  ~RealWorld() override {
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }

  io::Host& host() override { return runtime_.host(); }
  io::Turn& turn() override { return runtime_.turn(); }
  QuietShard& shard() override { return shard_; }
  bool run_until(const std::function<bool()>& condition) override {
    // The suite calls ports from outside a turn: what it queued goes out as at the end of one.
    runtime_.disk().flush();
    const Instant limit = runtime_.loop().now() + 300 * kSecond;
    while (!condition()) {
      if (runtime_.loop().now() >= limit) return false;
      runtime_.loop().step(shard_, limit);
    }
    return true;
  }
  void settle() override {
    runtime_.disk().flush();
    for (int quiet = 0; quiet < 3;) {
      quiet = runtime_.loop().step(shard_, runtime_.loop().now() + kMillisecond) ? 0 : quiet + 1;
    }
  }
  std::string root() override { return root_; }
  std::string listen_address() override { return "127.0.0.1:0"; }
  // A port that was free a moment ago and that nobody else was given: still bound, not listening.
  std::string refusing_address() override {
    io::Net& net = runtime_.host().net;
    WaitOp op;
    net.listen(op, "127.0.0.1:0");
    run_until([&] { return !op.in_flight; });
    const std::string address = net.local_address(op.stream());
    net.close(op.stream());
    return address;
  }
  std::uint64_t lent_chunks() override { return runtime_.net().lent_chunks(); }
  bool make_symlink(const std::string& target, const std::string& path) override {
    return ::symlink(target.c_str(), path.c_str()) == 0;
  }

 private:
  static real::RuntimeOptions options(unsigned io_threads) {
    real::RuntimeOptions options;
    options.log_fd = 2;
    options.net.threads = io_threads;
    return options;
  }

  real::Runtime runtime_;
  QuietShard shard_;
  std::string root_;
};

}  // namespace

std::unique_ptr<PortWorld> make_real_world(unsigned io_threads) { return std::make_unique<RealWorld>(io_threads); }

}  // namespace rq::test
