// What the Broker's loop allocates for a message in steady state, on real sockets and real files: counts, not times, so that a
// regression shows on any machine. A figure above its limit means that somebody added an allocation to the path of every message.
// One message at a time has a barrier of its own, which costs about a dozen small vectors and jobs; together they share it.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <functional>

#include "core/nsq/frames.h"
#include "tests/allocations/broker_thread.h"

namespace rq::test {
namespace {

class Client {
 public:
  explicit Client(int port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    RQ_CHECK(::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    send("  V2");
  }
  ~Client() { ::close(fd_); }
  void send(const std::string& bytes) {
    RQ_CHECK(::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size()));
  }
  // The payload of the next frame.
  std::string frame() {
    std::byte header[8];
    receive(header, sizeof header);
    std::string payload(load32(header) - 4, '\0');
    receive(reinterpret_cast<std::byte*>(payload.data()), payload.size());
    return payload;
  }
  void expect_ok(int count = 1) {
    while (count-- > 0) ASSERT_EQ(frame(), "OK");
  }

 private:
  void receive(std::byte* to, std::size_t bytes) {
    while (bytes > 0) {
      const ssize_t got = ::recv(fd_, to, bytes, 0);
      RQ_CHECK(got > 0);
      to += got;
      bytes -= static_cast<std::size_t>(got);
    }
  }
  int fd_;
};

std::string pub(std::size_t bytes) {
  std::string out = "PUB t\n";
  put32(out, static_cast<std::uint32_t>(bytes));
  return out.append(bytes, 'x');
}

std::string repeat(const std::string& text, int count) {
  std::string out;
  while (count-- > 0) out += text;
  return out;
}

std::string mpub(std::size_t bytes, std::uint32_t count) {
  std::string out = "MPUB t\n";
  put32(out, 4 + count * static_cast<std::uint32_t>(4 + bytes));
  put32(out, count);
  for (std::uint32_t i = 0; i < count; ++i) {
    put32(out, static_cast<std::uint32_t>(bytes));
    out.append(bytes, 'x');
  }
  return out;
}

// What timers allocate in a second, whether messages come or not: on a slow machine a measurement has more seconds.
constexpr double kIdlePerSecond = 30;

// Allocations for one message: `batches` runs of a step that handles `messages`, after as many that are not counted.
double measure(const char* what, int messages, int batches, const std::function<void()>& step) {
  for (int i = 0; i < batches; ++i) step();
  const auto begun = std::chrono::steady_clock::now();
  const std::uint64_t before = allocations();
  for (int i = 0; i < batches; ++i) step();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
  const double each = (static_cast<double>(allocations() - before) - kIdlePerSecond * took.count()) / messages / batches;
  std::printf("%-50s %6.2f allocations a message\n", what, each);
  return each;
}

struct Allocations : testing::Test {
  // Receives and finishes `count` messages.
  static void consume(Client& consumer, int count) {
    std::string fins;
    for (int i = 0; i < count; ++i) fins += "FIN " + consumer.frame().substr(10, nsq::kMessageIdBytes) + "\n";
    consumer.send(fins);
  }
  static void subscribe(Client& consumer, const std::string& channel, int ready) {
    consumer.send("SUB t " + channel + "\n");
    consumer.expect_ok();
    consumer.send("RDY " + std::to_string(ready) + "\n");
  }
  BrokerThread broker;
};

TEST_F(Allocations, OfAPubAlone) {
  Client producer(broker.port());
  const std::string command = pub(1024);
  const double each = measure("PUB, one at a time", 1, 500, [&] {
    producer.send(command);
    producer.expect_ok();
  });
  EXPECT_LE(each, 18);
}

TEST_F(Allocations, OfPubsThatArriveTogether) {
  Client producer(broker.port());
  const std::string commands = repeat(pub(100), 32);
  const double each = measure("PUB, 32 at a time", 32, 100, [&] {
    producer.send(commands);
    producer.expect_ok(32);
  });
  EXPECT_LE(each, 3.5);
}

TEST_F(Allocations, OfAnMpub) {
  Client producer(broker.port());
  const std::string command = mpub(100, 64);
  const double each = measure("MPUB of 64", 64, 100, [&] {
    producer.send(command);
    producer.expect_ok();
  });
  EXPECT_LE(each, 0.5);
}

TEST_F(Allocations, OfADeliveryAndItsFinAlone) {
  Client producer(broker.port()), consumer(broker.port());
  subscribe(consumer, "c", 1);
  for (int i = 0; i < 20; ++i) {
    producer.send(mpub(1024, 64));
    producer.expect_ok();
  }
  const double each = measure("delivery and FIN, one at a time", 1, 600, [&] { consume(consumer, 1); });
  EXPECT_LE(each, 16);
}

TEST_F(Allocations, OfDeliveriesAndFinsTogether) {
  Client producer(broker.port()), consumer(broker.port());
  subscribe(consumer, "c", 0);
  for (int i = 0; i < 100; ++i) {
    producer.send(mpub(1024, 64));
    producer.expect_ok();
  }
  consumer.send("RDY 64\n");
  const double each = measure("delivery and FIN, 64 at a time", 64, 45, [&] { consume(consumer, 64); });
  EXPECT_LE(each, 0.6);
}

// There was no Channel when they were published, so no body was kept.
TEST_F(Allocations, OfDeliveriesFromTheDiskAndFinsTogether) {
  Client producer(broker.port()), consumer(broker.port());
  for (int i = 0; i < 100; ++i) {
    producer.send(mpub(1024, 64));
    producer.expect_ok();
  }
  subscribe(consumer, "c", 64);
  const double each = measure("delivery from the disk and FIN, 64 at a time", 64, 45, [&] { consume(consumer, 64); });
  EXPECT_LE(each, 0.8);
}

TEST_F(Allocations, OfAMessageFromPublishToFin) {
  Client producer(broker.port()), consumer(broker.port());
  subscribe(consumer, "c", 16);
  const std::string command = pub(1024);
  const double each = measure("PUB, delivery and FIN, one at a time", 1, 500, [&] {
    producer.send(command);
    producer.expect_ok();
    consume(consumer, 1);
  });
  EXPECT_LE(each, 36);
}

}  // namespace
}  // namespace rq::test
