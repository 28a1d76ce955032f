// What producers, consumers and the administrator have in common: a process of their own with one connection at a time that is
// made again after a pause, answers heartbeats, and is given up when the Broker falls silent.
#pragma once

#include <memory>
#include <string>

#include "core/io/turn.h"
#include "io/sim/world.h"
#include "ledger/ledger.h"
#include "sim/layers.h"
#include "sim/link.h"
#include "sim/nsq_wire.h"
#include "sim/swarm.h"

namespace rq::sim {

struct Stage {  // shared by all actors of one run; set by the runner
  Stage(World& w, const Swarm& s, ledger::Ledger& l) : world(w), swarm(s), ledger(l) {}
  World& world;
  const Swarm& swarm;
  ledger::Ledger& ledger;
  bool calm = false;    // liveness: no more trouble, everything is finished
  bool publish = true;  // producers may go on
  // Since then the Broker is known to be drained, frozen and quiet (I-52); never while it is not, or may not be.
  Instant quiesced_at = Instant::never();
  std::string token = "console-secret";  // of the control plane, since then in its file
  Instant token_since{};
  std::uint64_t broker_ends = 0;    // a drain does not survive them
  std::uint64_t misdeeds = 0;       // connections of clients that misbehave
  std::uint64_t feed_messages = 0;  // read by live feeds
  std::string trouble;              // the first protocol violation an actor saw
  void complain(std::string what) {
    if (trouble.empty()) trouble = std::move(what);
  }
  std::string failure;  // the first finding of anybody else
  void fail(std::string reason) {
    if (failure.empty()) failure = std::move(reason);
  }
  Now now() const { return {world.now(), WallTime{WorldOptions{}.wall_start_ns + world.now().ns}}; }
};

class Actor : public io::Shard {
 public:
  Actor(Stage& stage, io::Host& host, std::string address);
  virtual ~Actor() = default;
  Actor(const Actor&) = delete;

  void expire(Now now) override;
  void settle(Now now) override;
  Instant next_deadline() const override;
  void hang_up(Now now, std::int64_t pause_ns);

 protected:
  virtual void on_connected(Now now) = 0;
  virtual void on_bytes(Now now);  // default: frames, heartbeats answered
  virtual void on_frame(Frame& frame, Now now) = 0;
  virtual void on_closed(Now now) = 0;
  virtual void on_time(Now now) = 0;      // every expire, connected or not
  virtual Instant next_time() const = 0;  // when on_time has something to do
  virtual bool wants_connection() const { return true; }
  virtual std::int64_t silence_ns() const = 0;  // give up after this long without a byte
  // The magic and IDENTIFY with these fields of its object; its answer goes to on_frame() when what was negotiated stands.
  void introduce(std::string_view fields);
  void say(std::string_view bytes) { link_->send(layers_.encode(bytes)); }
  bool introduced() const { return layers_.established(); }
  bool ready() const { return announced_ && link_ != nullptr && link_->connected() && !link_->ended(); }

  Stage& stage_;
  io::Host& host_;
  Random random_;
  std::unique_ptr<Link> link_;

 private:
  void negotiate(Frame frame, Now now);

  Layers layers_;
  Frame introduction_;  // the answer to IDENTIFY, while layers are begun
  Random layer_draws_;
  std::string address_;
  Instant connect_at_{};
  Instant heard_at_{};
  bool announced_ = false;  // on_connected() was called for this link
};

}  // namespace rq::sim
