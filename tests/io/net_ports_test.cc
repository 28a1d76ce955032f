// The Net port as both worlds keep it (core/io/ports.h).
#include <algorithm>
#include <deque>

#include "tests/io/port_world.h"

namespace rq::test {
namespace {

using io::Errc;

class NetPorts : public Ports {};
INSTANTIATE_TEST_SUITE_P(World, NetPorts, testing::Values("real", "threads", "sim"),
                         [](const auto& world) { return std::string(world.param); });

TEST_P(NetPorts, ListeningOnPortZeroPicksAPort) {
  const io::StreamId first = listening(), second = listening();
  const std::string a = net().local_address(first), b = net().local_address(second);
  EXPECT_FALSE(a.ends_with(":0"));
  EXPECT_NE(a, b);
  net().close(first);
  net().close(second);
}

TEST_P(NetPorts, ABadAddressIsRefused) {
  WaitOp named;
  net().listen(named, "localhost:1");
  EXPECT_EQ(wait(named).error.code, Errc::bad_address);
  for (const char* address :
       {"", "1.2.3.4", "1.2.3.4:", "1.2.3.4:65536", "1.2.3:1", ":1", "1.2.3.4:1x", "a b:1", "name:0", "[::1:1"}) {
    WaitOp listen, connect;
    net().listen(listen, address);
    EXPECT_EQ(wait(listen).error.code, Errc::bad_address) << address;
    net().connect(connect, address, Instant::never());
    EXPECT_EQ(wait(connect).error.code, Errc::bad_address) << address;
  }
}

// The simulated world has addresses only.
TEST_P(NetPorts, HostNamesAreLookedUpInTheRealWorld) {
  if (std::string_view(GetParam()) == "sim") return;
  const io::StreamId listener = listening();
  const std::string address = net().local_address(listener);
  std::deque<WaitOp> connects(5);  // more than are looked up at once
  for (WaitOp& connect : connects) {
    net().connect(connect, "localhost" + address.substr(address.rfind(':')), host().clock.now() + 60 * kSecond);
  }
  ASSERT_TRUE(world().run_until(
      [&] { return std::none_of(connects.begin(), connects.end(), [](const WaitOp& connect) { return connect.in_flight; }); }));
  for (WaitOp& connect : connects) {
    EXPECT_FALSE(connect.error) << io::errc_name(connect.error.code);
    net().close(connect.stream());
  }
  net().close(listener);
}

TEST_P(NetPorts, ATakenPortCannotBeBound) {
  const io::StreamId first = listening();
  WaitOp second;
  net().listen(second, net().local_address(first));
  EXPECT_EQ(wait(second).error.code, Errc::bad_address);
  net().close(first);
}

TEST_P(NetPorts, ConnectWithoutAListenerIsRefused) {
  WaitOp op;
  net().connect(op, world().refusing_address(), host().clock.now() + 60 * kSecond);
  EXPECT_EQ(wait(op).error.code, Errc::refused);
}

TEST_P(NetPorts, BytesArriveInOrderInBothDirections) {
  const Pair pair = connected();
  EXPECT_EQ(write_all(pair.client, "hello "), Errc::ok);
  EXPECT_EQ(write_all(pair.client, "server"), Errc::ok);
  EXPECT_EQ(read_bytes(pair.server, 12), "hello server");
  EXPECT_EQ(write_all(pair.server, "hello client"), Errc::ok);
  EXPECT_EQ(read_bytes(pair.client, 12), "hello client");
}

TEST_P(NetPorts, AReadWaitsWithoutHoldingAChunk) {
  const Pair pair = connected();
  WaitRead op;
  net().read_some(op, pair.server, chunks_);
  EXPECT_TRUE(op.in_flight);
  EXPECT_EQ(write_all(pair.server, "other way"), Errc::ok);
  EXPECT_EQ(read_bytes(pair.client, 9), "other way");
  EXPECT_TRUE(op.in_flight);
  EXPECT_EQ(chunks_.outstanding(), world().lent_chunks());
  EXPECT_EQ(write_all(pair.client, "x"), Errc::ok);
  ASSERT_TRUE(world().run_until([&] { return !op.in_flight; }));
  EXPECT_EQ(text_of(op.data.bytes()), "x");
  EXPECT_EQ(chunks_.outstanding(), 1u + world().lent_chunks());
}

TEST_P(NetPorts, AWriteOfManyPiecesKeepsTheirOrder) {
  const Pair pair = connected();
  std::vector<std::string> texts;
  std::string whole;
  std::vector<ConstBuf> pieces;
  for (int i = 0; i < 2000; ++i) texts.push_back(std::to_string(i) + ",");
  for (const std::string& text : texts) {
    whole += text;
    pieces.push_back(bytes_of(text));
    pieces.push_back({});
  }
  std::size_t sent = 0, first = 0;
  while (first < pieces.size()) {
    WaitOp op;
    net().write_some(op, pair.client, std::span(pieces).subspan(first));
    ASSERT_EQ(wait(op).error.code, Errc::ok);
    ASSERT_GE(op.value, 1u);
    sent += op.value;
    std::uint64_t taken = op.value;
    while (first < pieces.size() && taken >= pieces[first].size()) taken -= pieces[first++].size();
    if (taken > 0) pieces[first] = pieces[first].subspan(taken);
  }
  EXPECT_EQ(sent, whole.size());
  EXPECT_EQ(read_bytes(pair.server, whole.size()), whole);
}

TEST_P(NetPorts, AWriterThatNobodyReadsIsHeldBackAndThenGoesOn) {
  const Pair pair = connected();
  constexpr std::uint64_t kPeriod = 251;
  std::string pattern(kPeriod * 1024, '\0');
  for (std::size_t i = 0; i < pattern.size(); ++i) pattern[i] = static_cast<char>(i % kPeriod);
  std::uint64_t sent = 0, received = 0;
  WaitOp write;
  while (!write.in_flight) {
    ASSERT_LE(sent, 64u << 20) << "a stream takes bytes without end";
    const ConstBuf bytes = bytes_of(pattern).subspan(sent % kPeriod);
    net().write_some(write, pair.client, {&bytes, 1});
    world().settle();
    if (!write.in_flight) {
      ASSERT_EQ(write.error.code, Errc::ok);
      sent += write.value;
    }
  }
  while (received < sent || write.in_flight) {
    WaitRead read;
    net().read_some(read, pair.server, chunks_);
    ASSERT_EQ(wait(read).error.code, Errc::ok);
    for (const std::byte byte : read.data.bytes()) {
      ASSERT_EQ(static_cast<std::uint8_t>(byte), received % kPeriod) << received;
      ++received;
    }
  }
  EXPECT_EQ(write.error.code, Errc::ok);
  EXPECT_GE(write.value, 1u);
}

TEST_P(NetPorts, AfterShutdownTheReaderSeesTheBytesAndThenTheEnd) {
  const Pair pair = connected();
  EXPECT_EQ(write_all(pair.client, "last words"), Errc::ok);
  net().shutdown_write(pair.client);
  Errc end{};
  EXPECT_EQ(read_bytes(pair.server, 100, &end), "last words");
  EXPECT_EQ(end, Errc::eof);
  // The other direction is still open.
  EXPECT_EQ(write_all(pair.server, "answer"), Errc::ok);
  EXPECT_EQ(read_bytes(pair.client, 6), "answer");
}

TEST_P(NetPorts, ACloseEndsThePeersRead) {
  const Pair pair = connected();
  EXPECT_EQ(write_all(pair.client, "bye"), Errc::ok);
  net().close(pair.client);
  Errc end{};
  EXPECT_EQ(read_bytes(pair.server, 100, &end), "bye");
  EXPECT_EQ(end, Errc::eof);
}

TEST_P(NetPorts, WritingToAPeerThatWentAwayFailsInTheEnd) {
  const Pair pair = connected();
  net().close(pair.client);
  Errc code = Errc::ok;
  for (int i = 0; i < 1000 && code == Errc::ok; ++i) code = write_all(pair.server, "anybody there?");
  EXPECT_EQ(code, Errc::reset);
}

TEST_P(NetPorts, CloseCancelsWhatIsOutstanding) {
  const Pair pair = connected();
  WaitRead read;
  WaitOp accept;
  net().read_some(read, pair.server, chunks_);
  net().accept(accept, pair.listener);
  net().close(pair.server);
  net().close(pair.listener);
  EXPECT_TRUE(read.in_flight) << "completed inline";
  EXPECT_EQ(wait(read).error.code, Errc::cancelled);
  ASSERT_TRUE(world().run_until([&] { return !accept.in_flight; }));
  EXPECT_EQ(accept.error.code, Errc::cancelled);
  EXPECT_TRUE(read.data.empty());
}

TEST_P(NetPorts, AClosedStreamIsStaleForEveryCall) {
  const Pair pair = connected();
  net().close(pair.server);
  net().close(pair.server);
  net().shutdown_write(pair.server);
  EXPECT_EQ(write_all(pair.server, "x"), Errc::cancelled);
  Errc end{};
  EXPECT_EQ(read_bytes(pair.server, 1, &end), "");
  EXPECT_EQ(end, Errc::cancelled);
  WaitOp accept;
  net().accept(accept, pair.server);
  EXPECT_EQ(wait(accept).error.code, Errc::cancelled);
}

TEST_P(NetPorts, AHandleIsNeverUsedForAnotherStream) {
  const Pair first = connected();
  net().close(first.server);
  net().close(first.client);
  const Pair second = connected();
  EXPECT_NE(first.server, second.server);
  EXPECT_NE(first.client, second.client);
  EXPECT_EQ(write_all(first.server, "x"), Errc::cancelled);
}

TEST_P(NetPorts, EveryWaitingConnectionIsAccepted) {
  const io::StreamId listener = listening();
  const std::string address = net().local_address(listener);
  std::deque<WaitOp> connects;
  for (int i = 0; i < 20; ++i) net().connect(connects.emplace_back(), address, host().clock.now() + 60 * kSecond);
  for (int i = 0; i < 20; ++i) {
    WaitOp accept;
    net().accept(accept, listener);
    EXPECT_EQ(wait(accept).error.code, Errc::ok);
  }
  for (WaitOp& op : connects) {
    EXPECT_TRUE(world().run_until([&] { return !op.in_flight; }));
    EXPECT_EQ(op.error.code, Errc::ok);
  }
}

TEST_P(NetPorts, InfoNamesThePeer) {
  const Pair pair = connected();
  EXPECT_EQ(net().info(pair.server).address, net().local_address(pair.client));
  EXPECT_EQ(net().info(pair.client).address, net().local_address(pair.server));
  EXPECT_EQ(net().local_address(pair.server), net().local_address(pair.listener));
  EXPECT_FALSE(net().info(pair.server).tls);
}

}  // namespace
}  // namespace rq::test
