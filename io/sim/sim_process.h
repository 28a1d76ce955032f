// A simulated process: one Turn over one Shard, its ports, and the events that make it run.
//
//  I1 A turn is scheduled when something completed, the waker's deadline came, or a test poked; what completes until it runs
//     shares it. Two turns are at least kTurnNsMin apart, so time moves on even for a shard that never sleeps.
//  I2 A killed incarnation gets no turn and no Op any more; its events find a newer epoch.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "io/sim/disk_port.h"
#include "io/sim/sim_net.h"
#include "io/sim/world.h"

namespace rq::sim {

class SimProcess final : public Process,
                         public EventTarget,
                         public Completion,
                         public io::Clock,
                         public io::Waker,
                         public io::Offload,
                         public io::LogSink {
 public:
  SimProcess(Kernel& kernel, MachineDisk& disk, SimNet& net, std::string_view name, Factory factory);
  ~SimProcess() override;

  const std::string& name() const override { return name_; }
  std::string ip() const override { return station_ip(station_); }
  void start() override;
  void kill() override;
  void stand_still(std::int64_t ns) override;
  bool running() const override { return running_; }
  io::Shard* shard() override { return running_ ? shard_.get() : nullptr; }
  io::Host* host() override { return running_ ? &*host_ : nullptr; }
  io::Turn& turn() override { return *turn_; }
  void poke() override;
  SimDisk& disk() override { return disk_; }

  Station station() const { return station_; }
  void set_chaos(io::Chaos* chaos);

  void complete(io::Op& op, io::Error error, std::uint64_t value) override;
  const std::string& label() const override { return name_; }
  Instant now() const noexcept override { return kernel_.now; }
  WallTime wall() const noexcept override { return {kernel_.options.wall_start_ns + kernel_.now.ns + wall_offset_ns}; }
  void wake_at(Instant deadline) override;
  void run(io::Op& op, void (*pure)(void*) noexcept, void* job) override;
  void log(io::Level level, std::string_view event, std::string_view fields) override;

  void on_event(std::uint32_t kind, std::uint64_t a, std::uint64_t b) override;

 private:
  static constexpr std::int64_t kTurnNsMin = 1'000;
  enum Event : std::uint32_t { kTurn, kTimer, kOffload };
  struct Finished {
    io::Op* op;
    io::Error error;
    std::uint64_t value;
  };
  struct Job {
    io::Op* op = nullptr;
    void (*pure)(void*) noexcept = nullptr;
    void* argument = nullptr;
  };

  void schedule_turn(std::int64_t delay_ns);
  void run_turn();
  void bury();  // what a dead incarnation leaves in memory

  Kernel& kernel_;
  MachineDisk& disk_;
  SimNet& net_;
  std::string name_;
  Factory factory_;
  Station station_;
  DiskPort disk_port_;
  NetPort net_port_;
  Random turn_delays_, offload_delays_;

  bool running_ = false, in_turn_ = false;
  std::uint64_t incarnation_ = 0;  // also the epoch of its events
  std::optional<io::Turn> turn_;
  std::optional<io::Host> host_;
  std::unique_ptr<io::Shard, void (*)(io::Shard*)> shard_{nullptr, [](io::Shard*) {}};
  std::vector<Finished> finished_;
  std::vector<Job> jobs_;
  std::vector<std::uint32_t> free_jobs_;

  bool turn_scheduled_ = false;
  std::int64_t next_turn_ns_ = 0;        // not before
  Instant deadline_ = Instant::never();  // what the waker was told
  Instant timer_at_ = Instant::never();  // of the timer event that counts
  std::uint64_t timer_serial_ = 0;
};

}  // namespace rq::sim
