#include "sim/trouble.h"

#include <algorithm>
#include <utility>

#include "sim/manager.h"

namespace rq::sim {
namespace {
std::uint32_t rate(std::int64_t value) { return static_cast<std::uint32_t>(value); }
}  // namespace

void Trouble::every(const char* name, std::int64_t mean_ms, std::function<void(Random&)> action) {
  if (mean_ms == 0) return;
  streams_.push_back(std::make_unique<Random>(draws_.split(name)));
  again(streams_.back().get(), mean_ms, std::move(action));
}

void Trouble::again(Random* stream, std::int64_t mean_ms, std::function<void(Random&)> action) {
  const auto pause_us = static_cast<std::int64_t>(stream->below(static_cast<std::uint64_t>(mean_ms) * 2'000 + 1));
  stage_.world.at(pause_us * kMicrosecond, [this, stream, mean_ms, action = std::move(action)]() mutable {
    if (stage_.calm) return;
    action(*stream);
    again(stream, mean_ms, std::move(action));
  });
}

void Trouble::set_rates() {
  const Swarm& swarm = stage_.swarm;
  DiskFaults& disk = disk_.faults;
  disk.sync_fail = rate(swarm.sync_fail);
  disk.no_space = rate(swarm.no_space);
  disk.write_io_error = rate(swarm.write_error);
  disk.read_io_error = rate(swarm.read_error);
  disk.no_handles = rate(swarm.no_handles);
  disk.stall = rate(swarm.stall);
  disk.latency_ns_max = std::max(disk.latency_ns_min, swarm.disk_us * kMicrosecond);
  NetFaults& net = stage_.world.net();
  net.reset = rate(swarm.reset);
  net.half_open = rate(swarm.half_open);
  net.refuse = rate(swarm.refuse);
  net.no_handles = rate(swarm.no_handles);
  net.latency_ns_max = std::max(net.latency_ns_min, swarm.net_us * kMicrosecond);
}

void Trouble::crashes(BrokerLife& life) {
  every("kill", stage_.swarm.kill_ms, [&life](Random&) { life.crash(false); });
  every("power", stage_.swarm.power_loss_ms, [&life](Random&) { life.crash(true); });
  every("stop", stage_.swarm.stop_ms, [&life](Random&) { life.request_stop(); });
}

void Trouble::clocks(BrokerLife& life) {
  every("clock", stage_.swarm.clock_step_ms, [this, &life](Random& draws) {
    const std::int64_t step = (static_cast<std::int64_t>(draws.below(20'000)) - 10'000) * kMillisecond;
    life.process().process().wall_offset_ns += step;
    stage_.ledger.wall_stepped(step);
  });
}

void Trouble::policies(Policies& policies) {
  every("policy", stage_.swarm.policy_gap_ms, [this, &policies](Random& draws) { policies.change(draws, stage_.now()); });
}

void Trouble::pressure(Watch& watch) {
  every("pressure", stage_.swarm.pressure_ms, [this, &watch](Random& draws) {
    watch.volume_is_full();
    disk_.claims_full = true;
    const auto spell = static_cast<std::int64_t>(draws.below(8'000)) * kMillisecond;
    stage_.world.at(spell, [this] { disk_.claims_full = false; });
  });
}

void Trouble::storage(BrokerLife& life) {
  every("rot", stage_.swarm.rot_ms, [&life](Random& draws) { life.rot().flip(draws); });
  // Crashes where a script is between two steps: in a checkpoint's rename, a collection, an opening.
  if (stage_.swarm.crash_step == 0) return;
  streams_.push_back(std::make_unique<Random>(draws_.split("step")));
  disk_.on_step = [this, &life, draws = streams_.back().get()] {
    if (stage_.calm || !draws->chance(rate(stage_.swarm.crash_step))) return;
    const bool power = draws->below(2) == 0;
    stage_.world.at(0, [&life, power] { life.crash(power); });
  };
}

void Trouble::network(Cast& cast) {
  every("partition", stage_.swarm.partition_ms, [&cast](Random& draws) { cast.partition(draws); });
}

void Trouble::tokens() {
  if (stage_.swarm.manage_gap_ms > 0) every("token", stage_.swarm.token_ms, [this](Random& draws) { change_token(draws); });
}

// Another token, or for a moment none at all.
void Trouble::change_token(Random& draws) {
  const bool empty = draws.chance(300);
  if (empty) disk_.put(Manager::kTokenFile, "\n");
  const auto moment = static_cast<std::int64_t>(empty ? draws.below(2'000) : 0) * kMillisecond;
  stage_.world.at(moment, [this] { put_token("console-secret-" + std::to_string(++tokens_)); });
}

void Trouble::put_token(std::string token) {
  stage_.token = std::move(token);
  stage_.token_since = stage_.world.now();
  disk_.put(Manager::kTokenFile, stage_.token + "\n");
}

void Trouble::heal(BrokerLife& life) {
  disk_.on_step = nullptr;
  disk_.claims_full = false;
  if (stage_.swarm.manage_gap_ms > 0) put_token(stage_.token);
  life.rot().mend_all();
  const std::int64_t disk_max = disk_.faults.latency_ns_max;
  disk_.faults = DiskFaults{};
  disk_.faults.latency_ns_max = disk_max;
  NetFaults& net = stage_.world.net();
  const std::int64_t net_max = net.latency_ns_max;
  net = NetFaults{};
  net.latency_ns_max = net_max;
  stage_.world.heal();
  chaos_.calm();
}

}  // namespace rq::sim
