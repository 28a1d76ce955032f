#include "sim/broker_process.h"

#include <algorithm>

namespace rq::sim {

class BrokerProcess::Shard final : public io::Shard {
 public:
  Shard(BrokerProcess& owner, io::Host& host, io::Turn& turn)
      : owner_(owner), boot_(owner.boots), turn_(turn), broker(host, turn, owner.config) {}

  void expire(Now now) override {
    if (!started_) {
      started_ = true;
      broker.start();
    }
    broker.expire(now);
  }
  void settle(Now now) override {
    broker.settle(now);
    watch_for_spin(now);
    served_ = served_ || broker.serving();
    if (broker.exit_state() == broker::Broker::Exit::running || reported_) return;
    reported_ = true;
    owner_.world_.at(0, [&owner = owner_, boot = boot_, ended = Ended{broker.exit_state(), broker.exit_reason(), served_}] {
      if (owner.boots != boot || !owner.process_.running()) return;
      owner.process_.kill();
      owner.ended = ended;
      if (owner.on_end) owner.on_end(ended);
    });
  }
  Instant next_deadline() const override { return started_ ? broker.next_deadline() : Instant{}; }

 private:
  // A turn that delivered nothing and asks for another one at once makes no progress.
  void watch_for_spin(Now now) {
    const bool idle = turn_.delivered() == delivered_ && broker.next_deadline() <= now.mono;
    delivered_ = turn_.delivered();
    idle_turns_ = idle ? idle_turns_ + 1 : 0;
    if (idle_turns_ <= owner_.idle_turns_max) return;
    owner_.idle_turns_max = idle_turns_;
    owner_.idle_cause = broker.engine().next_deadline(now) <= now.mono ? "the engine" : "the sessions or the HTTP server";
  }

  BrokerProcess& owner_;
  std::uint64_t boot_;
  io::Turn& turn_;
  std::uint64_t delivered_ = 0, idle_turns_ = 0;
  bool started_ = false, reported_ = false, served_ = false;

 public:
  bool served() const { return served_; }
  broker::Broker broker;
};

BrokerProcess::BrokerProcess(World& world, std::string_view name, SimDisk& disk, broker::Config initial)
    : config(std::move(initial)), world_(world), process_(world.make_process(name, disk, [this](io::Host& host, io::Turn& turn) {
        return std::unique_ptr<io::Shard, void (*)(io::Shard*)>(new Shard(*this, host, turn),
                                                                [](io::Shard* shard) { delete static_cast<Shard*>(shard); });
      })) {}

void BrokerProcess::boot() {
  if (process_.running()) return;
  ++boots;
  ended.reset();
  process_.start();
  process_.poke();
}
void BrokerProcess::kill() { process_.kill(); }
void BrokerProcess::request_stop() {
  if (!process_.running()) return;
  broker().request_stop();
  process_.poke();
}
bool BrokerProcess::serving() const { return process_.running() && static_cast<Shard*>(process_.shard())->broker.serving(); }
bool BrokerProcess::served() const { return process_.running() && static_cast<Shard*>(process_.shard())->served(); }
broker::Broker& BrokerProcess::broker() {
  RQ_CHECK(process_.running());
  return static_cast<Shard*>(process_.shard())->broker;
}

}  // namespace rq::sim
