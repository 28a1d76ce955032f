// Accepting when the kernel does not go along: the call ends with an error, and the loop lives on.
#include <dirent.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "io/real/address.h"
#include "io/real/runtime.h"
#include "tests/io/port_world.h"

namespace rq::test {
namespace {

using io::Errc;

class Accepting : public testing::Test {
 protected:
  Accepting() {
    real::RuntimeOptions options;
    options.log_fd = 2;
    runtime_ = std::make_unique<real::Runtime>(options);
    WaitOp op;
    net().listen(op, "127.0.0.1:0");
    run_until([&] { return !op.in_flight; });
    RQ_CHECK(!op.error);
    listener_ = op.stream();
    address_ = net().local_address(listener_);
  }
  ~Accepting() override {
    for (const int fd : clients_) ::close(fd);
  }

  real::RealNet& net() { return runtime_->net(); }
  bool run_until(const std::function<bool()>& condition) {
    const Instant limit = runtime_->loop().now() + 20 * kSecond;
    while (!condition()) {
      if (runtime_->loop().now() >= limit) return false;
      runtime_->loop().step(shard_, limit);
    }
    return true;
  }
  // A connection that the kernel has taken.
  void knock() {
    const auto address = real::parse_address(address_);
    clients_.push_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(::connect(clients_.back(), address->get(), address->length), 0);
  }
  // The descriptor of the listener, which the port does not give away.
  int listening_fd() const {
    int found = -1;
    DIR* fds = ::opendir("/proc/self/fd");
    while (const dirent* entry = ::readdir(fds)) {
      const int fd = std::atoi(entry->d_name);
      int listens = 0;
      socklen_t length = sizeof listens;
      real::SocketAddress address;
      address.length = sizeof address.storage;
      if (::getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &length) != 0 || listens == 0) continue;
      if (::getsockname(fd, address.get(), &address.length) == 0 && real::format_address(address) == address_) found = fd;
    }
    ::closedir(fds);
    return found;
  }

  QuietShard shard_;
  std::unique_ptr<real::Runtime> runtime_;
  io::StreamId listener_{};
  std::string address_;
  std::vector<int> clients_;
};

TEST_F(Accepting, AnErrorThatStaysEndsTheCall) {
  const int fd = listening_fd();
  ASSERT_GE(fd, 0);
  WaitOp op;
  net().accept(op, listener_);
  ASSERT_EQ(::shutdown(fd, SHUT_RDWR), 0);  // from now on accept() says EINVAL
  ASSERT_TRUE(run_until([&] { return !op.in_flight; }));
  EXPECT_EQ(op.error.code, Errc::io);
  EXPECT_EQ(op.error.os, EINVAL);
  WaitOp again;  // as a Listener does a moment later
  net().accept(again, listener_);
  ASSERT_TRUE(run_until([&] { return !again.in_flight; }));
  EXPECT_EQ(again.error.code, Errc::io);
}

TEST_F(Accepting, AStreamThatCannotBeWatchedIsALackOfHandles) {
  WaitOp first, second, third;
  net().accept(first, listener_);
  knock();
  ASSERT_TRUE(run_until([&] { return !first.in_flight; }));
  ASSERT_EQ(first.error.code, Errc::ok);
  // The set of watched sockets refuses: it is another file for a moment.
  const int set = ::dup(net().fd());
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ASSERT_EQ(::dup2(ends[0], net().fd()), net().fd());
  knock();
  net().accept(second, listener_);
  ASSERT_EQ(::dup2(set, net().fd()), net().fd());
  for (const int fd : {set, ends[0], ends[1]}) ::close(fd);
  net().accept(third, listener_);
  knock();
  ASSERT_TRUE(run_until([&] { return !second.in_flight && !third.in_flight; }));
  EXPECT_EQ(second.error.code, Errc::no_handles);
  EXPECT_EQ(third.error.code, Errc::ok);
}

}  // namespace
}  // namespace rq::test
