#include "sim/broker_life.h"

namespace rq::sim {

BrokerLife::BrokerLife(Stage& stage, SimDisk& disk)
    : stage_(stage),
      disk_(disk),
      process_(stage.world, "broker", disk, stage.swarm.config()),
      rot_(disk),
      draws_(stage.world.random("faults")) {
  process_.on_end = [this](const BrokerProcess::Ended& ended) { on_end(ended); };
}

std::uint64_t BrokerLife::injected() const {
  const FaultCounts& counts = stage_.world.counts();
  return counts.sync_failures + counts.no_space + counts.io_errors;
}

void BrokerLife::boot() {
  if (process_.running()) return;
  injected_at_boot_ = injected();
  handles_at_boot_ = stage_.world.counts().no_handles;
  process_.boot();
}

void BrokerLife::gone() {
  stage_.quiesced_at = Instant::never();
  ++stage_.broker_ends;
}

void BrokerLife::on_end(const BrokerProcess::Ended& ended) {
  gone();
  const bool clean = ended.exit == broker::Broker::Exit::clean;
  ++(clean ? ends_.clean_exits : ends_.failed_exits);
  stage_.ledger.broker_stopped(clean && ended.served ? ledger::Stop::clean : ledger::Stop::crash, stage_.now(), ended.served);
  stage_.world.note(ended.reason);
  // Out of file handles is no storage fault, but a start may give up on it.
  const bool out_of_handles = !ended.served && stage_.world.counts().no_handles > handles_at_boot_;
  const bool rot = !clean && rot_.mend(ended.reason);
  const bool no_token = !ended.served && stage_.swarm.token_ms > 0 && ended.reason.starts_with("token file");
  if (!clean && injected() == injected_at_boot_ && !out_of_handles && !rot && !no_token)
    stage_.fail("the Broker ended without a fault: " + ended.reason);
  if (clean && !stopping_) stage_.fail("the Broker ended although nobody asked it to");
  stopping_ = false;
  if (!holding_) restart_later();
}

void BrokerLife::restart_later() {
  stage_.world.at(static_cast<std::int64_t>(draws_.below(stage_.calm ? 50 : 1'500)) * kMillisecond, [this] {
    if (!holding_) boot();
  });
}

void BrokerLife::crash(bool power) {
  if (!process_.running()) return;
  kill(power);
  restart_later();
}

void BrokerLife::kill(bool power) {
  const bool served = process_.served();
  if (!served) ++ends_.while_opening;
  process_.kill();
  gone();
  stopping_ = false;
  stage_.ledger.broker_stopped(power ? ledger::Stop::power_loss : ledger::Stop::crash, stage_.now(), served);
  if (power) disk_.power_loss();
  ++(power ? ends_.power_losses : ends_.kills);
}

void BrokerLife::request_stop() {
  if (!process_.running()) return;
  stopping_ = true;
  process_.request_stop();
}

}  // namespace rq::sim
