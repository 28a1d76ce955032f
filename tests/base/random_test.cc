// The generator behind every seed: published vectors of SplitMix64, and how a draw becomes a number below a bound.
#include "core/base/random.h"

#include <gtest/gtest.h>

namespace rq {
namespace {

TEST(Random, IsSplitMix64) {
  Random random(1'234'567);
  for (const std::uint64_t expected : {6'457'827'717'110'365'317u, 3'203'168'211'198'807'973u, 9'817'491'932'198'370'423u,
                                       4'593'380'528'125'082'431u, 16'408'922'859'458'223'821u})
    EXPECT_EQ(random.next(), expected);
  Random zero(0);
  for (const std::uint64_t expected : {0xe220a8397b1dcdafu, 0x6e789e6aa1b965f4u, 0x06c45d188009454fu, 0xf88bb8a8724c81ecu})
    EXPECT_EQ(zero.next(), expected);
}

// The high half of draw times bound, not the remainder.
TEST(Random, BelowTakesTheHighBitsOfADraw) {
  Random random(1'234'567);
  for (const std::uint64_t expected : {35u, 17u, 53u, 24u, 88u}) EXPECT_EQ(random.below(100), expected);
  Random whole(0);
  EXPECT_EQ(whole.below(~std::uint64_t{0}), 0xe220a8397b1dcdaeu);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(whole.below(1), 0u);
}

}  // namespace
}  // namespace rq
