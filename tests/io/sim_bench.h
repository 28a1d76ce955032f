// A bare process on a simulated disk, driven from the test: calls go straight to its ports, wait() runs the world.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <string_view>

#include "io/sim/world.h"

namespace rq::sim {

struct IdleShard final : io::Shard {
  void expire(Now) override {}
  void settle(Now) override {}
  Instant next_deadline() const override { return Instant::never(); }
};

// An Op whose delivery changes nothing but `in_flight`.
struct TestOp : io::ReadOp {
  TestOp() {
    done = [](io::Op&) noexcept {};
  }
};

inline Process& idle_process(World& world, std::string_view name, SimDisk& disk) {
  return world.make_process(name, disk, [](io::Host&, io::Turn&) {
    return std::unique_ptr<io::Shard, void (*)(io::Shard*)>(new IdleShard,
                                                            [](io::Shard* shard) { delete static_cast<IdleShard*>(shard); });
  });
}

struct SimBench {
  explicit SimBench(std::uint64_t seed = 1) : world(seed), disk(world.make_disk("m")), process(idle_process(world, "p", disk)) {
    process.start();
  }
  io::Disk& port() { return process.host()->disk; }
  TestOp& op() { return ops.emplace_back(); }
  bool wait(const io::Op& waited) {
    return world.run_until([&] { return !waited.in_flight; }, 60 * kSecond);
  }

  // Calls that wait for their end.
  io::FileId open(std::string_view path, io::OpenMode mode) {
    TestOp& call = op();
    port().open(call, path, mode);
    wait(call);
    return call.error ? io::FileId::none : call.file();
  }
  io::Errc append(io::FileId file, std::string_view bytes) {
    TestOp& call = op();
    start_append(call, file, bytes);
    wait(call);
    return call.error.code;
  }
  void start_append(TestOp& call, io::FileId file, std::string_view bytes) {
    const ConstBuf piece = bytes_of(bytes);
    port().append(call, file, std::span(&piece, 1));
  }
  io::Errc rewrite(io::FileId file, std::uint64_t at, std::string_view bytes) {
    TestOp& call = op();
    port().rewrite(call, file, at, bytes_of(bytes));
    wait(call);
    return call.error.code;
  }
  io::Errc truncate(io::FileId file, std::uint64_t bytes) {
    TestOp& call = op();
    port().truncate(call, file, bytes);
    wait(call);
    return call.error.code;
  }
  io::Errc barrier(io::FileId file) {
    TestOp& call = op();
    const io::BarrierFile entry{file};
    port().barrier(call, std::span(&entry, 1));
    wait(call);
    return call.error.code;
  }
  io::Errc close(io::FileId file) {
    TestOp& call = op();
    port().close(call, file);
    wait(call);
    return call.error.code;
  }
  io::Errc rename(std::string_view from, std::string_view to) {
    TestOp& call = op();
    port().rename(call, from, to);
    wait(call);
    return call.error.code;
  }
  io::Errc unlink(std::string_view path) {
    TestOp& call = op();
    port().unlink(call, path);
    wait(call);
    return call.error.code;
  }
  io::Errc make_dir(std::string_view path) {
    TestOp& call = op();
    port().make_dir(call, path);
    wait(call);
    return call.error.code;
  }
  io::Errc remove_dir(std::string_view path) {
    TestOp& call = op();
    port().remove_dir(call, path);
    wait(call);
    return call.error.code;
  }
  io::Errc sync_dir(std::string_view path) {
    TestOp& call = op();
    port().sync_dir(call, path);
    wait(call);
    return call.error.code;
  }
  void power_loss() {
    process.kill();
    disk.power_loss();
  }

  std::deque<TestOp> ops;  // outlive the world
  World world;
  SimDisk& disk;
  Process& process;
};

}  // namespace rq::sim
