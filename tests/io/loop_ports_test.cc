// Clock, Waker and Offload as both worlds keep them, and the rule that nothing completes inline.
#include "tests/io/port_world.h"

namespace rq::test {
namespace {

class LoopPorts : public Ports {
 protected:
  // A shard's deadline is asked for at the end of a turn, so give it one.
  void set_deadline(Instant deadline) {
    world().shard().deadline = deadline;
    WaitOp op;
    io::Stat facts;
    disk().stat(op, world().root(), true, facts);
    wait(op);
  }
};
INSTANTIATE_TEST_SUITE_P(World, LoopPorts, testing::Values("real", "sim"),
                         [](const auto& world) { return std::string(world.param); });

TEST_P(LoopPorts, TheMonotonicClockNeverGoesBack) {
  Instant last = host().clock.now();
  for (int i = 0; i < 1000; ++i) {
    const Instant next = host().clock.now();
    ASSERT_GE(next, last);
    last = next;
  }
  EXPECT_GT(host().clock.wall().ns, 0);
}

TEST_P(LoopPorts, ADeadlineIsServedNotBeforeItsTime) {
  const Instant deadline = host().clock.now() + 5 * kMillisecond;
  set_deadline(deadline);
  ASSERT_TRUE(world().run_until([&] { return world().shard().expired_at.ns != 0; }));
  EXPECT_GE(world().shard().expired_at, deadline);
}

TEST_P(LoopPorts, AnEarlierDeadlineReplacesALaterOne) {
  set_deadline(host().clock.now() + 300'000 * kSecond);
  set_deadline(host().clock.now() + kMillisecond);
  EXPECT_TRUE(world().run_until([&] { return world().shard().expired_at.ns != 0; }));
}

TEST_P(LoopPorts, ADeadlineTakenBackDoesNotCome) {
  // It may come before it is taken back where the machine stands still; then there is another one, further ahead.
  for (std::int64_t ahead = 100 * kMillisecond; ahead < 100 * kSecond; ahead *= 4) {
    const Instant deadline = host().clock.now() + ahead;
    world().shard().expired_at = {};
    set_deadline(deadline);
    set_deadline(Instant::never());
    if (world().shard().expired_at.ns != 0) continue;
    const int before = world().shard().turns;
    int waits = 0;
    for (; host().clock.now() <= deadline; ++waits) world().settle();
    EXPECT_EQ(world().shard().expired_at.ns, 0);
    // The simulated world waits in a turn of its own.
    EXPECT_LE(world().shard().turns - before, std::string_view(GetParam()) == "sim" ? waits : 0);
    return;
  }
  FAIL() << "no deadline was far enough ahead";
}

TEST_P(LoopPorts, AnOffloadedFunctionRunsOnceAndThenCompletes) {
  struct Job {
    int runs = 0;
    std::uint64_t sum = 0;
  } job;
  WaitOp op;
  host().offload.run(
      op,
      [](void* argument) noexcept {
        Job& mine = *static_cast<Job*>(argument);
        ++mine.runs;
        for (std::uint64_t i = 1; i <= 1000; ++i) mine.sum += i;
      },
      &job);
  EXPECT_EQ(wait(op).error.code, io::Errc::ok);
  EXPECT_EQ(job.runs, 1);
  EXPECT_EQ(job.sum, 500'500u);
}

TEST_P(LoopPorts, ManyOffloadedFunctionsAllComplete) {
  std::vector<int> results(100, 0);
  std::deque<WaitOp> ops;
  for (int& result : results) {
    host().offload.run(
        ops.emplace_back(), [](void* argument) noexcept { *static_cast<int*>(argument) = 1; }, &result);
  }
  for (WaitOp& op : ops) ASSERT_TRUE(world().run_until([&] { return !op.in_flight; }));
  for (const int result : results) EXPECT_EQ(result, 1);
}

// An Op that submits the next call when it is delivered: the new one must not complete before the turn is over.
struct Chain {
  explicit Chain(io::Host& host_, std::string root_) : host(host_), root(std::move(root_)) {
    io::bind<&Chain::on_first>(first, this);
    io::bind<&Chain::on_second>(second, this);
  }
  void on_first(io::Op&) {
    inside = true;
    host.disk.stat(second, root, true, facts);
    host.offload.run(
        third, [](void*) noexcept {}, nullptr);
    inline_completion = !second.in_flight || !third.in_flight;
    inside = false;
  }
  void on_second(io::Op&) {
    nested = inside;
    done = true;
  }
  io::Host& host;
  std::string root;
  io::Op first, second;
  WaitOp third;
  io::Stat facts;
  bool inside = false, nested = false, inline_completion = false, done = false;
};

TEST_P(LoopPorts, ACallMadeWhileAnotherIsDeliveredCompletesLater) {
  Chain chain(host(), world().root());
  host().disk.stat(chain.first, world().root(), true, chain.facts);
  ASSERT_TRUE(world().run_until([&] { return chain.done && !chain.third.in_flight; }));
  EXPECT_FALSE(chain.nested);
  EXPECT_FALSE(chain.inline_completion);
}

TEST_P(LoopPorts, FailuresDoNotCompleteInlineEither) {
  WaitOp open, listen, read_file, accept;
  WaitRead read;
  host().disk.open(open, path("none"), io::OpenMode::read);
  host().net.listen(listen, "nonsense");
  host().disk.close(read_file, io::FileId{77});
  host().net.accept(accept, io::StreamId{77});
  host().net.read_some(read, io::StreamId{77}, chunks_);
  for (io::Op* op : std::initializer_list<io::Op*>{&open, &listen, &read_file, &accept, &read}) EXPECT_TRUE(op->in_flight);
  ASSERT_TRUE(world().run_until(
      [&] { return !open.in_flight && !listen.in_flight && !read_file.in_flight && !accept.in_flight && !read.in_flight; }));
  EXPECT_EQ(open.error.code, io::Errc::not_found);
  EXPECT_EQ(listen.error.code, io::Errc::bad_address);
  EXPECT_EQ(read_file.error.code, io::Errc::cancelled);
  EXPECT_EQ(accept.error.code, io::Errc::cancelled);
  EXPECT_EQ(read.error.code, io::Errc::cancelled);
}

}  // namespace
}  // namespace rq::test
