// The administrator: one HTTP request at a time, each on a connection of its own. In the safety phase it pauses, unpauses,
// empties, deletes and looks at statistics; in the calm phase it unpauses everything and reads how much is left.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "sim/actor.h"
#include "sim/stats_watch.h"

namespace rq::sim {

class Administrator final : public Actor {
 public:
  Administrator(Stage& stage, io::Host& host, std::string address);

  // From the last complete /stats of the calm phase.
  struct Backlog {
    std::uint64_t durable = 0;    // depth, in flight and deferred over all durable Channels
    std::set<std::string> names;  // "topic" and "topic channel" of everything
    Instant at;
  };
  const std::optional<Backlog>& backlog() const { return backlog_; }
  void forget_backlog() { backlog_.reset(); }

 private:
  void on_connected(Now now) override;
  void on_bytes(Now now) override;
  void on_frame(Frame&, Now) override {}
  void on_closed(Now now) override;
  void on_time(Now now) override;
  Instant next_time() const override;
  bool wants_connection() const override { return !target_.empty(); }
  std::int64_t silence_ns() const override { return 20 * kSecond; }
  void choose(Now now);
  void choose_calm();
  void finished(int status, const std::string& body, Now now);
  std::string removed_channel() const;  // of the removal under way; empty: the whole Topic
  void read_stats(const std::string& body, Now now);
  void read_backlog(const boost::json::value& document, Now now);

  std::string method_, target_;  // the request under way
  std::optional<ledger::Removal> what_;
  std::optional<ledger::RemovalRef> removal_;
  std::string topic_, channel_;
  std::set<std::string> paused_;  // query strings of what may be paused
  std::optional<Backlog> backlog_;
  StatsWatch watch_;
  Instant next_{};
};

}  // namespace rq::sim
