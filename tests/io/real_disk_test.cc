// What only real files show: full devices, torn appends, the barrier strategy.
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <filesystem>

#include "io/real/errors.h"
#include "io/real/runtime.h"
#include "io/real/stall_guard.h"
#include "tests/io/port_world.h"

namespace rq::test {
namespace {

using io::Errc;

class RealDiskTest : public testing::Test {
 protected:
  RealDiskTest() {
    root_ = (std::filesystem::temp_directory_path() / "rq_disk_XXXXXX").string();
    RQ_CHECK(::mkdtemp(root_.data()) != nullptr);
    start(real::BarrierStrategy::automatic);
  }
  ~RealDiskTest() override {
    runtime_.reset();
    std::filesystem::remove_all(root_);
  }
  void start(real::BarrierStrategy strategy) {
    real::RuntimeOptions options;
    options.log_fd = 2;
    options.disk = {strategy, root_};
    runtime_ = std::make_unique<real::Runtime>(options);
  }
  io::Disk& disk() { return runtime_->disk(); }
  Errc wait(io::Op& op) {
    runtime_->disk().flush();
    const Instant limit = runtime_->loop().now() + 60 * kSecond;
    while (op.in_flight) {
      RQ_CHECK(runtime_->loop().now() < limit);  // the Op cannot be left: the port would write into it
      runtime_->loop().step(shard_, limit);
    }
    return op.error.code;
  }
  io::FileId open(const std::string& path, io::OpenMode mode) {
    WaitOp op;
    disk().open(op, path, mode);
    EXPECT_EQ(wait(op), Errc::ok);
    return op.file();
  }
  Errc append(io::FileId id, std::string_view text) {
    WaitOp op;
    const ConstBuf bytes = bytes_of(text);
    disk().append(op, id, {&bytes, 1});
    return wait(op);
  }
  Errc barrier(std::vector<io::BarrierFile> files) {
    WaitOp op;
    disk().barrier(op, files);
    return wait(op);
  }

  QuietShard shard_;
  std::string root_;
  std::unique_ptr<real::Runtime> runtime_;
};

TEST_F(RealDiskTest, AFullDeviceFailsTheAppendAndEveryBarrierAfterIt) {
  const io::FileId id = open("/dev/full", io::OpenMode::append);
  WaitOp append, sync, later;
  const ConstBuf bytes = bytes_of("record");
  const io::BarrierFile file{id};
  disk().append(append, id, {&bytes, 1});
  disk().barrier(sync, {&file, 1});
  disk().barrier(later, {&file, 1});
  wait(later);
  EXPECT_EQ(append.error.code, Errc::no_space);
  EXPECT_EQ(append.value, 0u);
  EXPECT_EQ(sync.error.code, Errc::no_space);
  EXPECT_EQ(later.error.code, Errc::no_space);
}

// A file size limit cuts the second append short, as a volume that fills up would.
TEST_F(RealDiskTest, AShortAppendFailsWhatFollowsUntilTheFileIsTruncated) {
  const io::FileId id = open(root_ + "/log", io::OpenMode::append);
  ASSERT_EQ(append(id, "0123456789"), Errc::ok);
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit small = before;
  small.rlim_cur = 15;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  WaitOp torn, behind, sync;
  const ConstBuf first = bytes_of("abcdefghij"), second = bytes_of("XY");
  const io::BarrierFile file{id};
  disk().append(torn, id, {&first, 1});
  disk().append(behind, id, {&second, 1});
  disk().barrier(sync, {&file, 1});
  wait(sync);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_NE(torn.error.code, Errc::ok);
  EXPECT_EQ(torn.value, 5u);
  EXPECT_NE(behind.error.code, Errc::ok);
  EXPECT_EQ(behind.value, 0u);
  EXPECT_NE(sync.error.code, Errc::ok);
  // There is room again, but the torn record still stands at the end.
  EXPECT_NE(append(id, "Z"), Errc::ok);
  EXPECT_NE(barrier({{id}}), Errc::ok);
  WaitOp cut;
  disk().truncate(cut, id, 10);
  EXPECT_EQ(wait(cut), Errc::ok);
  EXPECT_EQ(append(id, "Z"), Errc::ok);
  EXPECT_EQ(barrier({{id}}), Errc::ok);
  EXPECT_EQ(std::filesystem::file_size(root_ + "/log"), 11u);
}

TEST_F(RealDiskTest, AppendsAndBarrierOfATurnAreOneJob) {
  const io::FileId id = open(root_ + "/log", io::OpenMode::append);
  const std::uint64_t before = runtime_->disk().counters().jobs;
  std::deque<WaitOp> appends;
  WaitOp sync;
  const ConstBuf text = bytes_of("text");
  for (int i = 0; i < 100; ++i) disk().append(appends.emplace_back(), id, {&text, 1});
  const io::BarrierFile file{id};
  disk().barrier(sync, {&file, 1});
  EXPECT_EQ(wait(sync), Errc::ok);
  EXPECT_EQ(runtime_->disk().counters().jobs, before + 1);
}

// Appends without a barrier, as in the relaxed modes: no job, and none waits for a sync that runs.
TEST_F(RealDiskTest, SmallAppendsWithoutABarrierAreWrittenByTheLoopBesideARunningSync) {
  const io::FileId id = open(root_ + "/log", io::OpenMode::append);
  const std::uint64_t jobs = runtime_->disk().counters().jobs;
  ASSERT_EQ(append(id, "one"), Errc::ok);
  EXPECT_EQ(runtime_->disk().counters().jobs, jobs);
  WaitOp sync, beside, close;
  const io::BarrierFile file{id};
  const ConstBuf text = bytes_of("two");
  disk().barrier(sync, {&file, 1});
  runtime_->disk().flush();
  EXPECT_EQ(runtime_->disk().counters().jobs, jobs + 1);
  disk().append(beside, id, {&text, 1});
  disk().close(close, id);
  runtime_->disk().flush();  // the append takes place now; the close waits for the sync
  EXPECT_EQ(std::filesystem::file_size(root_ + "/log"), 6u);
  EXPECT_EQ(wait(close), Errc::ok);
  EXPECT_EQ(sync.error.code, Errc::ok);
  EXPECT_EQ(beside.value, 3u);
}

// Whether a file's writes are awaited is learnt anew with each file that is opened.
TEST_F(RealDiskTest, AFileDoesNotInheritTheAppendsOfTheOneThatHadItsHandle) {
  const io::FileId relaxed = open(root_ + "/relaxed", io::OpenMode::append);
  ASSERT_EQ(append(relaxed, "one"), Errc::ok);
  WaitOp closed, written, sync;
  disk().close(closed, relaxed);
  ASSERT_EQ(wait(closed), Errc::ok);
  const io::FileId durable = open(root_ + "/durable", io::OpenMode::append);
  ASSERT_EQ(static_cast<std::uint32_t>(durable), static_cast<std::uint32_t>(relaxed)) << "not the same place";
  const std::uint64_t here = runtime_->disk().counters().appends_here;
  const ConstBuf text = bytes_of("two");
  const io::BarrierFile file{durable};
  disk().append(written, durable, {&text, 1});
  disk().barrier(sync, {&file, 1});
  EXPECT_EQ(wait(sync), Errc::ok);
  EXPECT_EQ(runtime_->disk().counters().appends_here, here);
}

// I1 of file_calls.h holds for a sync that runs beside appends, too.
TEST_F(RealDiskTest, ASyncAfterAFailedAppendOfTheLoopFails) {
  const io::FileId id = open("/dev/full", io::OpenMode::append);
  EXPECT_EQ(append(id, "record"), Errc::no_space);
  EXPECT_EQ(barrier({{id}}), Errc::no_space);
  EXPECT_EQ(append(id, "record"), Errc::no_space);
}

TEST_F(RealDiskTest, ALongAppendGoesToAWorker) {
  const io::FileId id = open(root_ + "/log", io::OpenMode::append);
  const std::uint64_t jobs = runtime_->disk().counters().jobs;
  ASSERT_EQ(append(id, std::string(65'537, 'x')), Errc::ok);
  EXPECT_EQ(runtime_->disk().counters().jobs, jobs + 1);
}

TEST_F(RealDiskTest, ASmallReadOfCachedBytesNeedsNoJobAndOneBeyondTheEndIsShort) {
  const io::FileId id = open(root_ + "/log", io::OpenMode::append);
  ASSERT_EQ(append(id, "0123456789"), Errc::ok);
  const io::FileId reader = open(root_ + "/log", io::OpenMode::read);
  const std::uint64_t here = runtime_->disk().counters().reads_here;
  std::array<std::byte, 8> bytes{};
  WaitOp whole, shortened;
  disk().read(whole, reader, 1, bytes);
  EXPECT_TRUE(whole.in_flight);  // never inline
  EXPECT_EQ(wait(whole), Errc::ok);
  EXPECT_EQ(whole.value, 8u);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(bytes.data()), 8), "12345678");
  disk().read(shortened, reader, 5, bytes);
  EXPECT_EQ(wait(shortened), Errc::ok);
  EXPECT_EQ(shortened.value, 5u);
  EXPECT_LE(runtime_->disk().counters().reads_here, here + 1);  // a file system without RWF_NOWAIT has 0
}

TEST(StallGuard, ASlowWriteClosesItLongerEachTime) {
  real::StallGuard guard;
  Instant now{1 * kSecond};
  EXPECT_TRUE(guard.may_write(now));
  guard.took(now, now + 19 * kMillisecond);
  EXPECT_TRUE(guard.may_write(now + 19 * kMillisecond));
  for (const std::int64_t pause : {1, 2, 4, 8, 16, 32, 64, 64}) {
    guard.took(now, now + 20 * kMillisecond);
    now = now + 20 * kMillisecond;
    EXPECT_FALSE(guard.may_write(now + (pause * kSecond - 1)));
    EXPECT_TRUE(guard.may_write(now + pause * kSecond));
    now = now + pause * kSecond;
  }
  guard.took(now, now);
  guard.took(now, now + 20 * kMillisecond);
  EXPECT_TRUE(guard.may_write(now + 20 * kMillisecond + 1 * kSecond));
}

TEST_F(RealDiskTest, SyncfsIsUsedFromEightFilesUpWhenConfigured) {
  for (const auto& [strategy, expected] :
       {std::pair{real::BarrierStrategy::syncfs, 1u}, {real::BarrierStrategy::fdatasync, 0u}}) {
    start(strategy);
    std::vector<io::BarrierFile> files;
    for (int i = 0; i < 8; ++i) {
      files.push_back({open(root_ + "/f" + std::to_string(i), io::OpenMode::append)});
      ASSERT_EQ(append(files.back().file, "text"), Errc::ok);
    }
    EXPECT_EQ(barrier({files.begin(), files.begin() + 7}), Errc::ok);
    EXPECT_EQ(runtime_->disk().counters().syncfs_barriers, 0u);
    EXPECT_EQ(barrier(files), Errc::ok);
    EXPECT_EQ(runtime_->disk().counters().syncfs_barriers, expected);
  }
}

TEST_F(RealDiskTest, SyncfsIsNotUsedForALargeFile) {
  start(real::BarrierStrategy::syncfs);
  std::vector<io::BarrierFile> files;
  for (int i = 0; i < 8; ++i) files.push_back({open(root_ + "/f" + std::to_string(i), io::OpenMode::append)});
  ASSERT_EQ(append(files[3].file, std::string((1 << 20) + 1, 'x')), Errc::ok);
  EXPECT_EQ(barrier(files), Errc::ok);
  EXPECT_EQ(runtime_->disk().counters().syncfs_barriers, 0u);
}

TEST_F(RealDiskTest, SyncfsReportsAnAppendThatFailed) {
  start(real::BarrierStrategy::syncfs);
  std::vector<io::BarrierFile> files;
  for (int i = 0; i < 8; ++i) files.push_back({open(root_ + "/f" + std::to_string(i), io::OpenMode::append)});
  files.push_back({open("/dev/full", io::OpenMode::append)});
  EXPECT_EQ(append(files.back().file, "text"), Errc::no_space);
  EXPECT_EQ(barrier(files), Errc::no_space);
}

// The sync holds no more than the descriptor, so the read goes its own way beside it; the write waits for the read.
TEST_F(RealDiskTest, AReadBesideARunningSyncHoldsUpTheWriteBehindIt) {
  const io::FileId id = open(root_ + "/log", io::OpenMode::create);
  ASSERT_EQ(append(id, std::string(16 << 20, 'x')), Errc::ok);
  for (int round = 0; round < 5; ++round) {
    const io::FileId file = open(root_ + "/log", io::OpenMode::rewrite);
    std::vector<std::byte> bytes(16 << 20);
    WaitOp sync, read, write, close;
    const io::BarrierFile entry{file};
    disk().barrier(sync, {&entry, 1});
    runtime_->disk().flush();
    disk().read(read, file, 0, bytes);  // too long to be copied by the loop
    const ConstBuf text = bytes_of("y");
    disk().rewrite(write, file, 0, text);
    disk().close(close, file);
    EXPECT_EQ(wait(close), Errc::ok);
    EXPECT_EQ(sync.error.code, Errc::ok);
    EXPECT_EQ(read.value, bytes.size());
    EXPECT_EQ(write.value, 1u);
  }
}

// Page 20 section 1.1: with a group's umask the group can open what another user's process has made.
TEST_F(RealDiskTest, ModesAreTheUmasks) {
  const mode_t before = ::umask(002);
  WaitOp make;
  disk().make_dir(make, root_ + "/dir");
  wait(make);
  open(root_ + "/dir/file", io::OpenMode::create);
  ::umask(before);
  using std::filesystem::perms;
  EXPECT_EQ(std::filesystem::status(root_ + "/dir").permissions(), perms{0775});
  EXPECT_EQ(std::filesystem::status(root_ + "/dir/file").permissions(), perms{0664});
}

// Whoever reads a name that is a FIFO gets an error, and nobody waits for its other end.
TEST_F(RealDiskTest, AFifoDoesNotHangTheOpen) {
  ASSERT_EQ(::mkfifo((root_ + "/fifo").c_str(), 0600), 0);
  WaitOp append, read;
  disk().open(append, root_ + "/fifo", io::OpenMode::append);
  EXPECT_EQ(wait(append), Errc::io);
  EXPECT_EQ(append.error.os, ENXIO);
  const io::FileId id = open(root_ + "/fifo", io::OpenMode::read);
  std::array<std::byte, 8> bytes{};
  disk().read(read, id, 0, bytes);
  EXPECT_EQ(wait(read), Errc::io);
  EXPECT_EQ(read.error.os, ESPIPE);
}

TEST(Barrier, OldKernelsLoseTheErrorsOfSyncfs) {
  EXPECT_FALSE(real::kernel_reports_syncfs_errors("4.19.0"));
  EXPECT_FALSE(real::kernel_reports_syncfs_errors("5.7.19-generic"));
  EXPECT_TRUE(real::kernel_reports_syncfs_errors("5.8.0"));
  EXPECT_TRUE(real::kernel_reports_syncfs_errors("6.1.0-18-amd64"));
  EXPECT_FALSE(real::kernel_reports_syncfs_errors("unknown"));
}

TEST(Barrier, OnlySyncfsThatWasAskedForInVainIsWorthAWord) {
  using real::BarrierStrategy;
  EXPECT_NE(real::syncfs_refusal(BarrierStrategy::syncfs, "5.7.19-generic").find("5.7.19-generic"), std::string::npos);
  EXPECT_NE(real::syncfs_refusal(BarrierStrategy::syncfs, ""), "");
  EXPECT_EQ(real::syncfs_refusal(BarrierStrategy::syncfs, "6.1.0-18-amd64"), "");
  EXPECT_EQ(real::syncfs_refusal(BarrierStrategy::automatic, "4.19.0"), "");
  EXPECT_EQ(real::syncfs_refusal(BarrierStrategy::fdatasync, "4.19.0"), "");
  EXPECT_NE(real::kernel_release(), "");
}

TEST(Errors, ErrnoBecomesTheClassOfThePorts) {
  const std::pair<int, Errc> expected[] = {
      {ENOSPC, Errc::no_space},        {EDQUOT, Errc::no_space},    {EMFILE, Errc::no_handles},
      {ENFILE, Errc::no_handles},      {ENOENT, Errc::not_found},   {EEXIST, Errc::exists},
      {ENOTEMPTY, Errc::exists},       {EACCES, Errc::denied},      {EIO, Errc::io},
      {ECONNRESET, Errc::reset},       {EPIPE, Errc::reset},        {ECONNREFUSED, Errc::refused},
      {EADDRINUSE, Errc::bad_address}, {ETIMEDOUT, Errc::timed_out}};
  for (const auto& [os, code] : expected) {
    const io::Error error = real::error_from(os, "call");
    EXPECT_EQ(error.code, code) << os;
    EXPECT_EQ(error.os, os);
  }
}

}  // namespace
}  // namespace rq::test
