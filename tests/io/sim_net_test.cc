// What only a simulated network can do: faults, partitions, and peers that die. The rest of the Net port is in the conformance
// suite.
#include <gtest/gtest.h>

#include <set>

#include "tests/io/sim_bench.h"

namespace rq::sim {
namespace {

// A server and a client process with a connection between them.
struct Line {
  explicit Line(std::uint64_t seed = 1) : world(seed), disk(world.make_disk("m")) {
    server = &idle_process(world, "server", disk);
    client = &idle_process(world, "client", disk);
    server->start();
    client->start();
    TestOp listen;
    server->host()->net.listen(listen, "0.0.0.0:4150");
    wait(listen);
    listener = listen.stream();
  }
  bool wait(const io::Op& op, std::int64_t limit_ns = 60 * kSecond) {
    return world.run_until([&] { return !op.in_flight; }, limit_ns);
  }
  io::Errc connect(std::int64_t limit_ns = 10 * kSecond) {
    TestOp& connecting = ops.emplace_back();
    TestOp& accepting = ops.emplace_back();
    server->host()->net.accept(accepting, listener);
    client->host()->net.connect(connecting, "10.0.0.1:4150", world.now() + limit_ns);
    wait(connecting);
    if (connecting.error) return connecting.error.code;
    wait(accepting);
    near = connecting.stream();
    far = accepting.stream();
    return io::Errc::ok;
  }
  io::Errc send(std::string_view text) {
    TestOp& op = ops.emplace_back();
    const ConstBuf piece = bytes_of(text);
    client->host()->net.write_some(op, near, std::span(&piece, 1));
    return wait(op) ? op.error.code : io::Errc::timed_out;
  }
  // One read of the server; nothing within a second: "".
  std::string receive(io::Errc* end = nullptr) {
    TestOp& op = ops.emplace_back();
    server->host()->net.read_some(op, far, pool);
    if (!wait(op, kSecond)) return "";
    if (end != nullptr) *end = op.error.code;
    std::string text(text_of(op.data.bytes()));
    op.data = Slice();
    return text;
  }

  ChunkPool pool;
  std::deque<TestOp> ops;
  World world;
  SimDisk& disk;
  Process* server;
  Process* client;
  io::StreamId listener{}, near{}, far{};
};

TEST(SimNet, EveryProcessHasAnAddressOfItsOwn) {
  Line line;
  EXPECT_EQ(line.server->ip(), "10.0.0.1");
  EXPECT_EQ(line.client->ip(), "10.0.0.2");
  ASSERT_EQ(line.connect(), io::Errc::ok);
  EXPECT_TRUE(line.server->host()->net.info(line.far).address.starts_with("10.0.0.2:"));
}

TEST(SimNet, BytesArriveInRandomPiecesDownToOneByte) {
  std::set<std::size_t> sizes;
  for (int seed = 0; seed < 50; ++seed) {
    Line line(seed);
    ASSERT_EQ(line.connect(), io::Errc::ok);
    std::string sent, received;
    for (int i = 0; i < 10; ++i) {
      TestOp op;
      const std::string text = "abcdefghij";
      const ConstBuf piece = bytes_of(text);
      line.client->host()->net.write_some(op, line.near, std::span(&piece, 1));
      line.wait(op);
      sent += text.substr(0, op.value);
    }
    while (received.size() < sent.size()) {
      const std::string piece = line.receive();
      ASSERT_FALSE(piece.empty());
      sizes.insert(piece.size());
      received += piece;
    }
    EXPECT_EQ(received, sent);
  }
  EXPECT_TRUE(sizes.contains(1));
  EXPECT_GT(*sizes.rbegin(), 10u);
}

TEST(SimNet, WithoutFragmentationAWriteArrivesWhole) {
  Line line;
  line.world.net().fragment = false;
  ASSERT_EQ(line.connect(), io::Errc::ok);
  EXPECT_EQ(line.send("hello"), io::Errc::ok);
  EXPECT_EQ(line.receive(), "hello");
}

TEST(SimNet, APartitionHoldsBytesBackUntilItHeals) {
  Line line;
  line.world.net().fragment = false;
  ASSERT_EQ(line.connect(), io::Errc::ok);
  line.world.partition("client", "server");
  EXPECT_EQ(line.send("one "), io::Errc::ok) << "the local kernel takes them";
  EXPECT_EQ(line.send("two"), io::Errc::ok);
  TestOp read;
  line.server->host()->net.read_some(read, line.far, line.pool);
  line.world.run_for(30 * kSecond);
  EXPECT_TRUE(read.in_flight);
  line.world.heal();
  ASSERT_TRUE(line.wait(read));
  EXPECT_EQ(text_of(read.data.bytes()), "one two");
  read.data = Slice();
}

TEST(SimNet, APartitionOfOneDirectionLetsTheOtherPass) {
  Line line;
  line.world.net().fragment = false;
  ASSERT_EQ(line.connect(), io::Errc::ok);
  line.world.partition("server", "client");
  EXPECT_EQ(line.send("still heard"), io::Errc::ok);
  EXPECT_EQ(line.receive(), "still heard");
}

TEST(SimNet, AnEndWaitsBehindThePartitionLikeTheBytesBeforeIt) {
  Line line;
  line.world.net().fragment = false;
  ASSERT_EQ(line.connect(), io::Errc::ok);
  line.world.partition("client", "server");
  line.send("bye");
  line.client->host()->net.close(line.near);
  EXPECT_EQ(line.receive(), "");
  line.world.heal();
  line.world.run_for(kSecond);
  EXPECT_FALSE(line.ops.back().in_flight);
  EXPECT_EQ(text_of(line.ops.back().data.bytes()), "bye");
  line.ops.back().data = Slice();
  io::Errc end{};
  line.receive(&end);
  EXPECT_EQ(end, io::Errc::eof);
}

TEST(SimNet, ConnectingThroughAPartitionEndsAtTheDeadline) {
  for (const char* from : {"client", "server"}) {
    Line line;
    line.world.partition(from, from == std::string_view("client") ? "server" : "client");
    const Instant before = line.world.now();
    EXPECT_EQ(line.connect(5 * kSecond), io::Errc::timed_out);
    EXPECT_GE(line.world.now() - before, 5 * kSecond);
  }
}

TEST(SimNet, ConnectingGoesOnWhenThePartitionHealsInTime) {
  Line line;
  line.world.partition("client", "server");
  line.world.at(kSecond, [&] { line.world.heal(); });
  EXPECT_EQ(line.connect(5 * kSecond), io::Errc::ok);
}

TEST(SimNet, AKilledProcessResetsItsPeers) {
  Line line;
  ASSERT_EQ(line.connect(), io::Errc::ok);
  line.client->kill();
  io::Errc end{};
  line.receive(&end);
  EXPECT_EQ(end, io::Errc::reset);
}

TEST(SimNet, AKilledListenerRefuses) {
  Line line;
  line.server->kill();
  TestOp op;
  line.client->host()->net.connect(op, "10.0.0.1:4150", line.world.now() + kSecond);
  line.wait(op);
  EXPECT_EQ(op.error.code, io::Errc::refused);
}

TEST(SimNet, AHalfOpenPeerHearsNothingAndItsWritesStopWhenTheBufferIsFull) {
  Line line;
  line.world.net().fragment = false;
  ASSERT_EQ(line.connect(), io::Errc::ok);
  line.world.net().half_open = 1024;
  line.server->kill();
  line.world.run_for(10 * kSecond);
  EXPECT_EQ(line.world.counts().half_open, 1u);
  const std::string block(line.world.net().buffer_bytes, 'x');
  EXPECT_EQ(line.send(block), io::Errc::ok);
  TestOp blocked;
  const ConstBuf piece = bytes_of("y");
  line.client->host()->net.write_some(blocked, line.near, std::span(&piece, 1));
  EXPECT_FALSE(line.wait(blocked, 60 * kSecond));
  line.client->kill();
}

TEST(SimNet, AResetFailsBothSides) {
  Line line;
  ASSERT_EQ(line.connect(), io::Errc::ok);
  line.world.net().reset = 1024;
  EXPECT_EQ(line.send("x"), io::Errc::reset);
  line.world.net().reset = 0;
  io::Errc end{};
  line.receive(&end);
  EXPECT_EQ(end, io::Errc::reset);
  EXPECT_EQ(line.world.counts().resets, 1u);
}

TEST(SimNet, ARefusedConnectionIsCounted) {
  Line line;
  line.world.net().refuse = 1024;
  EXPECT_EQ(line.connect(), io::Errc::refused);
  EXPECT_EQ(line.world.counts().refused, 1u);
  line.server->kill();  // its accept still waits
}

TEST(SimNet, ClosingWithUnreadBytesResetsThePeerAfterWhatWasSent) {
  Line line;
  line.world.net().fragment = false;
  ASSERT_EQ(line.connect(), io::Errc::ok);
  TestOp answer;
  const ConstBuf piece = bytes_of("unread");
  line.server->host()->net.write_some(answer, line.far, std::span(&piece, 1));
  line.wait(answer);
  line.send("last words");
  line.world.run_for(kSecond);
  line.client->host()->net.close(line.near);
  line.world.run_for(kSecond);
  EXPECT_EQ(line.receive(), "last words");
  TestOp late;
  line.server->host()->net.write_some(late, line.far, std::span(&piece, 1));
  line.wait(late);
  EXPECT_EQ(late.error.code, io::Errc::reset);
}

TEST(SimNet, AnUnknownAddressTimesOut) {
  Line line;
  TestOp op;
  line.client->host()->net.connect(op, "192.0.2.1:80", line.world.now() + 3 * kSecond);
  line.wait(op);
  EXPECT_EQ(op.error.code, io::Errc::timed_out);
}

TEST(SimNet, StaleHandlesAreCounted) {
  Line line;
  ASSERT_EQ(line.connect(), io::Errc::ok);
  line.client->host()->net.close(line.near);
  EXPECT_EQ(line.send("x"), io::Errc::cancelled);
  EXPECT_EQ(line.world.counts().stale_handles, 1u);
}

}  // namespace
}  // namespace rq::sim
