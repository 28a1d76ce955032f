// The rest that the loop takes behind a turn in which every peer stopped inside a command (io::ReadOp::midway).
#include <sys/socket.h>

#include "io/real/runtime.h"
#include "tests/io/port_world.h"

namespace rq::test {
namespace {

class Gather : public testing::Test {
 protected:
  real::Loop& loop() { return runtime_.loop(); }
  real::RealNet& net() { return runtime_.net(); }

  template <class O>
  void wait(const O& op) {
    const Instant limit = loop().now() + 20 * kSecond;
    while (op.in_flight && loop().now() < limit) loop().step(shard_, limit);
    ASSERT_FALSE(op.in_flight);
  }
  io::StreamId accepted(io::StreamId& client) {
    WaitOp listen, accept, connect;
    net().listen(listen, "127.0.0.1:0");
    wait(listen);
    net().accept(accept, listen.stream());
    net().connect(connect, net().local_address(listen.stream()), loop().now() + 20 * kSecond);
    wait(connect);
    wait(accept);
    client = connect.stream();
    return accept.stream();
  }
  void send(io::StreamId stream, std::string_view text) {
    WaitOp op;
    const ConstBuf piece = bytes_of(text);
    net().write_some(op, stream, {&piece, 1});
    wait(op);
  }

  ChunkPool chunks_{4096, 4};
  QuietShard shard_;
  static real::RuntimeOptions options() {
    real::RuntimeOptions options;
    options.log_fd = 2;
    return options;
  }
  real::Runtime runtime_{options()};
};

TEST_F(Gather, OnlyReadsInsideACommandLetTheSocketsRest) {
  io::StreamId first{}, second{};
  const io::StreamId a = accepted(first), b = accepted(second);
  net().take_midway();
  WaitRead inside, afresh;
  inside.midway = true;
  net().read_some(inside, a, chunks_);
  EXPECT_TRUE(net().take_midway());
  EXPECT_FALSE(net().take_midway()) << "nothing was asked for since";
  net().read_some(afresh, b, chunks_);
  EXPECT_FALSE(net().take_midway());
  net().close(a);
  net().close(b);
  wait(inside);
  wait(afresh);
  net().read_some(inside, a, chunks_);
  net().read_some(afresh, b, chunks_);
  EXPECT_FALSE(net().take_midway());
  wait(inside);
  wait(afresh);
}

TEST_F(Gather, TheSocketsRestForTheirTimeAndTheBytesAreThereThen) {
  io::StreamId client{};
  const io::StreamId server = accepted(client);
  WaitRead read;
  read.midway = true;
  net().read_some(read, server, chunks_);
  WaitOp write;
  const ConstBuf piece = bytes_of(std::string_view("rest"));
  net().write_some(write, client, {&piece, 1});
  wait(write);  // what is pending is delivered without a rest
  net().take_midway();
  wait(read);
  EXPECT_EQ(text_of(read.data.bytes()), "rest");

  net().read_some(read, server, chunks_);
  const Instant asked = loop().now();
  loop().step(shard_, asked);
  EXPECT_GE(loop().now().ns - asked.ns, real::Loop::kGatherNs);
  send(client, "more");
  wait(read);
  EXPECT_EQ(text_of(read.data.bytes()), "more");
}

// A worker that finishes ends the rest: were it lost, the offloaded calls would each wait for the next deadline.
TEST_F(Gather, WorkersEndTheRest) {
  io::StreamId client{};
  const io::StreamId server = accepted(client);
  WaitRead read;
  read.midway = true;
  for (int i = 0; i < 200; ++i) {
    net().read_some(read, server, chunks_);
    WaitOp job;
    int runs = 0;
    runtime_.host().offload.run(
        job, [](void* argument) noexcept { ++*static_cast<int*>(argument); }, &runs);
    wait(job);
    EXPECT_EQ(runs, 1);
    send(client, "x");
    wait(read);
  }
}

}  // namespace
}  // namespace rq::test
