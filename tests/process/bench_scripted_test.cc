// rustqueue-bench from outside against a server that does what no Broker does on request (page 60 section 6.1).
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <boost/json.hpp>

#include "core/base/bytes.h"
#include "tests/process/program.h"

namespace rq::test {
namespace {

std::string frame(std::uint32_t type, const std::string& payload) {
  std::string out;
  put32(out, static_cast<std::uint32_t>(4 + payload.size()));
  put32(out, type);
  return out + payload;
}

// One accepted connection; every read ends after two minutes.
class Peer {
 public:
  explicit Peer(int fd) : fd_(fd) {
    const timeval limit{120, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  }
  Peer(Peer&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  ~Peer() {
    if (fd_ >= 0) ::close(fd_);
  }
  // The next `count` bytes, or those up to and with the end of a line; less when there is no more.
  std::string read(std::size_t count) {
    std::string out(count, '\0');
    const ssize_t got = ::recv(fd_, out.data(), count, MSG_WAITALL);
    out.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    return out;
  }
  std::string line() {
    std::string out, next;
    do out += next = read(1);
    while (!next.empty() && next != "\n");
    return out;
  }
  void send(const std::string& bytes) {
    EXPECT_EQ(::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  }

 private:
  int fd_;
};

class ScriptedServer {
 public:
  ScriptedServer() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    const timeval limit{120, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);  // of accept as well
    EXPECT_EQ(::bind(fd_, reinterpret_cast<sockaddr*>(&address), length), 0);
    EXPECT_EQ(::listen(fd_, 8), 0);
    EXPECT_EQ(::getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &length), 0);
    port_ = ntohs(address.sin_port);
  }
  ~ScriptedServer() { ::close(fd_); }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  Peer accept() { return Peer(::accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC)); }

 private:
  int fd_, port_ = 0;
};

TEST(BenchScripted, L_16_AfterADuplicateTheReportIsPrintedAndTheStatusIsOne) {
  ScriptedServer server;
  Program run({"--address", server.address(), "--producers", "1", "--consumers", "1", "--messages", "1", "--message-bytes", "32",
               "--json"},
              {}, RQ_BENCH);
  // They connect in this order, and nothing is published before the subscription stands.
  Peer producer = server.accept(), consumer = server.accept();
  EXPECT_EQ(producer.read(4), "  V2");
  ASSERT_EQ(consumer.read(4), "  V2");
  ASSERT_TRUE(consumer.line().starts_with("SUB benchmark-"));
  consumer.send(frame(0, "OK"));
  EXPECT_EQ(consumer.line(), "RDY 2500\n");
  ASSERT_TRUE(producer.line().starts_with("PUB benchmark-"));
  EXPECT_EQ(producer.read(4), std::string("\0\0\0\x20", 4));
  const std::string message = frame(2, std::string(8, '\0') + std::string("\0\1", 2) + "00000000000000ab" + producer.read(32));
  consumer.send(message + message);
  producer.send(frame(0, "OK"));
  for (const char* expected : {"FIN 00000000000000ab\n", "FIN 00000000000000ab\n", "CLS\n"}) EXPECT_EQ(consumer.line(), expected);
  consumer.send(frame(0, "CLOSE_WAIT"));
  EXPECT_EQ(consumer.read(1), "");  // it ends its side and waits for ours
  EXPECT_TRUE(run.running());
  { const Peer gone = std::move(consumer); }
  EXPECT_EQ(run.wait(), 1);
  EXPECT_EQ(run.err(), "");
  boost::json::error_code failed;
  const boost::json::value report = boost::json::parse(run.out(), failed);
  ASSERT_FALSE(failed) << run.out();
  EXPECT_EQ(report.at("messages").as_int64(), 1);
  EXPECT_EQ(report.at("received_total_messages").as_int64(), 2);
  EXPECT_EQ(report.at("duplicate_messages").as_int64(), 1);
  EXPECT_EQ(report.at("missing_messages").as_int64(), 0);
}

}  // namespace
}  // namespace rq::test
