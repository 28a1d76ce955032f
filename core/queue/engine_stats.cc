// Statistics snapshots (page 30 sections 3.10 and 14). The count of delayed messages may need metadata pages of sealed segments;
// a job then waits for them and goes on where it stopped. So it does when a turn has looked at enough: whoever asks often or for
// much holds up other askers, not those who publish and consume.
#include <algorithm>

#include "core/queue/engine_impl.h"

namespace rq::queue {

void Engine::Impl::advance_stats(Now now) {
  while (!stats_jobs.empty()) {
    StatsJob& job = stats_jobs.front();
    if (shared.fault || state == EngineState::faulted) {
      shared.events.stats.push_back({job.waiter, {Code::storage, shared.fault ? shared.fault->message() : "storage fault"}, {}});
    } else if (!advance_job(job, now)) {
      return;
    } else {
      shared.events.stats.push_back({job.waiter, {}, std::move(job.done)});
    }
    stats_jobs.pop_front();
  }
}

bool Engine::Impl::advance_job(StatsJob& job, Now now) {
  if (job.revision > 0 && shared.meta->revision() < job.revision) return false;
  if (job.no_topics) return true;
  auto at = topics.lower_bound(job.begun ? job.current : job.topic);
  bool resumed = job.begun && at != topics.end() && at->first == job.current;
  for (; at != topics.end(); ++at, resumed = false) {
    Topic& topic = *at->second;
    if (!job.topic.empty() && at->first != job.topic) break;
    if (topic.phase() != Topic::Phase::live) continue;
    const std::size_t looks = 1 + topic.lanes().size();
    if (!resumed) {
      job.begun = true;
      job.current = at->first;
      job.deferred.clear();
      job.range = 0;
      job.position = 0;
      job.ranges = topic.log()->maybe_delayed(now.wall.ms());
    }
    for (; job.range < job.ranges.size(); ++job.range, job.position = 0) {
      const storage::Range range = job.ranges[job.range];
      for (Position p = std::max(job.position, range.first); p <= range.last; ++p) {
        if (!may_look(looks)) {
          job.position = p;
          return false;
        }
        MessageMeta meta;
        const Lookup lookup = topic.log()->find(p, meta);
        if (lookup == Lookup::loading) {
          job.position = p;
          return false;
        }
        if (lookup == Lookup::absent || topic.log()->due(meta).reached(now)) continue;
        const bool held = topic.paused() && p > topic.routed_through();
        for (const auto& [name, lane] : topic.lanes()) {
          if (!lane->channel().is_fresh(p)) continue;
          StatsJob::Deferred& deferred = job.deferred[name];
          ++deferred.count;
          if (held) ++deferred.held;
        }
      }
    }
    if (!may_look(looks)) return false;
    job.done.push_back(topic_stats(topic, job, now));
  }
  return true;
}

// Always true for the first look of a turn.
bool Engine::Impl::may_look(std::size_t looks) {
  if (stats_looks >= kStatsLooksPerTurn) return false;
  stats_looks += looks;
  return true;
}

TopicStats Engine::Impl::topic_stats(Topic& topic, const StatsJob& job, Now now) {
  const storage::MessageLog& log = *topic.log();
  TopicStats stats;
  stats.name = topic.name();
  stats.paused = topic.paused();
  stats.ttl_discard = topic.manifest().ttl_discard;
  stats.message_ttl_seconds = topic.manifest().message_ttl_seconds;
  stats.ttl_discarded_messages = topic.manifest().ttl_discarded_messages;
  stats.published_count = log.durable_position();
  stats.published_bytes = topic.published_bytes();
  stats.message_count = log.stored_after(topic.manifest().expired_through);
  stats.unrouted_depth = topic.unrouted_depth();
  stats.segment_count = log.segment_count();
  stats.segment_bytes = log.segment_bytes();
  stats.last_durable_position = log.durable_position();
  stats.visible_unsynced = log.deliverable() - log.durable_position();
  stats.unsynced_messages = log.unsynced_messages();
  stats.unsynced_bytes = log.unsynced_bytes();
  if (log.oldest_unsynced() != Instant::never())
    stats.sync_lag_ms = static_cast<std::uint64_t>(std::max<std::int64_t>(0, now.mono - log.oldest_unsynced()) / kMillisecond);
  for (const auto& [name, lane] : topic.lanes()) {
    if (lane->removing || (!job.channel.empty() && name != job.channel)) continue;
    const Channel& channel = lane->channel();
    ChannelStats row;
    row.name = name;
    row.depth = channel.depth(log);
    row.message_count = channel.message_count(log) - std::min(channel.message_count(log), stats.visible_unsynced);
    row.in_flight_count = channel.in_flight_count();
    const auto found = job.deferred.find(name);
    const StatsJob::Deferred deferred = found == job.deferred.end() ? StatsJob::Deferred{} : found->second;
    row.deferred_count = channel.requeued_future_count(now) + deferred.count;
    row.deferred_count = std::min(row.deferred_count, row.depth - std::min(row.depth, row.in_flight_count));  // I-33
    row.held_deferred = std::min(deferred.held, row.deferred_count);
    const bool volatile_counters = lane->in_memory() || io::planted(host, "show_counters_before_they_are_durable");
    row.requeue_count = volatile_counters ? channel.requeue_count() : lane->kept().requeues;  // D-25
    row.timeout_count = volatile_counters            ? channel.timeout_count()
                        : options.feature_level >= 2 ? lane->kept().timeouts
                                                     : channel.stored_timeout_count();
    row.paused = channel.paused();
    row.ephemeral = lane->ephemeral();
    row.blocked_by_ack_window = channel.blocked_by_ack_window(log);
    row.ack_cursor = channel.ack_floor();
    row.ack_gap = channel.ack_gap();
    row.consumers = lane->consumers;
    stats.channels.push_back(std::move(row));
  }
  return stats;
}

}  // namespace rq::queue
