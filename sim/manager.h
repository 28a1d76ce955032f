// The control plane: synchronises the fences whenever the Broker says that it needs them, sends managed operations on Topics of
// its own and repeats each, under its id or another, until it has an answer, and drains and freezes the Broker now and then. It
// holds the Broker to: one effect and one answer for an id (I-55), nothing deleted comes back by itself (I-56), and nothing
// published or handed over while quiesced (I-52; the runner watches the counters while Stage::quiesced_at is set).
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/actor.h"
#include "sim/http_text.h"

namespace rq::sim {

class Manager final : public Actor {
 public:
  static constexpr const char* kTokenFile = "tokens/console";

  Manager(Stage& stage, io::Host& host, std::string address);

 private:
  enum class Doing { idle, health, sync, revision, operation, repetition, registry, drain, poll, lift };
  void on_connected(Now now) override;
  void on_bytes(Now now) override;
  void on_frame(Frame&, Now) override {}
  void on_closed(Now now) override;
  void on_time(Now now) override;
  Instant next_time() const override { return doing_ == Doing::idle ? next_ : Instant::never(); }
  bool wants_connection() const override { return doing_ != Doing::idle; }
  std::int64_t silence_ns() const override { return 20 * kSecond; }

  void begin(Doing doing, std::string method, std::string target, std::string body = {});
  void choose(Now now);
  void draw_operation(Now now);
  void send_operation();
  void look_at_token(const HttpReply& reply);
  void answered(const HttpReply& reply, Now now);
  void operation_answered(const HttpReply& reply);
  void registry_answered(const HttpReply& reply);
  void drain_answered(const HttpReply& reply, Now now);
  void pause();

  Doing doing_ = Doing::idle;
  std::string method_, target_, body_;
  bool sent_ = false;  // on the current connection
  std::string sent_token_;
  Instant sent_at_{};
  Instant next_{};

  // The operation under way; kept until it has a final answer.
  bool pending_ = false;
  bool renamed_ = false;                    // it went out under more than one id: which one has the result is not known
  std::string path_, id_, fields_, topic_;  // fields_: all but the id and the revision
  std::string revision_, request_;
  std::uint64_t number_ = 0;

  std::map<std::string, bool> exists_;  // what the Topics of its own must be
  struct Known {
    std::string path, body, answer;
  };
  std::vector<Known> known_;  // operations with their answers
  std::size_t repeated_ = 0;
  bool drained_ = false;  // it asked for a drain that it has not lifted
  int polls_ = 0;
  std::uint64_t ends_at_poll_ = 0;
};

}  // namespace rq::sim
