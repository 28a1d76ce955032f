// The inside of the Engine, shared by its source files.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/queue/dead_letters.h"
#include "core/queue/management.h"
#include "core/queue/scrub.h"
#include "core/queue/shared.h"
#include "core/queue/topic.h"
#include "core/storage/opener.h"
#include "core/storage/space_reserve.h"

namespace rq::queue {

struct Engine::Impl final : TopicBook {
  Impl(io::Host& host_ref, EngineOptions options_value)
      : host(host_ref),
        options(std::move(options_value)),
        reserve(host_ref, kReserveBytes),
        shared(host_ref, options, options.write_handles_max),
        scrub(shared),
        dead_letters(shared, *this, options.dead_letters) {
    shared.dead_letters = &dead_letters;
  }

  io::Host& host;
  EngineOptions options;
  EngineState state = EngineState::closed;
  std::unique_ptr<storage::Opener> opener;
  io::FileId lock = io::FileId::none;
  storage::SpaceReserve reserve;
  storage::BrokerImage identity;
  Shared shared;
  Scrub scrub;
  DeadLetters dead_letters;
  std::map<std::string, std::unique_ptr<Topic>, std::less<>> topics;
  std::map<std::uint64_t, Topic*> by_owner;
  std::unique_ptr<Management> management;
  std::vector<Topic*> held_back;  // Topics that hold work back

  // Publish committers (page 30 sections 1.6 and 2.9): Topics by last use, so that idle ones retire when a slot is wanted.
  std::set<std::pair<std::int64_t, std::uint64_t>> committers;
  std::map<std::uint64_t, std::int64_t> committer_use;

  struct StatsJob {
    struct Deferred {
      std::uint64_t count = 0;
      std::uint64_t held = 0;  // of them, by a paused Topic
    };
    WaiterId waiter;
    std::string topic = {}, channel = {};  // of them alone; empty: all
    std::vector<TopicStats> done = {};
    bool no_topics = false;      // the names of the registry are not asked for, its revision alone
    std::uint64_t revision = 0;  // to wait for
    bool begun = false;
    // Resume point while metadata pages are read.
    std::string current = {};
    std::map<std::string, Deferred> deferred = {};
    std::size_t range = 0;
    Position position = 0;
    std::vector<storage::Range> ranges = {};
  };
  std::deque<StatsJob> stats_jobs;
  static constexpr std::size_t kStatsLooksPerTurn = 8'192;  // at a Topic, a Channel, or a delayed message of one
  std::size_t stats_looks = 0;                              // in this turn
  bool stats_go_on = false;                                 // in the next one

  // Stop.
  std::vector<std::unique_ptr<storage::Script>> flushes;
  std::vector<Topic*> to_flush;
  std::unique_ptr<storage::Script> farewell;
  bool flush_failed = false;
  std::int64_t wall_offset = 0;
  Instant last_wall_look{};
  // Collection: the next tick, and where it goes on (page 30 section 6.2).
  Instant collect_at = Instant::never();
  std::string collect_after;
  void collect(Now now);
  // TTL_DISCARD (page 30 section 9.2): the next pass, and the Topics that are not settled yet while the Engine opens.
  Instant discard_at{};
  std::vector<Topic*> unsettled;
  void discard(Now now);
  void settle_opening(Now now);
  static bool held_too_long(const Consumer& consumer, MessageId message, Now now);
  Instant retry_at{};  // scripts without a file handle are tried again then

  Topic* find(std::string_view name) {
    const auto found = topics.find(name);
    return found == topics.end() ? nullptr : found->second.get();
  }
  Topic* live(std::string_view name) {
    Topic* topic = find(name);
    return topic != nullptr && topic->phase() == Topic::Phase::live ? topic : nullptr;
  }
  Topic& create(std::string name);
  Topic* source_topic(std::string_view name) override { return live(name); }
  Topic* target_topic(std::string_view name, Code& why) override;
  // Hands an operation to the Topic, creating it when `create_missing`. Answers errors itself.
  void operate(std::string_view topic, Topic::Operation operation, bool create_missing, Now now);
  void refuse(const Topic::Operation& operation, Code code, std::string detail = {});
  bool take_committer(Topic* topic, Now now);
  bool retire_committer(Now now);
  void fault_now();
  void recovered();
  void take_advances(Now now);
  void run_topics(Now now);
  void serve_waiting(Now now);
  void remove_gone(Topic& topic, Now now);
  Code access_of(const Consumer& consumer, Now now) const {
    return shared.access.check(consumer.topic->name(), consumer.lane->channel().name(), now.wall);
  }
  void manage(Now now);
  void take_managed();
  void advance_stats(Now now);
  bool advance_job(StatsJob& job, Now now);
  bool may_look(std::size_t looks);
  TopicStats topic_stats(Topic& topic, const StatsJob& job, Now now);
  void advance_stop();
  static void on_flushed(void* self, storage::Script& script);
};

}  // namespace rq::queue
