#include "io/sim/sim_process.h"

#include <algorithm>

#include "core/base/check.h"

namespace rq::sim {

SimProcess::SimProcess(Kernel& kernel, MachineDisk& disk, SimNet& net, std::string_view name, Factory factory)
    : kernel_(kernel),
      disk_(disk),
      net_(net),
      name_(name),
      factory_(std::move(factory)),
      station_(net.add_station(*this)),
      disk_port_(disk, *this),
      net_port_(net, station_),
      turn_delays_(kernel.root.split("schedule/turns").split(name)),
      offload_delays_(kernel.root.split("schedule/offload").split(name)) {
  turn_.emplace(*this, *this);
}

SimProcess::~SimProcess() {
  if (running_) kill();
}

void SimProcess::start() {
  if (running_) return;
  running_ = true;
  ++incarnation_;
  disk_port_.set_running(true);
  net_port_.set_running(true);
  turn_.emplace(*this, *this);
  host_.emplace(io::Host{*this, *this, disk_port_, net_port_, *this, *this,
                         kernel_.root.split("process").split(name_).split(std::to_string(incarnation_)), kernel_.chaos});
  turn_scheduled_ = false;
  deadline_ = timer_at_ = Instant::never();
  kernel_.trace("process.start", name_, incarnation_);
  shard_ = factory_(*host_, *turn_);
  schedule_turn(0);
}

void SimProcess::kill() {
  if (!running_) return;
  RQ_CHECK(!in_turn_);
  running_ = false;
  ++kernel_.counts.kills;
  kernel_.trace("process.kill", name_, incarnation_);
  disk_port_.kill();
  net_.kill(station_);
  bury();
}

void SimProcess::stand_still(std::int64_t ns) {
  if (running_) next_turn_ns_ = std::max(next_turn_ns_, kernel_.now.ns + ns);
}

void SimProcess::bury() {
  disk_port_.set_running(false);
  net_port_.set_running(false);
  for (const Finished& finished : finished_) forget(*finished.op);
  finished_.clear();
  for (Job& job : jobs_) {
    if (job.op != nullptr) forget(*job.op);
  }
  jobs_.clear();
  free_jobs_.clear();
  turn_->abandon();
  shard_.reset();
  host_.reset();
  turn_.emplace(*this, *this);
}

void SimProcess::set_chaos(io::Chaos* chaos) {
  if (host_) host_->chaos = chaos;
}

void SimProcess::poke() {
  if (running_) schedule_turn(0);
}

void SimProcess::complete(io::Op& op, io::Error error, std::uint64_t value) {
  RQ_CHECK(running_ && op.in_flight);
  finished_.push_back({&op, error, value});
  if (turn_scheduled_) return;
  // Mostly at once; sometimes late enough to share the turn with others.
  const std::uint64_t style = turn_delays_.below(8);
  const std::uint64_t range = style < 5 ? 2'000 : style < 7 ? 20'000 : 200'000;
  schedule_turn(static_cast<std::int64_t>(turn_delays_.below(range)));
}

void SimProcess::schedule_turn(std::int64_t delay_ns) {
  if (turn_scheduled_) return;
  turn_scheduled_ = true;
  kernel_.push({std::max(kernel_.now.ns + delay_ns, next_turn_ns_)}, *this, kTurn, incarnation_);
}

void SimProcess::wake_at(Instant deadline) {
  if (!running_) return;
  deadline_ = deadline;
  if (deadline >= timer_at_) return;  // the event that is set comes first and looks again
  timer_at_ = std::max(deadline, kernel_.now);
  kernel_.push(timer_at_, *this, kTimer, incarnation_, ++timer_serial_);
}

void SimProcess::run(io::Op& op, void (*pure)(void*) noexcept, void* job) {
  if (!running_) return;
  io::submit(op);
  if (free_jobs_.empty()) {
    free_jobs_.push_back(static_cast<std::uint32_t>(jobs_.size()));
    jobs_.emplace_back();
  }
  const std::uint32_t slot = free_jobs_.back();
  free_jobs_.pop_back();
  jobs_[slot] = {&op, pure, job};
  const std::int64_t delay = draw_ns(offload_delays_, 2'000, 500'000);
  kernel_.push(kernel_.now + delay, *this, kOffload, incarnation_, slot);
}

void SimProcess::log(io::Level level, std::string_view event, std::string_view fields) {
  kernel_.trace("log", event, static_cast<std::uint64_t>(level), hash64(fields));
  if (kernel_.options.trace) kernel_.print("log", name_, 0, 0, std::string(event) + " " + std::string(fields));
  if (kernel_.log) kernel_.log(name_, level, event, fields);
}

void SimProcess::run_turn() {
  turn_scheduled_ = false;
  next_turn_ns_ = kernel_.now.ns + kTurnNsMin;
  kernel_.trace("turn", name_, finished_.size(), turn_->turns());
  for (const Finished& finished : finished_) turn_->complete(*finished.op, finished.error, finished.value);
  finished_.clear();
  in_turn_ = true;
  turn_->run(*shard_);
  in_turn_ = false;
  if (turn_->pending()) schedule_turn(0);
}

void SimProcess::on_event(std::uint32_t kind, std::uint64_t incarnation, std::uint64_t b) {
  if (!running_ || incarnation != incarnation_) return;
  switch (kind) {
    case kTurn:
      if (kernel_.now.ns >= next_turn_ns_) return run_turn();
      turn_scheduled_ = false;  // it stands still
      return schedule_turn(0);
    case kTimer:
      if (b != timer_serial_) return;
      timer_at_ = Instant::never();
      if (deadline_ <= kernel_.now) return schedule_turn(0);
      return wake_at(deadline_);
    case kOffload: {
      Job& job = jobs_[static_cast<std::size_t>(b)];
      job.pure(job.argument);
      io::Op& op = *std::exchange(job.op, nullptr);
      free_jobs_.push_back(static_cast<std::uint32_t>(b));
      return complete(op, {}, 0);
    }
    default:
      RQ_CHECK(false);
  }
}

}  // namespace rq::sim
