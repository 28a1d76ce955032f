// What a barrier costs: one small append to each of N files, then all of them durable, by each strategy (docs/performance.md).
//   barrier_bench DIRECTORY [ROUNDS]     prints one Markdown table; every figure is a median in microseconds
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "io/real/barrier.h"
#include "io/real/file_calls.h"
#include "io/real/pool.h"

namespace {

using rq::real::Job;

constexpr int kFilesMax = 64;
constexpr std::size_t kRecordBytes = 512;

std::int64_t now_ns() {
  timespec t{};
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1'000'000'000 + t.tv_nsec;
}

[[noreturn]] void give_up(const char* what) {
  std::perror(what);
  std::exit(1);
}

struct SyncJob final : Job {
  std::vector<int> files;
  void execute() noexcept override {
    for (const int fd : files) {
      if (::fdatasync(fd) != 0) give_up("fdatasync");
    }
  }
  void finish() override {}
};

// Spreads the files over `jobs` workers and waits for all of them, as the loop does.
void parallel(rq::real::Pool& pool, std::atomic<int>& woken, const std::vector<int>& files, std::size_t jobs) {
  std::vector<SyncJob> work(std::min(jobs, files.size()));
  for (std::size_t i = 0; i < files.size(); ++i) work[i % work.size()].files.push_back(files[i]);
  for (SyncJob& job : work) {
    job.lane = rq::real::Lane::slow;
    pool.submit(job);
  }
  std::size_t done = 0;
  while (done < work.size()) {
    const int seen = woken.load();
    done += pool.finish_all();
    if (done < work.size()) woken.wait(seen);
  }
}

// One small record to each file, then the strategy; in nanoseconds.
std::int64_t measure(const std::vector<int>& files, const std::function<void()>& sync) {
  static const std::string record(kRecordBytes, 'r');
  const std::int64_t start = now_ns();
  for (const int fd : files) {
    if (::write(fd, record.data(), record.size()) != static_cast<ssize_t>(record.size())) give_up("write");
  }
  sync();
  return now_ns() - start;
}

double median_us(std::vector<std::int64_t>& times) {
  std::sort(times.begin(), times.end());
  return static_cast<double>(times[times.size() / 2]) / 1000.0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: barrier_bench DIRECTORY [ROUNDS]\n");
    return 2;
  }
  const std::string directory = argv[1];
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 200;
  std::vector<int> all;
  for (int i = 0; i < kFilesMax; ++i) {
    const std::string path = directory + "/barrier_bench_" + std::to_string(i);
    const int fd = ::open(path.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_APPEND | O_CLOEXEC, 0644);
    if (fd < 0) give_up(path.c_str());
    all.push_back(fd);
  }
  std::atomic<int> woken{0};
  rq::real::Pool pool({8, 8}, [&] {
    ++woken;
    woken.notify_one();
  });
  std::printf("| dirty files | fdatasync, one after another | on 2 workers | on 4 workers | on 8 workers | one syncfs |\n");
  std::printf("| --- | --- | --- | --- | --- | --- |\n");
  for (const std::size_t count : {1, 2, 4, 8, 16, 32, 64}) {
    const std::vector<int> files(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count));
    const std::function<void()> strategies[] = {
        [&] {
          for (const int fd : files) {
            if (::fdatasync(fd) != 0) give_up("fdatasync");
          }
        },
        [&] { parallel(pool, woken, files, 2); },
        [&] { parallel(pool, woken, files, 4); },
        [&] { parallel(pool, woken, files, 8); },
        [&] {
          if (::syncfs(files.front()) != 0) give_up("syncfs");
        },
    };
    // In turns, so that what else the machine does falls on all of them alike.
    std::vector<std::int64_t> times[std::size(strategies)];
    for (int round = 0; round < rounds; ++round) {
      for (std::size_t i = 0; i < std::size(strategies); ++i) times[i].push_back(measure(files, strategies[i]));
    }
    std::printf("| %zu |", count);
    for (auto& of_strategy : times) std::printf(" %.0f |", median_us(of_strategy));
    std::printf("\n");
    std::fflush(stdout);
  }
  for (int i = 0; i < kFilesMax; ++i) ::unlink((directory + "/barrier_bench_" + std::to_string(i)).c_str());
  return 0;
}
