// Sockets on threads of their own: connections that are opened, used and closed at random moments, with and without TLS, on the
// loop and on threads alike. What matters here is who touches what when: run it in the build of the preset `tsan` too.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <filesystem>

#include "io/real/net_thread.h"
#include "io/real/runtime.h"
#include "tests/io/port_world.h"

namespace rq::test {
namespace {

using io::Errc;

constexpr std::uint64_t kPeriod = 251;

// One end of a connection with everything that may be under way on it.
struct End {
  io::StreamId id = io::StreamId::none;
  bool open = false, reading = false, writing = false, shaking = false, ended = false, shut = false;
  WaitRead read;
  WaitOp write, handshake;
  std::string buffer;
  std::uint64_t sent = 0, received = 0;
  bool busy() const { return reading || writing || shaking; }
};
struct Link {
  End client, server;
  WaitOp connect, accept;
  bool connecting = false, tls = false;
};

class NetThreads : public testing::TestWithParam<unsigned> {
 protected:
  static constexpr int kLinks = 24;
  static constexpr int kConnectionsMax = 150;

  NetThreads() {
    directory_ = (std::filesystem::temp_directory_path() / "rq_net_XXXXXX").string();
    RQ_CHECK(::mkdtemp(directory_.data()) != nullptr);
    const std::string command = RQ_SOURCE_DIR "/scripts/dev-certs " + directory_ + " >/dev/null 2>&1";
    RQ_CHECK(std::system(command.c_str()) == 0);
    ::setenv("SSL_CERT_FILE", (directory_ + "/ca.pem").c_str(), 1);  // what clients trust
    real::RuntimeOptions options;
    options.log_fd = 2;
    options.net.threads = GetParam();
    runtime_ = std::make_unique<real::Runtime>(options);
    real::TlsOptions tls;
    tls.certificate_file = directory_ + "/node-1.pem";
    tls.private_key_file = directory_ + "/node-1.key";
    runtime_->net().use_tls(std::move(*real::tls_server_context(tls)));
  }
  ~NetThreads() override {
    runtime_.reset();
    ::unsetenv("SSL_CERT_FILE");
    std::error_code ignored;
    std::filesystem::remove_all(directory_, ignored);
  }

  real::RealNet& net() { return runtime_->net(); }
  void step(std::int64_t wait_ns = 0) { runtime_->loop().step(shard_, runtime_->loop().now() + wait_ns); }
  bool run_until(const std::function<bool()>& condition) {
    const Instant limit = runtime_->loop().now() + 300 * kSecond;
    while (!condition()) {
      if (runtime_->loop().now() >= limit) return false;
      runtime_->loop().step(shard_, limit);
    }
    return true;
  }
  void listen() {
    WaitOp op;
    net().listen(op, "127.0.0.1:0");
    ASSERT_TRUE(run_until([&] { return !op.in_flight; }));
    listener_ = op.stream();
  }
  // One at a time, so that the two ends belong together.
  void open(Link& link) {
    ++connections_;
    link.connecting = true;
    link.tls = random_.chance(512);
    net().accept(link.accept, listener_);
    net().connect(link.connect, net().local_address(listener_), runtime_->loop().now() + 60 * kSecond);
    ASSERT_TRUE(run_until([&] { return !link.accept.in_flight && !link.connect.in_flight; }));
    ASSERT_FALSE(link.accept.error || link.connect.error);
    link.connecting = false;
    for (End* end : {&link.client, &link.server}) {
      end->id = end == &link.client ? link.connect.stream() : link.accept.stream();
      end->open = true;
      end->ended = end->shut = false;
      end->sent = end->received = 0;
    }
    if (!link.tls) return;
    const Instant deadline = runtime_->loop().now() + static_cast<std::int64_t>(random_.below(3)) * kSecond + kMillisecond;
    net().start_tls(link.server.handshake, link.server.id, {}, deadline);
    net().start_tls_client(link.client.handshake, link.client.id, "127.0.0.1", deadline);
    link.client.shaking = link.server.shaking = true;
  }
  void begin_read(End& end) {
    if (!end.open || end.reading || end.shaking || end.ended) return;
    net().read_some(end.read, end.id, chunks_);
    end.reading = true;
  }
  void begin_write(End& end) {
    if (!end.open || end.writing || end.shaking || end.shut) return;
    end.buffer.resize(random_.between(1, 60'000));
    for (std::size_t i = 0; i < end.buffer.size(); ++i) end.buffer[i] = static_cast<char>((end.sent + i) % kPeriod);
    const ConstBuf whole = bytes_of(end.buffer);
    const std::size_t cut = random_.below(whole.size() + 1);
    const ConstBuf pieces[] = {whole.first(cut), whole.subspan(cut)};
    net().write_some(end.write, end.id, pieces);
    end.writing = true;
  }
  void act(Link& link) {
    End& end = random_.chance(512) ? link.client : link.server;
    switch (random_.below(12)) {
      case 0:
        if (!end.open || random_.chance(512)) return;
        net().close(end.id);
        end.open = false;
        return;
      case 1:
        if (!end.open || end.shaking) return;
        net().shutdown_write(end.id);
        end.shut = true;
        return;
      case 2:
      case 3:
      case 4:
      case 5:
        return begin_write(end);
      default:
        return begin_read(end);
    }
  }
  // What was delivered since the last look.
  void look(End& end) {
    if (end.shaking && !end.handshake.in_flight) {
      end.shaking = false;
      handshakes_ += end.handshake.error ? 0 : 1;
      if (end.handshake.error) end.ended = end.shut = true;
    }
    if (end.writing && !end.write.in_flight) {
      end.writing = false;
      if (end.write.error) end.shut = true;
      end.sent += end.write.value;
      std::fill(end.buffer.begin(), end.buffer.end(), '\xee');  // nobody may read it any more
    }
    if (end.reading && !end.read.in_flight) {
      end.reading = false;
      end.ended = static_cast<bool>(end.read.error);
      EXPECT_EQ(end.read.data.empty(), end.ended);
      for (const std::byte byte : end.read.data.bytes()) {
        ASSERT_EQ(static_cast<std::uint8_t>(byte), end.received % kPeriod) << end.received;
        ++end.received;
      }
      bytes_ += end.read.data.size();
      end.read.data = {};
    }
  }

  Random random_{GetParam() + 1};
  ChunkPool chunks_{16 * 1024, 8};
  std::string directory_;
  std::unique_ptr<real::Runtime> runtime_;
  QuietShard shard_;
  io::StreamId listener_{};
  int connections_ = 0, handshakes_ = 0;
  std::uint64_t bytes_ = 0;
};
INSTANTIATE_TEST_SUITE_P(Threads, NetThreads, testing::Values(0u, 1u, 2u));

TEST_P(NetThreads, ConnectionsThatCloseAtAnyMomentLoseNothingAndLeaveNothingBehind) {
  listen();
  std::deque<Link> links(kLinks);
  for (int round = 0; round < 20'000 && connections_ < kConnectionsMax; ++round) {
    Link& link = links[random_.below(kLinks)];
    const bool over = !link.client.open && !link.server.open && !link.client.busy() && !link.server.busy();
    if (over) {
      open(link);
    } else {
      act(link);
    }
    if (round % 4 == 0) step(random_.chance(256) ? kMillisecond : 0);  // now and then the other threads may catch up
    for (Link& each : links) {
      look(each.client);
      look(each.server);
    }
    ASSERT_FALSE(HasFatalFailure());
  }
  for (Link& link : links) {
    for (End* end : {&link.client, &link.server}) {
      if (end->open) net().close(end->id);
      end->open = false;
    }
  }
  ASSERT_TRUE(run_until([&] {
    bool busy = false;
    for (Link& link : links) {
      look(link.client);
      look(link.server);
      busy = busy || link.client.busy() || link.server.busy();
    }
    return !busy;
  }));
  EXPECT_EQ(connections_, kConnectionsMax);
  EXPECT_GT(handshakes_, 0);
  EXPECT_GT(bytes_, 64u * 1024);
  EXPECT_EQ(chunks_.outstanding(), net().lent_chunks());
}

TEST_P(NetThreads, MoreReadsThanChunksOnLoanAreServedWhileTheDataIsKept) {
  listen();
  constexpr std::size_t kCount = real::NetThread::kLoanMax * 2 + 10;
  std::deque<Link> links;
  std::deque<WaitRead> reads;
  for (std::size_t i = 0; i < kCount; ++i) {
    Link& link = links.emplace_back();
    net().accept(link.accept, listener_);
    net().connect(link.connect, net().local_address(listener_), runtime_->loop().now() + 60 * kSecond);
    ASSERT_TRUE(run_until([&] { return !link.accept.in_flight && !link.connect.in_flight; }));
    net().read_some(reads.emplace_back(), link.accept.stream(), chunks_);
  }
  EXPECT_LE(net().lent_chunks(), real::NetThread::kLoanMax * GetParam());
  const std::string byte = "x";
  const ConstBuf one = bytes_of(byte);
  for (Link& link : links) net().write_some(link.client.write, link.connect.stream(), {&one, 1});
  const auto done = [](const WaitRead& read) { return !read.in_flight; };
  ASSERT_TRUE(run_until([&] { return std::all_of(reads.begin(), reads.end(), done); }));
  for (const WaitRead& read : reads) EXPECT_EQ(text_of(read.data.bytes()), "x");
  EXPECT_EQ(chunks_.outstanding(), kCount + net().lent_chunks());
  ASSERT_TRUE(run_until(
      [&] { return std::none_of(links.begin(), links.end(), [](const Link& link) { return link.client.write.in_flight; }); }));
}

}  // namespace
}  // namespace rq::test
