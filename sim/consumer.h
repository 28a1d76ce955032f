// A consumer: SUB and RDY on one Channel; answers each message after a while with FIN, REQ or TOUCH and FIN, or not at all;
// changes RDY and hangs up now and then. In the calm phase it finishes everything.
#pragma once

#include <map>
#include <optional>

#include "sim/actor.h"

namespace rq::sim {

class Consumer final : public Actor {
 public:
  Consumer(Stage& stage, io::Host& host, std::string address, std::string topic, std::string channel);
  const std::string& topic() const { return topic_; }
  const std::string& channel() const { return channel_; }
  bool subscribed() const { return subscription_.has_value(); }
  // The network of this process was cut: nothing can be said about times until it subscribes again.
  void doubt();

 private:
  enum class Step : std::uint8_t { identify, subscribe, consume };
  enum class Deed : std::uint8_t { finish, requeue, touch };
  struct Plan {
    Deed deed;
    std::string id;
  };
  void on_connected(Now now) override;
  void on_frame(Frame& frame, Now now) override;
  void on_closed(Now now) override;
  void on_time(Now now) override;
  Instant next_time() const override;
  std::int64_t silence_ns() const override;
  void on_message(const Message& message, Now now);
  void on_error(const Frame& frame, Now now);
  void act(const Plan& plan, Now now);
  void send_ready();

  std::string topic_, channel_;
  Step step_ = Step::identify;
  std::optional<ledger::ConsumerRef> subscription_;
  std::multimap<std::int64_t, Plan> plans_;  // by time
  bool was_calm_ = false;
};

}  // namespace rq::sim
