// rustqueue-bench: reads options, puts the load generator on the real ports, runs it, prints the report.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <optional>
#include <string>

#include "bench/load/load_shard.h"
#include "bench/load/report.h"
#include "bench/print.h"
#include "io/real/address.h"
#include "io/real/look_up.h"
#include "io/real/process.h"
#include "io/real/runtime.h"
#include "services/rustqueue-bench/command_line.h"

namespace {

using namespace rq;

int fail(const std::string& why) {
  fmt::print(stderr, "Error: {}\n", why);
  return 1;
}

// A name becomes the address that every connection of the run uses. Empty: no such host and port.
std::string resolve(const std::string& address) {
  if (real::parse_address(address)) return address;
  const std::optional<real::HostPort> name = real::parse_host_port(address);
  const std::optional<real::SocketAddress> found = name ? real::look_up(*name) : std::nullopt;
  return found ? real::format_address(*found) : std::string();
}

// Twelve or so digits that grow with time.
std::string base36(std::uint64_t number) {
  std::string digits;
  do digits.insert(digits.begin(), "0123456789abcdefghijklmnopqrstuvwxyz"[number % 36]);
  while ((number /= 36) > 0);
  return digits;
}

// One line on a terminal, rewritten every second.
class Progress {
 public:
  Progress() : on_(::isatty(2) == 1) {}
  bool on() const { return on_; }
  void show(const load::LoadShard& shard) {
    const load::Phase* phase = shard.phase();
    if (!on_ || phase == nullptr) return;
    fmt::print(stderr, "\r\x1b[K{}{}: {} published, {} received", shard.warming() ? "warm-up, " : "", phase->state_name(),
               phase->published(), phase->received());
    std::fflush(stderr);
  }
  void clear() const {
    if (on_) fmt::print(stderr, "\r\x1b[K");
  }

 private:
  bool on_;
};

int run(int argc, char** argv) {
  service::BenchCommandLine line = service::parse_bench_command_line(argc, argv);
  if (line.exit_status) return *line.exit_status;
  if (const auto why = load::refusal(line.options)) return fail(*why);
  const std::string named = line.options.address;
  line.options.address = resolve(named);
  if (line.options.address.empty()) return fail(fmt::format("--address {}: no such host and port", named));
  const std::uint64_t files = real::raise_file_limit(), connections = line.options.producers + line.options.consumers;
  if (connections + 16 > files)
    return fail(fmt::format("{} connections need more than the {} files allowed", connections, files));

  real::RuntimeOptions options;
  options.seed = real::entropy();
  auto* runtime = new real::Runtime(options);
  auto* shard = new load::LoadShard(runtime->host(), line.options, base36(static_cast<std::uint64_t>(runtime->loop().wall().ns)),
                                    options.seed);
  Progress progress;
  Instant next = runtime->loop().now();
  while (!shard->done()) {
    runtime->loop().step(*shard, progress.on() ? next : Instant::never());
    if (!progress.on() || runtime->loop().now() < next) continue;
    next = runtime->loop().now() + kSecond;
    progress.show(*shard);
  }
  progress.clear();
  if (!shard->error().empty()) return fail(shard->error());
  load::LoadOptions shown = line.options;
  shown.address = named;
  const load::Report report{shown, shard->phase()->names(), shard->phase()->result(), shard->phase()->latency()};
  return bench::print_report(line.json ? report.json() + "\n" : report.text(), report.valid() ? 0 : 1);
}

}  // namespace

int main(int argc, char** argv) {
  const int status = run(argc, argv);
  std::fflush(nullptr);
  ::_exit(status);  // nothing is destroyed: connections may still be open
}
