#include "core/nsq/json_text.h"

#include <gtest/gtest.h>

namespace rq::nsq {
namespace {

TEST(JsonText, KeysAreTheSameButForCase) {
  EXPECT_TRUE(same_json_key("topics", "topics"));
  EXPECT_TRUE(same_json_key("topics", "ToPiCS"));
  EXPECT_TRUE(same_json_key("topics", "topic\xc5\xbf"));  // U+017F
  EXPECT_TRUE(same_json_key("k", "\xe2\x84\xaa"));        // U+212A
  EXPECT_FALSE(same_json_key("topics", "topic"));
  EXPECT_FALSE(same_json_key("topic", "topics"));
  EXPECT_FALSE(same_json_key("topic", ""));
  EXPECT_FALSE(same_json_key("a_b", "a-b"));
  EXPECT_FALSE(same_json_key("topic", "topi\xc3"));  // cut
}

TEST(JsonText, HalvesWithoutTheOtherAreReplaced) {
  const auto whole = [](std::string_view json) {
    std::string storage;
    return std::string(whole_pairs(json, storage));
  };
  EXPECT_EQ(whole(R"("\ud83d\ude00")"), R"("\ud83d\ude00")");
  EXPECT_EQ(whole(R"("\ud83d")"), R"("\ufffd")");
  EXPECT_EQ(whole(R"("\ude00\ud83d")"), R"("\ufffd\ufffd")");
  EXPECT_EQ(whole(R"("\uD83D\uD83D\uDE00")"), R"("\ufffd\uD83D\uDE00")");
  EXPECT_EQ(whole(R"("\\ud83d")"), R"("\\ud83d")");  // an escaped backslash
  EXPECT_EQ(whole(R"("\ud83)"), R"("\ud83)");        // cut
  EXPECT_EQ(whole("\\"), "\\");
  EXPECT_EQ(whole(""), "");
}

}  // namespace
}  // namespace rq::nsq
