#include "core/nsq/quote.h"

#include <gtest/gtest.h>

#include "core/nsq/numbers.h"

namespace rq::nsq {
namespace {

TEST(Quote, QuotesAndBackslashesAreEscaped) { EXPECT_EQ(quote("c\"\\x"), R"("c\"\\x")"); }

TEST(Quote, ControlBytesAndInvalidUtf8AreHex) {
  EXPECT_EQ(quote("\xff\x01"), R"("\xff\x01")");
  EXPECT_EQ(quote("\x7f"), R"("\x7f")");
  EXPECT_EQ(quote(std::string_view("\0", 1)), R"("\x00")");
  EXPECT_EQ(quote("\xc3"), R"("\xc3")");
  EXPECT_EQ(quote("\xed\xa0\x80"), R"("\xed\xa0\x80")");  // a surrogate is no rune
}

TEST(Quote, ShortEscapes) { EXPECT_EQ(quote("\a\b\f\n\r\t\v"), R"("\a\b\f\n\r\t\v")"); }

TEST(Quote, PrintableRunesStayAndOthersAreEscaped) {
  EXPECT_EQ(quote("\xc3\xa9\xe4\xb8\xad\xf0\x9f\x98\x80"), "\"\xc3\xa9\xe4\xb8\xad\xf0\x9f\x98\x80\"");
  EXPECT_EQ(quote("\xc2\xa0"), R"("\u00a0")");              // no-break space
  EXPECT_EQ(quote("\xe2\x80\x8b"), R"("\u200b")");          // zero width space
  EXPECT_EQ(quote("\xf3\xa0\x80\x81"), R"("\U000e0001")");  // language tag
  EXPECT_EQ(quote("a b~"), "\"a b~\"");
}

TEST(Quote, CleanTextIsValidAndBounded) {
  EXPECT_EQ(clean_utf8("a\xff"
                       "b",
                       10),
            "a\xef\xbf\xbd"
            "b");
  EXPECT_EQ(clean_utf8("\xc3\xa9\xc3\xa9", 3), "\xc3\xa9");
}

TEST(Numbers, DigitsOnlyEmptyIsZeroAndOverflowWraps) {
  EXPECT_EQ(parse_number(""), 0u);
  EXPECT_EQ(parse_number("007"), 7u);
  EXPECT_EQ(parse_number("18446744073709551616"), 0u);
  EXPECT_FALSE(parse_number("-1"));
  EXPECT_FALSE(parse_number("+1"));
  EXPECT_FALSE(parse_number("1.0"));
}

}  // namespace
}  // namespace rq::nsq
