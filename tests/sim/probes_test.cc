// Proof that the rare paths happen: every RQ_SOMETIMES probe of core/ has a row here that says what hits it, and is hit by it.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "core/base/probe.h"
#include "sim/runner.h"
#include "tests/sim/probe_scenarios.h"

namespace rq::sim {
namespace {

constexpr std::uint64_t kSeeds = 150;  // 1 to this one, drawn plans

struct Row {
  const char* probe;
  const char* scenario;  // "seeds", a plan ("seed N: key=value ..."), or a name of tests/sim/probe_scenarios.h
};

constexpr Row kRows[] = {
    {"access: a consumer meets a fence", "management_meets_waiting_requests"},
    {"access: a publish that waited is refused", "management_meets_waiting_requests"},
    {"access: an operation that waited meets a fence", "management_meets_waiting_requests"},
    {"broker.accept_out_of_handles", "accept_without_handles"},
    {"broker.auth_memory_short", "auth_memory_used_up"},
    {"broker.connection_budget_full", "connection_budget"},
    {"broker.consumer_connection_reset", "seeds"},
    {"broker.decoding_goes_on_next_turn", "misbehaving_transports"},
    {"broker.disk_pressure", "publishing_to_a_full_disk"},
    {"broker.fatal_answer_before_pipelined_publishes", "seeds"},
    {"broker.output_backed_up", "reader_that_stopped"},
    {"broker.progress_limit", "stalled_body"},
    {"broker.publish_refused_before_its_body", "publishing_to_a_full_disk"},
    {"broker.silent_client_closed", "silent_client"},
    {"broker.standstill_excused", "broker_that_stood_still"},
    {"broker.stopped_with_connections", "seeds"},
    {"broker.storage_fault", "seeds"},
    {"broker.tls_handshake_failed", "misbehaving_transports"},
    {"broker.undecodable_input", "misbehaving_transports"},
    {"broker.write_deadline", "reader_that_stopped"},
    {"channel: a checkpoint is due", "seeds"},
    {"channel: a consumer left with messages in flight", "seeds"},
    {"channel: a delayed message came due", "seeds"},
    {"channel: a message timed out", "seeds"},
    {"channel: a touch was capped by the maximum message timeout", "touch_to_the_limit"},
    {"channel: an answer without a command waits for those before it", "emptied_behind_a_fin"},
    {"channel: commands wait for a checkpoint", "seeds"},
    {"channel: the ack window stopped fresh messages", "seeds"},
    {"channel: the last consumer leaves an ephemeral Channel", "seeds"},
    {"committer: a second barrier overlaps a slow one", "seeds"},
    {"committer: an idle write handle is closed to make room", "seeds"},
    {"committer: out of file handles, evict and retry", "seeds"},
    {"dead letters: a message is too old", "dead_letters"},
    {"dead letters: attempts are used up", "dead_letters"},
    {"dead letters: the source of an intent is finished", "dead_letters"},
    {"dead letters: the target is refused", "dead_letters"},
    {"delivery: a batch waits for the node's byte budget", "delivery_budget"},
    {"delivery: a message times out", "seeds"},
    {"delivery: a message vanished while its body was read", "emptied_while_its_body_is_read"},
    {"delivery: no message slot is free", "seeds"},
    {"delivery: sampling finishes a message unseen", "sampling"},
    {"engine: the wall clock jumped", "seeds"},
    {"ephemeral: a Channel over files drops the newest message", "ephemeral_bounds"},
    {"ephemeral: a Topic goes with its last Channel", "ephemeral_bounds"},
    {"ephemeral: a later Channel of an opening Topic", "ephemeral_bounds"},
    {"ephemeral: the newest message is dropped", "ephemeral_bounds"},
    {"fetch: a batch needs several reads", "seeds"},
    {"fetch: a damaged body is found", "damaged_body"},
    {"http.body_timed_out", "stalled_body"},
    {"http.connection_limit", "http_limits"},
    {"http.lingering_close", "http_limits"},
    {"http.malformed_request", "http_bad_requests"},
    {"http.opening_took_too_long", "seeds"},
    {"http.publish_throttled", "http_limits"},
    {"http.request_while_opening", "seeds"},
    {"live feed: a message expires while it is written", "live_feeds"},
    {"live feed: a slow client", "live_feeds"},
    {"live feed: a standstill excused", "live_feeds"},
    {"live feed: no frame memory", "live_feeds"},
    {"log: a large body is appended from its receive chunk", "seeds"},
    {"log: a metadata page is read from a sidecar", "seeds"},
    {"log: a segment is sealed and the next one begins", "seeds"},
    {"log: segments are collected", "seeds"},
    {"log: the wall clock went back, the timestamp stays", "seeds"},
    {"metadata: the largest tail is sealed to make room", "seeds"},
    {"management: a completed operation is repeated", "management_repeated"},
    {"management: a pending operation is adopted", "management_repeated"},
    {"management: what is to be deleted is not there", "management_repeated"},
    {"opener: broker.meta was lost beside messages", "lost_broker_meta"},
    {"opener: temporaries of a crash are removed", "temporaries_of_a_crash"},
    {"opener: the last stop was clean", "seeds"},
    {"opener: the last stop was not clean", "seeds"},
    {"publish: a group of 64 requests is full", "full_group"},
    {"publish: a group of 8 MiB is full", "large_group"},
    {"reads: out of file handles, evict and retry", "seeds"},
    {"recovery: a sidecar belongs to another segment", "swapped_sidecar"},
    {"recovery: a sidecar is defective", "seeds"},
    {"recovery: old deferred-scan residue is dropped", "deferred_scan_residue"},
    {"recovery: positions behind the tail are known but lost", "positions_known_but_lost"},
    {"recovery: the log has a torn tail", "seeds"},
    {"script: a step fails", "seeds"},
    {"script: out of file handles, tried again", "seeds"},
    {"scrub: a Topic is deleted while its segments are read", "deleted_while_it_is_scrubbed"},
    {"topic: deleted", "seeds"},
    {"topic: messages expire", "seeds"},
};

std::map<std::string, std::uint64_t> hits() {
  std::map<std::string, std::uint64_t> out;
  for (const Probe* probe = probe_list(); probe != nullptr; probe = probe->next) out[probe->name] += probe->hits;
  return out;
}

void run(const std::string& scenario) {
  if (scenario == "seeds") {
    for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
      const RunResult result = run_seed(seed);
      EXPECT_EQ(result.failure, "") << "seed " << seed;
    }
    return;
  }
  for (const scenarios::Scenario& each : scenarios::kAll)
    if (scenario == each.name) return each.run();
  FAIL() << "no scenario " << scenario;
}

TEST(Probes, EachOneHasARow) {
  std::set<std::string> named, present;
  for (const Row& row : kRows) EXPECT_TRUE(named.insert(row.probe).second) << row.probe << " has two rows";
  for (const auto& [name, count] : hits()) present.insert(name);
  for (const std::string& name : present) EXPECT_TRUE(named.contains(name)) << "no row for the probe \"" << name << "\"";
  for (const std::string& name : named) EXPECT_TRUE(present.contains(name)) << "no probe \"" << name << "\"";
}

class ProbeScenario : public ::testing::TestWithParam<std::string> {};

TEST_P(ProbeScenario, HitsItsProbes) {
  const auto before = hits();
  run(GetParam());
  const auto after = hits();
  for (const Row& row : kRows) {
    if (GetParam() != row.scenario || !after.contains(row.probe)) continue;
    EXPECT_GT(after.at(row.probe), before.at(row.probe)) << "\"" << row.probe << "\" is not hit by " << row.scenario;
  }
}

std::vector<std::string> scenario_names() {
  std::set<std::string> names;
  for (const Row& row : kRows) names.insert(row.scenario);
  return {names.begin(), names.end()};
}

INSTANTIATE_TEST_SUITE_P(Each, ProbeScenario, ::testing::ValuesIn(scenario_names()),
                         [](const auto& scenario) { return scenario.param; });

}  // namespace
}  // namespace rq::sim
