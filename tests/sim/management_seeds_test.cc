// Fixed seeds with a control plane: managed operations repeated over crashes, fences synchronised after every start, drains in
// the middle of faults (I-52, I-55, I-56 of page 30).
#include <gtest/gtest.h>

#include "sim/runner.h"

namespace rq::sim {
namespace {

TEST(ManagementSeeds, OperationsHaveOneEffectAndAQuiescedBrokerIsStill) {
  std::uint64_t quiesced = 0;
  for (std::uint64_t seed = 1; seed <= 25; ++seed) {
    RunOptions options;
    options.overrides = "manage_gap_ms=30";
    const RunResult result = run_seed(seed, options);
    EXPECT_EQ(result.failure, "") << "replay: rustqueue-sim --seed " << seed << " --set \"manage_gap_ms=30\"\n"
                                  << result.plan << "\n"
                                  << result.report;
    quiesced += result.quiesced;
  }
  EXPECT_GT(quiesced, 3u);
}

}  // namespace
}  // namespace rq::sim
