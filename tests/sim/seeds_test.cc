// Fixed seeds, twice with the same hash; every regression; every drawn configuration is valid; plans as text.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>

#include "sim/regressions.h"
#include "sim/runner.h"

namespace rq::sim {
namespace {

// Runs seeds first..last-1 with these parts of the plan and looks at each result.
void each_is_clean(std::uint64_t first, std::uint64_t last, const std::string& overrides,
                   const std::function<void(const RunResult&)>& look) {
  for (std::uint64_t seed = first; seed < last; ++seed) {
    RunOptions options;
    options.overrides = overrides;
    const RunResult result = run_seed(seed, options);
    EXPECT_EQ(result.failure, "") << "replay: rustqueue-sim --seed " << seed << " --set \"" << overrides << "\"\n"
                                  << result.plan << "\n"
                                  << result.report;
    look(result);
  }
}

TEST(Seeds, Q_94_TheFirstSeedsHaveNoFinding) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const RunResult result = run_seed(seed);
    EXPECT_EQ(result.failure, "") << "replay: rustqueue-sim --seed " << seed << "\n" << result.plan << "\n" << result.report;
  }
}

TEST(Seeds, Q_94_ASeedRunTwiceGivesTheSameHash) {
  for (std::uint64_t seed = 100; seed < 108; ++seed) {
    const RunResult first = run_seed(seed), second = run_seed(seed);
    EXPECT_EQ(first.trace_hash, second.trace_hash) << "seed " << seed;
    EXPECT_EQ(first.events, second.events) << "seed " << seed;
  }
}

// Good clients over TLS and compression, beside others that break off, send garbage and bombs, or never read.
TEST(Seeds, ClientsThatMisbehaveHarmNoGoodOne) {
  std::uint64_t misdeeds = 0, acknowledged = 0;
  each_is_clean(200, 215, "layers=1024 rude=3", [&](const RunResult& result) {
    misdeeds += result.misdeeds;
    acknowledged += result.totals.acknowledged;
  });
  EXPECT_GT(misdeeds, 50u);
  EXPECT_GT(acknowledged, 300u);
}

TEST(Seeds, EveryRegressionStaysFixed) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(RQ_SOURCE_DIR "/sim/regressions"))
    if (entry.path().extension() == ".plan") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (const std::filesystem::path& file : files) {
    std::ifstream in(file);
    const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    Regression regression;
    std::string error;
    ASSERT_TRUE(parse_regression(text, regression, error)) << file << ": " << error;
    RunOptions options;
    options.plain = true;
    options.overrides = regression.plan;
    const RunResult result = run_seed(regression.seed, options);
    EXPECT_EQ(result.failure, "") << file << "\n" << result.report;
  }
}

TEST(Seeds, EveryDrawnConfigurationPassesTheProductsValidation) {
  for (std::uint64_t seed = 1; seed <= 2'000; ++seed) {
    const Swarm swarm = Swarm::draw(Random(seed));
    const auto refused = broker::validate(swarm.config());
    ASSERT_FALSE(refused.has_value()) << "seed " << seed << ": " << *refused << "\n" << swarm.text();
  }
}

TEST(Seeds, LiveFeedsReadAmongEverythingElse) {
  std::uint64_t messages = 0;
  each_is_clean(300, 310, "feeds=2 policy_gap_ms=400", [&](const RunResult& result) { messages += result.feed_messages; });
  EXPECT_GT(messages, 0u);
}

// Two lookup servers, one of which never answers well.
TEST(Seeds, ABrokenLookupServerHarmsNobody) {
  std::uint64_t learned = 0;
  each_is_clean(400, 412, "lookups=2 lookup_broken=1 lookup_gap_ms=1500 lookup_lies=100",
                [&](const RunResult& result) { learned += result.channels_learned; });
  EXPECT_GT(learned, 0u);
}

TEST(Seeds, APlanSurvivesAsText) {
  const Swarm drawn = Swarm::draw(Random(7));
  Swarm read;
  std::string error;
  ASSERT_TRUE(read.apply(drawn.text(), error)) << error;
  EXPECT_EQ(read.text(), drawn.text());
  EXPECT_FALSE(read.apply("no_such_key=1", error));
  EXPECT_FALSE(read.apply("rdy=x", error));
  EXPECT_FALSE(read.apply("rdy", error));
}

TEST(Seeds, OverridingOneKeyLeavesTheOthers) {
  Swarm drawn = Swarm::draw(Random(7));
  const Swarm again = Swarm::draw(Random(7));
  drawn.kill_ms = again.kill_ms;
  EXPECT_EQ(drawn.text(), again.text());
}

}  // namespace
}  // namespace rq::sim
