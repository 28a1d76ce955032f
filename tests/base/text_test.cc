// Small text: what counts as a digit, a letter and a blank, and nothing else.
#include "core/base/text.h"

#include <gtest/gtest.h>

namespace rq::test {
namespace {

char byte(int value) { return static_cast<char>(static_cast<unsigned char>(value)); }

TEST(Text, HexDigitsAreThoseTwentyTwoCharacters) {
  const std::string_view digits = "0123456789abcdefABCDEF";
  for (int value = 0; value < 256; ++value) {
    const std::size_t at = digits.find(byte(value));
    const int expected = at == std::string_view::npos ? -1 : at < 16 ? static_cast<int>(at) : static_cast<int>(at) - 6;
    EXPECT_EQ(hex_digit(byte(value)), expected) << value;
  }
}

TEST(Text, OnlyAsciiLettersHaveALowerCase) {
  for (int value = 0; value < 256; ++value) {
    const bool capital = value >= 'A' && value <= 'Z';
    EXPECT_EQ(lower(byte(value)), byte(capital ? value + 32 : value)) << value;
  }
  EXPECT_EQ(lower("Transfer-ENCODING \xc3\x84[@"), "transfer-encoding \xc3\x84[@");
}

TEST(Text, EqualTextsDifferInTheCaseOfLettersAlone) {
  EXPECT_TRUE(equal_ignoring_case("Content-Length", "cONTENT-lENGTH"));
  EXPECT_TRUE(equal_ignoring_case("", ""));
  EXPECT_FALSE(equal_ignoring_case("chunked", "chunke"));
  EXPECT_FALSE(equal_ignoring_case("chunke", "chunked"));
  EXPECT_FALSE(equal_ignoring_case("@", "`"));  // 32 apart, as letters are
  EXPECT_FALSE(equal_ignoring_case("[", "{"));
}

TEST(Text, OnlyTheBlanksThatAreNamedAreTrimmedAndOnlyAtTheEnds) {
  EXPECT_EQ(trimmed(" \ta b\t ", " \t"), "a b");
  EXPECT_EQ(trimmed("\r\na\r\n", " \t"), "\r\na\r\n");
  EXPECT_EQ(trimmed("\v\f a\n", " \t\r\n\v\f"), "a");
  EXPECT_EQ(trimmed(" \t ", " \t"), "");
  EXPECT_EQ(trimmed("", " \t"), "");
}

TEST(Text, DecimalsAreCanonicalAndFit64Bits) {
  EXPECT_EQ(parse_decimal("0"), 0u);
  EXPECT_EQ(parse_decimal("18446744073709551615"), UINT64_MAX);
  for (const char* bad : {"", "00", "01", "+1", "-1", " 1", "1 ", "1a", "18446744073709551616", "100000000000000000000"})
    EXPECT_EQ(parse_decimal(bad), std::nullopt) << bad;
  EXPECT_EQ(decimal20(7), "00000000000000000007");
  EXPECT_EQ(parse_decimal20(decimal20(UINT64_MAX)), UINT64_MAX);
  for (const char* bad : {"7", "0000000000000000007", "000000000000000000007", "18446744073709551616", "0000000000000000000x"})
    EXPECT_EQ(parse_decimal20(bad), std::nullopt) << bad;
}

}  // namespace
}  // namespace rq::test
