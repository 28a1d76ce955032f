// The suite's world under the simulator, with every fault off.
#include "io/sim/world.h"
#include "tests/io/port_world.h"

namespace rq::test {
namespace {

class SimWorld final : public PortWorld {
 public:
  SimWorld() : world_(7), disk_(world_.make_disk("machine")) {
    process_ = &world_.make_process("suite", disk_, [](io::Host&, io::Turn&) {
      return std::unique_ptr<io::Shard, void (*)(io::Shard*)>(new QuietShard,
                                                              [](io::Shard* shard) { delete static_cast<QuietShard*>(shard); });
    });
    process_->start();
    WaitOp op;
    host().disk.make_dir(op, root());
    RQ_CHECK(run_until([&] { return !op.in_flight; }) && !op.error);
  }

  io::Host& host() override { return *process_->host(); }
  io::Turn& turn() override { return process_->turn(); }
  QuietShard& shard() override { return *static_cast<QuietShard*>(process_->shard()); }
  bool run_until(const std::function<bool()>& condition) override {
    process_->poke();
    return world_.run_until(condition, 3600 * kSecond);
  }
  void settle() override {
    process_->poke();
    world_.run_for(kSecond);
  }
  std::string root() override { return "root"; }
  std::string listen_address() override { return "127.0.0.1:0"; }
  std::string refusing_address() override { return "127.0.0.1:9"; }
  bool make_symlink(const std::string& target, const std::string& path) override {
    disk_.link(path, target);
    return true;
  }

 private:
  sim::World world_;
  sim::SimDisk& disk_;
  sim::Process* process_ = nullptr;
};

}  // namespace

std::unique_ptr<PortWorld> make_sim_world() { return std::make_unique<SimWorld>(); }

}  // namespace rq::test
