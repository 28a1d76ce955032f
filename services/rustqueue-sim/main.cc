// rustqueue-sim: runs the Broker under seeds in the simulated world and judges each by the ledger (docs/simulation.md).
// Exit status: 0 no finding, 1 a finding, 2 wrong use.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>

#include "core/base/check.h"
#include "core/base/probe.h"
#include "core/base/text.h"
#include "services/rustqueue-sim/export.h"
#include "sim/minimise.h"
#include "sim/plants.h"
#include "sim/runner.h"

namespace {

using rq::sim::RunOptions;
using rq::sim::RunResult;

std::uint64_t g_seed = 0;      // the one that runs, for the check handler
std::string g_export;          // a directory, empty: nothing is exported
std::string g_replay_options;  // everything of the command line that it depends on

std::string replay_command(std::uint64_t seed) { return fmt::format("rustqueue-sim --seed {}{}", seed, g_replay_options); }

void on_check(const char* file, int line, const char* expression) {
  fmt::print(stderr, "seed {}: {}:{}: check failed: {}\nreplay: {}\n", g_seed, file, line, expression, replay_command(g_seed));
}

struct Sums {
  std::uint64_t seeds = 0, twice = 0, events = 0, boots = 0, kills = 0, power_losses = 0, failed_exits = 0, clean_exits = 0;
  std::uint64_t rots = 0, rots_found = 0, opening_kills = 0, misdeeds = 0, channels_learned = 0;
  std::int64_t virtual_ns = 0;
  rq::ledger::Totals ledger;
  rq::sim::FaultCounts faults;

  void add(const RunResult& run) {
    ++seeds;
    events += run.events;
    boots += run.boots;
    kills += run.kills;
    power_losses += run.power_losses;
    failed_exits += run.failed_exits;
    clean_exits += run.clean_exits;
    rots += run.rots;
    rots_found += run.rots_found;
    opening_kills += run.opening_kills;
    misdeeds += run.misdeeds;
    channels_learned += run.channels_learned;
    virtual_ns += run.virtual_ns;
    ledger.messages += run.totals.messages;
    ledger.acknowledged += run.totals.acknowledged;
    ledger.ambiguous += run.totals.ambiguous;
    ledger.deliveries += run.totals.deliveries;
    ledger.fins_durable += run.totals.fins_durable;
    ledger.audited += run.totals.audited;
    faults.sync_failures += run.faults.sync_failures;
    faults.no_space += run.faults.no_space;
    faults.io_errors += run.faults.io_errors;
    faults.resets += run.faults.resets;
    faults.torn_appends += run.faults.torn_appends;
  }
  void print(double seconds) const {
    const double hours = static_cast<double>(virtual_ns) / 3.6e12;
    fmt::print("{} seeds ({} of them twice) in {:.1f} s: {:.0f} seeds a minute, {:.1f} simulated hours a minute, {} events\n",
               seeds, twice, seconds, static_cast<double>(seeds + twice) * 60 / seconds, hours * 60 / seconds, events);
    fmt::print("{} Broker starts: {} kills, {} power losses, {} clean stops, {} exits after a storage fault\n", boots, kills,
               power_losses, clean_exits, failed_exits);
    fmt::print(
        "{} crashes while opening; {} bits flipped in sealed data, {} of them met and named; {} Channels learned from "
        "lookup servers\n",
        opening_kills, rots, rots_found, channels_learned);
    fmt::print("{} fsync failures, {} ENOSPC, {} I/O errors, {} resets, {} torn appends, {} connections that misbehaved\n",
               faults.sync_failures, faults.no_space, faults.io_errors, faults.resets, faults.torn_appends, misdeeds);
    fmt::print("{} messages: {} acknowledged, {} ambiguous, {} deliveries, {} FINs seen durable, {} copies audited\n",
               ledger.messages, ledger.acknowledged, ledger.ambiguous, ledger.deliveries, ledger.fins_durable, ledger.audited);
  }
};

void print_probes() {
  std::vector<const rq::Probe*> probes;
  for (const rq::Probe* probe = rq::probe_list(); probe != nullptr; probe = probe->next) probes.push_back(probe);
  std::sort(probes.begin(), probes.end(),
            [](const rq::Probe* a, const rq::Probe* b) { return std::string_view(a->name) < std::string_view(b->name); });
  std::size_t unhit = 0;
  for (const rq::Probe* probe : probes) {
    fmt::print("{:>12} {}\n", probe->hits, probe->name);
    if (probe->hits == 0) ++unhit;
  }
  fmt::print("{} probes, {} without a hit\n", probes.size(), unhit);
}

// True when the seed has no finding.
bool run(std::uint64_t seed, const RunOptions& options, bool twice, bool verbose, bool hashes, bool minimise, Sums& sums) {
  g_seed = seed;
  const RunResult result = rq::sim::run_seed(seed, options);
  sums.add(result);
  if (!g_export.empty() && !rq::sim::export_directories(g_export, seed, result)) {
    fmt::print(stderr, "Error: cannot write to {}\n", g_export);
    return false;
  }
  if (hashes) fmt::print("seed {} hash {:016x} events {}\n", seed, result.trace_hash, result.events);
  if (verbose)
    fmt::print("seed {}: hash {:016x}, {} events, {:.1f} virtual seconds\nplan: {}\n{}", seed, result.trace_hash, result.events,
               static_cast<double>(result.virtual_ns) / 1e9, result.plan, result.report);
  if (!result.failure.empty()) {
    fmt::print("seed {}: FAILED: {}\n", seed, result.failure);
    if (!verbose) fmt::print("plan: {}\n{}", result.plan, result.report);
    fmt::print("replay: {}\n", replay_command(seed));
    if (minimise) {
      const std::string kind = rq::sim::failure_kind(result.failure);
      fmt::print("minimised: rustqueue-sim --seed {} --plan \"{}\"\n", seed, rq::sim::minimise(seed, options, result.plan, kind));
    }
    return false;
  }
  if (!twice) return true;
  ++sums.twice;
  RunOptions quiet = options;
  quiet.trace = false;
  quiet.keep_directories = false;
  const RunResult again = rq::sim::run_seed(seed, quiet);
  if (again.trace_hash == result.trace_hash) return true;
  fmt::print("seed {}: FAILED: not deterministic: hash {:016x} after {} events, then {:016x} after {}\nreplay: {}\n", seed,
             result.trace_hash, result.events, again.trace_hash, again.events, replay_command(seed));
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Runs the Broker under seeds in a simulated world and looks for lost, doubled or early messages."};
  std::uint64_t seed = 1;
  std::int64_t seconds = 0;
  std::string range, plant, set, plan;
  bool list_plants = false, trace = false, hashes = false, probes = false, minimise = false;
  app.add_option("--seed", seed, "one seed, or the first one with --seconds");
  app.add_option("--seconds", seconds, "run seed after seed for this long");
  app.add_option("--seeds", range, "a range A..B, both included");
  app.add_option("--plant", plant, "switch a planted bug on, and its plan");
  app.add_option("--set", set, "override parts of the plan: \"key=value ...\"");
  app.add_option("--plan", plan, "this plan over the defaults instead of a drawn one: \"key=value ...\"");
  app.add_flag("--list-plants", list_plants, "list the planted bugs");
  app.add_flag("--trace", trace, "print every event");
  app.add_flag("--hashes", hashes, "print each seed's trace hash");
  app.add_flag("--probes", probes, "print how often each probe was hit");
  app.add_flag("--minimise", minimise, "after a finding, look for a smaller plan that shows it too");
  app.add_option("--export", g_export, "write what each seed leaves on the Broker's disk below this directory");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? 0 : 2;
  }
  if (list_plants) {
    for (const rq::sim::Plant& each : rq::sim::plants())
      fmt::print("{:<28} {}; caught within {} seeds\n", each.name, each.what, each.seeds_max);
    return 0;
  }

  RunOptions options;
  options.trace = trace;
  options.keep_directories = !g_export.empty();
  if (!plant.empty()) {
    const auto& all = rq::sim::plants();
    const auto found = std::find_if(all.begin(), all.end(), [&](const auto& each) { return plant == each.name; });
    if (found == all.end()) {
      fmt::print(stderr, "Error: no planted bug \"{}\", see --list-plants\n", plant);
      return 2;
    }
    options.plants.insert(plant);
    options.overrides = found->plan;
    g_replay_options += " --plant " + plant;
  }
  options.plain = app.count("--plan") > 0;
  if (options.plain) g_replay_options += " --plan \"" + plan + "\"";
  if (!set.empty()) g_replay_options += " --set \"" + set + "\"";
  for (const std::string& pairs : {plan, set}) {
    rq::sim::Swarm scratch;
    std::string error;
    if (!scratch.apply(pairs, error)) {
      fmt::print(stderr, "Error: {}\n", error);
      return 2;
    }
    options.overrides += " " + pairs;
  }
  std::uint64_t last = seed;
  if (!range.empty()) {
    const std::size_t dots = std::min(range.find(".."), range.size());
    const auto from = rq::parse_decimal(range.substr(0, dots)),
               to = rq::parse_decimal(std::string_view(range).substr(std::min(dots + 2, range.size())));
    seed = from.value_or(1);
    last = to.value_or(0);
    if (!from || !to || last < seed) {
      fmt::print(stderr, "Error: --seeds wants A..B, not \"{}\"\n", range);
      return 2;
    }
  }

  rq::set_check_handler(&on_check);
  const bool many = seconds > 0 || last > seed;
  const auto start = std::chrono::steady_clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
  Sums sums;
  bool good = true;
  for (std::uint64_t each = seed; good; ++each) {
    if (seconds > 0 ? elapsed() >= static_cast<double>(seconds) : each > last) break;
    good = run(each, options, !many || each % 16 == 0, !many, hashes, minimise, sums);
  }
  if (many) sums.print(elapsed());
  if (probes) print_probes();
  return good ? 0 : 1;
}
