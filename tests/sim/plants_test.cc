// Proof that the oracles bite: each planted bug is caught within its stated number of seeds, and the same plan without the bug
// has no finding.
#include "sim/plants.h"

#include <gtest/gtest.h>

#include "sim/runner.h"

namespace rq::sim {
namespace {

class Plants : public ::testing::TestWithParam<std::size_t> {};

TEST_P(Plants, IsCaughtWithinItsSeeds) {
  const Plant& plant = plants()[GetParam()];
  RunOptions options;
  options.plants = {plant.name};
  options.overrides = plant.plan;
  std::string caught;
  std::uint64_t seed = 0;
  while (caught.empty() && seed < plant.seeds_max) caught = run_seed(++seed, options).failure;
  EXPECT_NE(caught, "") << plant.name << " is not caught within " << plant.seeds_max << " seeds";
  RecordProperty("caught_at_seed", std::to_string(seed));
  options.plants.clear();
  const RunResult healthy = run_seed(seed, options);
  EXPECT_EQ(healthy.failure, "") << "the finding is not the planted bug's: seed " << seed << "\n" << healthy.report;
}

INSTANTIATE_TEST_SUITE_P(Each, Plants, ::testing::Range<std::size_t>(0, plants().size()),
                         [](const auto& plant) { return std::string(plants()[plant.param].name); });

TEST(PlantsList, HoldsAtLeastTheFour) {
  std::set<std::string> names;
  for (const Plant& plant : plants()) names.insert(plant.name);
  for (const char* name : {"acknowledge_before_barrier", "skip_directory_sync", "reuse_id_after_crash", "forget_wal_in_barrier"})
    EXPECT_TRUE(names.contains(name)) << name;
}

}  // namespace
}  // namespace rq::sim
