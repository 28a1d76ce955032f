#include "core/base/crc32c.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>

namespace rq {
namespace {

TEST(Crc32c, KnownValuesOfPage20) {
  EXPECT_EQ(crc32c(bytes_of("123456789")), 0xe3069283u);
  EXPECT_EQ(crc32c(bytes_of(std::string(32, '\0'))), 0x8a9136aau);
  EXPECT_EQ(crc32c(bytes_of(std::string(32, '\xff'))), 0x62a8ab43u);
  EXPECT_EQ(crc32c(bytes_of("hello")), 0x9a71bb4cu);
  EXPECT_EQ(crc32c({}), 0u);
}

// Short inputs and long ones go different ways.
TEST(Crc32c, EveryLengthIsThePolynomialDivision) {
  std::string bytes;
  std::uint32_t register_bits = ~0u;
  for (unsigned i = 0; i < 300; ++i) {
    EXPECT_EQ(crc32c(bytes_of(bytes)), ~register_bits) << i;
    bytes.push_back(static_cast<char>(i * 167 + 13));
    register_bits ^= static_cast<unsigned char>(bytes.back());
    for (int bit = 0; bit < 8; ++bit) register_bits = register_bits & 1 ? (register_bits >> 1) ^ 0x82F63B78u : register_bits >> 1;
  }
}

RC_GTEST_PROP(Crc32c, ContinuesAndCombines, (const std::string& a, const std::string& b)) {
  const std::uint32_t whole = crc32c(bytes_of(a + b));
  RC_ASSERT(crc32c(bytes_of(b), crc32c(bytes_of(a))) == whole);
  RC_ASSERT(crc32c_combine(crc32c(bytes_of(a)), crc32c(bytes_of(b)), b.size()) == whole);
}

RC_GTEST_PROP(Crc32c, CombinesAlikeWithAndWithoutSpecialInstructions, (std::uint32_t a, std::uint32_t b, std::uint64_t length)) {
  for (const std::uint64_t bytes : {length, length >> 24, length >> 40, length >> 54})
    RC_ASSERT(crc32c_combine(a, b, bytes) == crc32c_combine_portable(a, b, bytes));
}

}  // namespace
}  // namespace rq
