// Connects by host name: their deadlines hold whatever the resolver does, and nobody is asked more than needed.
#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>

#include "io/real/runtime.h"
#include "tests/io/port_world.h"

namespace rq::test {
namespace {

using io::Errc;

// A resolver that says nothing before it is told to.
class NameServer {
 public:
  std::optional<real::SocketAddress> ask(const real::HostPort& name) {
    std::unique_lock lock(mutex_);
    ++asked_[name.host];
    most_ = std::max(most_, ++waiting_);
    changed_.notify_all();
    changed_.wait(lock, [&] { return open_; });
    --waiting_;
    return name.host == "nowhere" ? std::nullopt : real::parse_address("127.0.0.1:" + name.port);
  }
  void answer() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  void wait_for_questions(int count) {
    std::unique_lock lock(mutex_);
    ASSERT_TRUE(changed_.wait_for(lock, std::chrono::seconds(20), [&] { return waiting_ == count; }));
  }
  int asked(const std::string& host) {
    const std::lock_guard lock(mutex_);
    return asked_[host];
  }
  int most() const { return most_; }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, int> asked_;
  bool open_ = false;
  int waiting_ = 0, most_ = 0;
};

class LookupsTest : public testing::Test {
 protected:
  LookupsTest() {
    real::RuntimeOptions options;
    options.log_fd = 2;
    options.net.resolver = [this](const real::HostPort& name) { return server_.ask(name); };
    runtime_ = std::make_unique<real::Runtime>(options);
    WaitOp op;
    net().listen(op, "127.0.0.1:0");
    RQ_CHECK(run_until([&] { return !op.in_flight; }) && !op.error);
    const std::string local = net().local_address(op.stream());
    port_ = local.substr(local.rfind(':'));
  }
  ~LookupsTest() override { server_.answer(); }

  real::RealNet& net() { return runtime_->net(); }
  Instant in_ms(std::int64_t ms) { return runtime_->loop().now() + ms * kMillisecond; }
  bool run_until(const std::function<bool()>& condition) {
    const Instant limit = in_ms(20'000);
    while (!condition()) {
      if (runtime_->loop().now() >= limit) return false;
      runtime_->loop().step(shard_, limit);
    }
    return true;
  }

  // Each by a name of its own.
  void connect_each(std::deque<WaitOp>& connects, Instant deadline) {
    int number = 0;
    for (WaitOp& op : connects) net().connect(op, "name-" + std::to_string(number++) + port_, deadline);
  }
  static bool none_in_flight(const std::deque<WaitOp>& connects) {
    return std::none_of(connects.begin(), connects.end(), [](const WaitOp& op) { return op.in_flight; });
  }

  NameServer server_;
  QuietShard shard_;
  std::unique_ptr<real::Runtime> runtime_;
  std::string port_;  // with its colon; something listens there
};

TEST_F(LookupsTest, AConnectEndsAtItsDeadlineWhileTheResolverIsSilent) {
  std::deque<WaitOp> connects(3);
  const Instant deadline = in_ms(20);
  connect_each(connects, deadline);
  EXPECT_TRUE(run_until([&] { return none_in_flight(connects); }));
  EXPECT_GE(runtime_->loop().now(), deadline);
  server_.answer();
  ASSERT_TRUE(run_until([&] { return none_in_flight(connects); }));
  for (const WaitOp& op : connects) EXPECT_EQ(op.error.code, Errc::timed_out);
}

TEST_F(LookupsTest, EqualNamesAreAskedForOnceAndEachConnectHasItsStream) {
  std::deque<WaitOp> connects(5);
  for (WaitOp& op : connects) net().connect(op, "name" + port_, in_ms(60'000));
  server_.wait_for_questions(1);
  server_.answer();
  ASSERT_TRUE(run_until([&] { return none_in_flight(connects); }));
  EXPECT_EQ(server_.asked("name"), 1);
  std::vector<io::StreamId> streams;
  for (const WaitOp& op : connects) {
    EXPECT_EQ(op.error.code, Errc::ok);
    EXPECT_EQ(std::count(streams.begin(), streams.end(), op.stream()), 0);
    streams.push_back(op.stream());
  }
}

TEST_F(LookupsTest, AtMostTwoAreAskedAtATimeAndANameThatNobodyWaitsForIsNotAsked) {
  WaitOp first, second, given_up, waits;
  net().connect(first, "first" + port_, in_ms(60'000));
  net().connect(second, "second" + port_, in_ms(60'000));
  net().connect(given_up, "third" + port_, in_ms(10));
  net().connect(waits, "fourth" + port_, in_ms(60'000));
  server_.wait_for_questions(2);
  ASSERT_TRUE(run_until([&] { return !given_up.in_flight; }));
  EXPECT_EQ(given_up.error.code, Errc::timed_out);
  server_.answer();
  ASSERT_TRUE(run_until([&] { return !first.in_flight && !second.in_flight && !waits.in_flight; }));
  EXPECT_EQ(waits.error.code, Errc::ok);
  EXPECT_EQ(server_.asked("third"), 0);
  EXPECT_EQ(server_.most(), 2);
}

// What the resolver found late serves who asked meanwhile.
TEST_F(LookupsTest, AConnectJoinsAQuestionWhoseFirstAskerHasGone) {
  WaitOp gone, joins;
  net().connect(gone, "name" + port_, in_ms(10));
  server_.wait_for_questions(1);
  ASSERT_TRUE(run_until([&] { return !gone.in_flight; }));
  net().connect(joins, "name" + port_, in_ms(60'000));
  server_.answer();
  ASSERT_TRUE(run_until([&] { return !joins.in_flight; }));
  EXPECT_EQ(joins.error.code, Errc::ok);
  EXPECT_EQ(server_.asked("name"), 1);
  EXPECT_EQ(gone.deliveries, 1);
}

TEST_F(LookupsTest, ANameWithoutAnAddressIsNotFound) {
  server_.answer();
  WaitOp op;
  net().connect(op, "nowhere:80", in_ms(60'000));
  ASSERT_TRUE(run_until([&] { return !op.in_flight; }));
  EXPECT_EQ(op.error.code, Errc::not_found);
}

// The pool waits for the worker and drops its finished job; the queued one was never the pool's.
TEST_F(LookupsTest, TheRuntimeEndsWithQuestionsInEveryState) {
  std::deque<WaitOp> connects(3);
  connect_each(connects, in_ms(60'000));
  server_.wait_for_questions(2);
  server_.answer();
  runtime_.reset();
  for (WaitOp& op : connects) {
    EXPECT_TRUE(op.in_flight);
    op.in_flight = false;  // nothing is left that could complete it
  }
}

}  // namespace
}  // namespace rq::test
