// A client that misbehaves, in a way of its own on every connection: half commands, wrong sizes, garbage, a consumer that never
// reads, handshakes that fail, compression bombs; over HTTP half requests, lengths that lie, answers that nobody reads. It
// promises nothing and is promised nothing: the ledger does not know it. It publishes to an ephemeral Topic and subscribes to
// ephemeral Channels only, so that nobody waits for what it leaves behind.
#pragma once

#include "sim/actor.h"

namespace rq::sim {

inline constexpr std::string_view kRudeTopic = "rude#ephemeral";

class Rude final : public Actor {
 public:
  // `http`: the address is that of the HTTP interface.
  Rude(Stage& stage, io::Host& host, std::string address, bool http) : Actor(stage, host, std::move(address)), http_(http) {}

 private:
  void on_connected(Now now) override;
  void on_bytes(Now) override { link_->inbox.clear(); }
  void on_frame(Frame&, Now) override {}
  void on_closed(Now) override {}
  void on_time(Now now) override;
  Instant next_time() const override;
  bool wants_connection() const override { return !stage_.calm; }
  std::int64_t silence_ns() const override { return 600 * kSecond; }

  void wrong_request();
  void half_a_command();
  void wrong_sizes();
  void wrong_magic();
  void never_reads();
  void failing_handshake();
  void bomb();
  void garbage_in_a_layer();
  void wrong_consumer();
  std::string noise(std::uint64_t bytes_max);

  const bool http_;
  Instant leaves_at_ = Instant::never();
  std::string trickle_;  // sent a byte at a time
  Instant next_byte_ = Instant::never();
};

}  // namespace rq::sim
