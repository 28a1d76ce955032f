// Registration with nsqlookupd servers (D-19a, page 10 section 7.6): which names there are, and one LookupPeer for each server.
//
//  I1 Names come from snapshots of the engine, taken when its registry revision has moved, and not oftener than kSnapshotNs and
//     kSnapshotNsPerName a name apart. A name that was deleted on demand is unregistered at once and looked for again, so that
//     one which comes back under it, or has come back already, is registered anew.
//  I2 At most kServersMax servers. Without servers nothing is done.
//  I3 A Topic that is new here gets the durable Channels that the servers know of it (page 10 section 5.1). nsqd holds the first
//     message back for that; here they may come a moment later, since the first Channel takes the whole backlog and the others
//     what the bootstrap window holds. At most kToAskMax Topics wait, kQueriesMax questions run.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/broker/config.h"
#include "core/broker/lookup_peer.h"
#include "core/broker/lookup_query.h"
#include "core/queue/engine.h"

namespace rq::broker {

class LookupRegistration {
 public:
  static constexpr std::size_t kServersMax = 64;
  static constexpr std::size_t kQueriesMax = 64;
  static constexpr std::int64_t kOpeningNs = LookupQuery::kLimitNs + kSecond;  // an ephemeral Topic keeps its messages so long
  static constexpr std::int64_t kSnapshotNs = 50 * kMillisecond, kSnapshotNsPerName = 50 * kMicrosecond;

  LookupRegistration(io::Host& host, const Config& config, ChunkPool& pool);
  LookupRegistration(const LookupRegistration&) = delete;

  void begin(std::uint64_t tcp_port, std::uint64_t http_port);  // the Broker serves; others reach it at these ports
  void end();                                                   // its connections end, which takes its names off the servers

  // What is to be registered with, in order, without repetitions. Each is_host_port(), at most kServersMax of them.
  const std::vector<std::string>& addresses() const { return addresses_; }
  void set_addresses(std::vector<std::string> addresses);
  bool registered(std::string_view address) const;

  // A Topic (empty `channel`) or Channel was deleted by a request.
  void removed(std::string_view topic, std::string_view channel);
  void on_stats(const queue::StatsDone& done, Now now);  // the answer to a snapshot

  void settle(Now now, queue::Engine& engine);
  void expire(Now now);
  Instant next_deadline() const;

 private:
  static constexpr std::uint64_t kUnlooked = UINT64_MAX;  // no revision: the names have to be looked at

  void adjust_peers();
  void take_snapshot(Now now, queue::Engine& engine);
  void ask_for_channels(Now now);
  void take_channels(Now now, queue::Engine& engine);
  void note_opening(const queue::StatsDone& done, const std::vector<std::string>& fresh, std::size_t questions, Now now);
  void open_topics(Now now, queue::Engine& engine);

  io::Host& host_;
  const Config& config_;
  ChunkPool& pool_;
  std::vector<std::string> addresses_;
  std::vector<std::unique_ptr<LookupPeer>> peers_, leaving_;
  std::vector<std::unique_ptr<LookupQuery>> queries_;
  std::string identity_;
  bool begun_ = false;
  LookupNames names_;
  bool known_ = false;  // names_ was filled
  bool asked_ = false, stale_ = false;
  bool outdated_ = false;       // since it was asked for, something was deleted
  std::uint64_t revision_ = 0;  // of the registry, before the latest snapshot was asked for
  Instant snapshot_at_{};       // not before
  // Ephemeral Topics that a snapshot showed, with the questions about them that have no answer yet.
  struct Opening {
    std::size_t questions = 0;
    Instant until{};
  };
  std::map<std::string, Opening, std::less<>> opening_;
};

// The port to be told to others: the configured one, or where the Broker listens when that is 0.
inline std::uint64_t advertised(std::uint64_t configured, std::uint16_t actual) { return configured != 0 ? configured : actual; }

}  // namespace rq::broker
