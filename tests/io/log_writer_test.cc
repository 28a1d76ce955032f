// The log on a pipe: lines in order, a reader that stops or goes away costs lines and never the loop.
#include "io/real/log_writer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include "io/real/log_sink.h"

namespace rq::test {
namespace {

using io::Level;

struct FixedClock final : io::Clock {
  Instant now() const noexcept override { return at; }
  WallTime wall() const noexcept override { return {1'700'000'000'000'000'000}; }
  Instant at{};
};

class LogOnAPipe : public testing::Test {
 protected:
  void SetUp() override {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    read_end = ends[0];
    write_end = ends[1];
    ASSERT_GE(::fcntl(write_end, F_SETPIPE_SZ, 4096), 4096);
    std::signal(SIGPIPE, SIG_IGN);
  }
  void TearDown() override {
    if (read_end >= 0) ::close(read_end);
    ::close(write_end);
  }
  // Reads until the text has come; waits as long as it takes.
  std::string read_until(const std::string& text) {
    std::string all;
    char buffer[4096];
    while (all.find(text) == std::string::npos) {
      const ssize_t got = ::read(read_end, buffer, sizeof buffer);
      if (got <= 0) break;
      all.append(buffer, static_cast<std::size_t>(got));
    }
    return all;
  }
  FixedClock clock;
  int read_end = -1, write_end = -1;
};

// Signals belong to the loop's thread.
TEST_F(LogOnAPipe, TheThreadTakesNoSignals) {
  real::LogWriter writer(write_end);
  writer.push("line\n");
  read_until("line");
  std::vector<std::string> masks;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream status(task.path() / "status");
    std::string key, value, name, mask;
    while (status >> key >> value) {
      if (key == "Name:") name = value;
      if (key == "SigBlk:") mask = value;
    }
    if (name == "rq-log") masks.push_back(mask);
  }
  ASSERT_EQ(masks.size(), 1u);
  const std::uint64_t blocked = std::stoull(masks[0], nullptr, 16);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGUSR1}) EXPECT_NE(blocked >> (signal - 1) & 1, 0u) << signal;
}

TEST_F(LogOnAPipe, LinesComeInTheirOrder) {
  real::StdoutLog log(clock, write_end, {});
  for (int i = 0; i < 3; ++i) {
    log.log(Level::info, "line", "number=" + std::to_string(i));
    log.flush();
  }
  const std::string text = read_until("number=2");
  EXPECT_LT(text.find("number=0"), text.find("number=1"));
  EXPECT_LT(text.find("number=1"), text.find("number=2"));
}

// What the lines of that kind say, added up; `reports` counts them.
std::uint64_t told(const std::string& text, std::uint64_t& reports) {
  const std::string key = "log_lines_dropped lines=";
  std::uint64_t sum = 0;
  reports = 0;
  for (std::size_t at = text.find(key); at != std::string::npos; at = text.find(key, at + 1), ++reports)
    sum += std::stoull(text.substr(at + key.size()));
  return sum;
}

TEST_F(LogOnAPipe, AReaderThatStopsCostsLinesAndTheCountIsALine) {
  real::StdoutLog log(clock, write_end, {}, 16 * 1024);
  std::uint64_t logged = 0, reports = 0;
  const auto line = [&](const std::string& fill) {
    log.log(Level::error, "line", fill);
    log.flush();
    ++logged;
  };
  while (log.dropped() == 0) line(std::string(1'000, 'x'));  // nobody reads: the pipe and the queue fill, and no call waits
  std::string text;
  do {
    text += read_until("\n");
    line("tick");
  } while (told(text, reports) != log.dropped());
  const auto lines = [&] { return static_cast<std::uint64_t>(std::count(text.begin(), text.end(), '\n')); };
  while (lines() < logged - log.dropped() + reports) text += read_until("\n");
  EXPECT_EQ(lines(), logged - log.dropped() + reports);
}

TEST_F(LogOnAPipe, AReaderThatIsGoneEndsTheWriting) {
  real::StdoutLog log(clock, write_end, {});
  ::close(std::exchange(read_end, -1));
  log.log(Level::info, "line", "");
  log.finish();
  log.log(Level::info, "line", std::string(100'000, 'x'));
  log.finish();
  EXPECT_EQ(log.dropped(), 0u);
}

TEST(LogOnAFullVolume, LinesAreLostAndCountedAndTheNextOnesAreTried) {
  FixedClock clock;
  const int full = ::open("/dev/full", O_WRONLY | O_CLOEXEC);
  ASSERT_GE(full, 0);
  real::StdoutLog log(clock, full, {});
  for (std::uint64_t lines = 1; lines <= 3; ++lines) {
    log.log(Level::info, "line", "");
    log.finish();
    EXPECT_GE(log.dropped(), lines);  // the lines that tell of it are lost as well
  }
  ::close(full);
}

TEST_F(LogOnAPipe, FinishReturnsWhenEverythingIsWritten) {
  real::StdoutLog log(clock, write_end, {});
  log.log(Level::info, "last", "");
  log.finish();
  ASSERT_EQ(::fcntl(read_end, F_SETFL, O_NONBLOCK), 0);
  EXPECT_NE(read_until("last").find("last"), std::string::npos);
}

TEST_F(LogOnAPipe, AnEventThatRepeatsIsCutShortAndErrorsNever) {
  real::StdoutLog log(clock, write_end, {});
  for (int i = 0; i < 60; ++i) log.log(Level::warn, "peer", "n=" + std::to_string(i));
  for (int i = 0; i < 60; ++i) log.log(Level::error, "fault", "n=" + std::to_string(i));
  clock.at = clock.at + LogThrottle::kWindowNs;
  log.flush();
  const std::string text = read_until("log_lines_left_out event=peer lines=10");
  EXPECT_NE(text.find("peer n=49"), std::string::npos);
  EXPECT_EQ(text.find("peer n=50"), std::string::npos);
  EXPECT_NE(text.find("fault n=59"), std::string::npos);
}

}  // namespace
}  // namespace rq::test
