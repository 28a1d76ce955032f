// Reads behind a bounded cache of handles.
#include "core/storage/read_pool.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>

#include "io/sim/world.h"

namespace rq::storage {
namespace {

struct PoolShard final : io::Shard {
  explicit PoolShard(io::Host& host) : pool(host) {}
  void expire(Now) override {}
  void settle(Now) override {}
  Instant next_deadline() const override { return Instant::never(); }
  ReadPool pool;
};

// A Topic that was deleted and made again has files of the same names.
TEST(ReadPool, WhatWasForgottenIsOpenedAnewAlsoWhileAReadOfItRuns) {
  sim::World world(1);
  sim::SimDisk& disk = world.make_disk("machine");
  sim::Process& process = world.make_process("reader", disk, [](io::Host& host, io::Turn&) {
    return std::unique_ptr<io::Shard, void (*)(io::Shard*)>(new PoolShard(host),
                                                            [](io::Shard* shard) { delete static_cast<PoolShard*>(shard); });
  });
  process.start();
  ReadPool& pool = static_cast<PoolShard*>(process.shard())->pool;
  disk.put("/file", "old");
  std::array<std::string, 2> content = {"...", "..."};
  std::array<ReadPool::Read, 2> reads;
  for (std::size_t i = 0; i < 2; ++i) {
    reads[i].path = "/file";
    reads[i].into = std::as_writable_bytes(std::span(content[i].data(), content[i].size()));
    reads[i].done = [](ReadPool::Read&) {};
  }
  disk.faults.latency_ns_min = disk.faults.latency_ns_max = 20 * kMillisecond;
  pool.start(reads[0]);
  world.run_for(30 * kMillisecond);  // opened, the read is on its way
  disk.faults.latency_ns_min = disk.faults.latency_ns_max = kMillisecond;
  pool.forget("/file");
  io::Op unlink;
  unlink.done = [](io::Op&) noexcept {};
  process.host()->disk.unlink(unlink, "/file");
  world.run_for(2 * kMillisecond);
  ASSERT_TRUE(reads[0].busy && !unlink.in_flight);
  disk.put("/file", "new");
  pool.start(reads[1]);
  ASSERT_TRUE(world.run_until([&] { return !reads[0].busy && !reads[1].busy && !unlink.in_flight; }, kSecond));
  EXPECT_EQ(content[1], "new");
  process.kill();
}

}  // namespace
}  // namespace rq::storage
