// The two worlds behind one interface: the port conformance suite runs against io/real, with sockets on the loop and on threads,
// and io/sim alike, which keeps the simulator honest.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/io/turn.h"

namespace rq::test {

// The shard under which the suite's Ops complete: it has no logic of its own.
struct QuietShard final : io::Shard {
  void expire(Now now) override {
    if (now.mono >= deadline) {
      deadline = Instant::never();
      expired_at = now.mono;
    }
  }
  void settle(Now) override { ++turns; }
  Instant next_deadline() const override { return deadline; }
  Instant deadline = Instant::never();
  Instant expired_at{};
  int turns = 0;
};

class PortWorld {
 public:
  virtual ~PortWorld() = default;
  virtual io::Host& host() = 0;
  virtual io::Turn& turn() = 0;
  virtual QuietShard& shard() = 0;
  // Runs turns until the condition holds; false when it does not within a long time of that world.
  virtual bool run_until(const std::function<bool()>& condition) = 0;
  virtual void settle() = 0;                         // lets everything happen that is on its way without a wait
  virtual std::string root() = 0;                    // a directory that exists and is empty
  virtual std::string listen_address() = 0;          // with port 0
  virtual std::string refusing_address() = 0;        // where nobody listens
  virtual std::uint64_t lent_chunks() { return 0; }  // that the world has for reads which wait
  virtual bool make_symlink(const std::string& target, const std::string& path) = 0;  // false: this world has none
};

std::unique_ptr<PortWorld> make_real_world(unsigned io_threads);
std::unique_ptr<PortWorld> make_sim_world();

// An Op that remembers that it was delivered, and how often.
template <class Base>
struct Waiting : Base {
  Waiting() {
    this->done = [](io::Op& op) noexcept { ++static_cast<Waiting*>(op.self)->deliveries; };
    this->self = this;
  }
  int deliveries = 0;
};
using WaitOp = Waiting<io::Op>;
using WaitRead = Waiting<io::ReadOp>;

class Ports : public testing::TestWithParam<const char*> {
 protected:
  // "real", "threads" (the real one with sockets on two threads) or "sim".
  void SetUp() override {
    const std::string_view name = GetParam();
    world_ = name == "sim" ? make_sim_world() : make_real_world(name == "threads" ? 2 : 0);
  }

  PortWorld& world() { return *world_; }
  io::Host& host() { return world_->host(); }
  io::Disk& disk() { return world_->host().disk; }
  io::Net& net() { return world_->host().net; }
  std::string path(std::string_view name) { return world_->root() + "/" + std::string(name); }

  // Waits for an Op that was just submitted. It must never have completed inline.
  template <class O>
  const O& wait(O& op) {
    EXPECT_TRUE(op.in_flight) << "a port call completed inline";
    EXPECT_TRUE(world_->run_until([&] { return !op.in_flight; })) << "a port call never completed";
    EXPECT_EQ(op.deliveries, 1);
    return op;
  }

  // ---- files, one call at a time
  io::Errc open(std::string_view name, io::OpenMode mode, io::FileId& id);
  io::FileId opened(std::string_view name, io::OpenMode mode);
  io::Errc append(io::FileId id, std::string_view text);
  io::Errc barrier(std::vector<io::BarrierFile> files);
  io::Errc close(io::FileId id);
  std::string content(std::string_view name);  // "<error>" when it cannot be read
  void write_file(std::string_view name, std::string_view text);
  io::Errc stat(std::string_view name, io::Stat& out, bool follow = true);
  std::vector<std::string> names(std::string_view dir = "");

  // ---- streams
  struct Pair {
    io::StreamId listener{}, client{}, server{};
  };
  io::StreamId listening();
  Pair connected();
  io::Errc write_all(io::StreamId id, std::string text);
  // Reads until that many bytes are there or the stream ends.
  std::string read_bytes(io::StreamId id, std::size_t count, io::Errc* end = nullptr);

  ChunkPool chunks_{4096, 4};
  std::unique_ptr<PortWorld> world_;
};

}  // namespace rq::test
