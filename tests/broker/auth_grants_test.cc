// Documents of auth servers: what they grant, and what makes them invalid (page 10 sections 4.3 and 4.4, page 31 section 3.8).
#include "core/broker/auth_grants.h"

#include <gtest/gtest.h>

namespace rq::broker {
namespace {

using Permission = AuthGrants::Permission;

std::string with(std::string_view entries) { return R"({"ttl":5,"authorizations":[)" + std::string(entries) + "]}"; }
bool valid(std::string_view json) { return AuthGrants::parse(json).has_value(); }

TEST(AuthGrants, PatternsAreSearchedAnywhereAndEntriesAreIndependent) {
  const auto grants = AuthGrants::parse(with(R"({"permissions":["publish"],"topic":"^a$","channels":[".*"]},
                                                {"permissions":["subscribe"],"topic":"b","channels":["^x","y$"]})"));
  ASSERT_TRUE(grants);
  EXPECT_TRUE((*grants)->allows(Permission::publish, "a", ""));
  EXPECT_FALSE((*grants)->allows(Permission::publish, "aa", ""));
  EXPECT_FALSE((*grants)->allows(Permission::publish, "b", ""));
  EXPECT_TRUE((*grants)->allows(Permission::subscribe, "abc", "x1"));
  EXPECT_TRUE((*grants)->allows(Permission::subscribe, "b", "1y"));
  EXPECT_FALSE((*grants)->allows(Permission::subscribe, "b", "1x"));
  EXPECT_EQ((*grants)->count(), 2u);
  EXPECT_EQ((*grants)->ttl_seconds(), 5);
}

TEST(AuthGrants, WithoutAChannelThatMatchesNothingIsGranted) {
  for (const char* entry :
       {R"({"permissions":["publish"],"topic":"t","channels":[]})", R"({"permissions":["publish"],"topic":"t"})",
        R"({"permissions":["publish"],"topic":"t","channels":["^ch$"]})"}) {
    const auto grants = AuthGrants::parse(with(entry));
    ASSERT_TRUE(grants) << entry;
    EXPECT_FALSE((*grants)->allows(Permission::publish, "t", "")) << entry;
    EXPECT_FALSE((*grants)->empty());
  }
}

TEST(AuthGrants, TheTtlIsAWholeNumberAboveZero) {
  for (const char* ttl : {"0", "-1", "1.5", "\"5\"", "null", "[]"}) {
    EXPECT_FALSE(valid(R"({"authorizations":[],"ttl":)" + std::string(ttl) + "}")) << ttl;
  }
  EXPECT_FALSE(valid(R"({"authorizations":[]})"));
  for (const char* ttl : {"9223372036854775808", "18446744073709551615", "6e1", "060", "-0"}) {
    EXPECT_FALSE(valid(R"({"authorizations":[],"ttl":)" + std::string(ttl) + "}")) << ttl;
  }
  EXPECT_TRUE(valid(R"({"ttl":9223372036854775807})")) << "capped elsewhere";
}

TEST(AuthGrants, WhatIsNoDocumentIsInvalid) {
  for (const char* json : {"", "[]", "{", "null", R"({"ttl":1,"identity":5})", R"({"ttl":1,"authorizations":{}})",
                           R"({"ttl":1,"authorizations":[1]})"}) {
    EXPECT_FALSE(valid(json)) << json;
  }
  for (const char* entry : {R"({"permissions":["all"],"topic":"t"})", R"({"permissions":["publish"],"topic":"("})",
                            R"({"permissions":["publish"],"topic":5})", R"({"permissions":[null],"topic":"t"})",
                            R"({"permissions":{},"topic":"t"})", R"({"channels":[1]})", R"({"channels":".*"})", "[]",
                            R"({"permissions":"publish","topic":"t"})", R"({"topic":"t","channels":["["]})"}) {
    EXPECT_FALSE(valid(with(entry))) << entry;
  }
}

TEST(AuthGrants, LimitsAreExact) {
  const auto entries = [](int count) {
    std::string out;
    for (int i = 0; i < count; ++i) out += (i > 0 ? "," : "") + std::string(R"({"permissions":["publish"],"topic":"t"})");
    return with(out);
  };
  EXPECT_TRUE(valid(entries(256)));
  EXPECT_FALSE(valid(entries(257)));
  const auto pattern = [](std::size_t bytes) {
    return with(R"({"permissions":["publish"],"topic":")" + std::string(bytes, 'x') + "\"}");
  };
  EXPECT_TRUE(valid(pattern(4'096)));
  EXPECT_FALSE(valid(pattern(4'097)));
  EXPECT_FALSE(valid(with(R"({"permissions":["publish"],"topic":"((x{100}){100}){100}"})"))) << "the automaton is too large";
}

TEST(AuthGrants, ThePatternsOfAReplacedListDoNotCount) {
  const std::string channels = [] {
    std::string out;
    for (int i = 0; i < 200; ++i) out += i > 0 ? ",\"c\"" : "\"c\"";
    return "\"channels\":[" + out + "]";
  }();
  EXPECT_TRUE(valid(with("{" + channels + "," + channels + "}")));
  EXPECT_FALSE(valid(with("{" + channels + "},{" + channels + "}")));
  EXPECT_TRUE(valid(R"({"ttl":1,"authorizations":[{)" + channels + R"(}],"authorizations":[{)" + channels + "}]}"));
}

TEST(AuthGrants, OnlyADocumentWithoutEntriesIsEmpty) {
  EXPECT_TRUE((*AuthGrants::parse(R"({"ttl":1})"))->empty());
  EXPECT_TRUE((*AuthGrants::parse(R"({"ttl":1,"authorizations":null})"))->empty());
  for (const char* entry : {R"({"permissions":[],"topic":"t"})", R"({"permissions":null})", "{}", "null"}) {
    const auto grants = AuthGrants::parse(with(entry));
    ASSERT_TRUE(grants) << entry;
    EXPECT_FALSE((*grants)->empty()) << entry;
    EXPECT_EQ((*grants)->count(), 1u) << entry;
    EXPECT_FALSE((*grants)->allows(Permission::publish, "t", "")) << entry;
    EXPECT_FALSE((*grants)->allows(Permission::subscribe, "t", "c")) << entry;
  }
}

TEST(AuthGrants, WithoutATopicEveryTopicMatches) {
  for (const char* topic : {"", R"("topic":null,)", R"("topic":"",)"}) {
    const auto grants = AuthGrants::parse(with("{" + std::string(topic) + R"("permissions":["publish"],"channels":[null]})"));
    ASSERT_TRUE(grants) << topic;
    EXPECT_TRUE((*grants)->allows(Permission::publish, "t", "")) << topic;
    EXPECT_FALSE((*grants)->allows(Permission::subscribe, "t", "c")) << topic;
  }
  const auto kept = AuthGrants::parse(with(R"({"topic":"^a$","topic":null,"permissions":["publish"],"channels":[".*"]})"));
  ASSERT_TRUE(kept);
  EXPECT_FALSE((*kept)->allows(Permission::publish, "t", "")) << "null is absent";
}

TEST(AuthGrants, KeysMatchWithoutCaseAndTheLastOneCounts) {
  for (
      const char* json :
      {R"({"TTL":5,"Identity":"i","AUTHORIZATIONS":[{"Topic":"t","CHANNELS":[".*"],"Permissions":["publish"]}]})",
       R"({"ttl":0,"ttl":5,"ttl":null,"identity":"x","identity":"i","authorizations":[{},{}],"authorizations":[{"topic":"(","topic":"t",
            "channels":["("],"channels":[""],"permissions":["fly"],"permissions":["publish"]}]})",
       "{\"ttl\":5,\"identity\":\"i\",\"authorization\xc5\xbf\":[{\"topic\":\"t\",\"channels\":[\".*\"],\"permi\xc5\xbfsions\":["
       "\"publish\"]}]}"}) {
    const auto grants = AuthGrants::parse(json);
    ASSERT_TRUE(grants) << json;
    EXPECT_EQ((*grants)->ttl_seconds(), 5) << json;
    EXPECT_EQ((*grants)->identity(), "i") << json;
    EXPECT_EQ((*grants)->count(), 1u) << json;
    EXPECT_TRUE((*grants)->allows(Permission::publish, "t", "")) << json;
  }
  EXPECT_FALSE(valid(R"({"ttl":5,"TTL":0})"));
  EXPECT_FALSE(valid(R"({"ttl":"x","ttl":5})")) << "a wrong type is wrong wherever it stands";
  EXPECT_TRUE(valid(R"({"ttl":5,"x":{"ttl":"x","authorizations":[1],"y":[{"topic":5}]}})")) << "unknown keys hold anything";
}

TEST(AuthGrants, WhatIsNoTextIsReplaced) {
  const auto grants = AuthGrants::parse(
      "{\"ttl\":1,\"identity\":\"a\xff\xfe\xc3"
      R"(b","identity_url":"\ud83dx\udE00\ud83d\ude00"})");
  ASSERT_TRUE(grants);
  EXPECT_EQ((*grants)->identity(),
            "a\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"
            "b");
  EXPECT_EQ((*grants)->identity_url(), "\xef\xbf\xbdx\xef\xbf\xbd\xf0\x9f\x98\x80");
}

TEST(AuthGrants, AnExpressionForSingleBytesIsRefused) {
  EXPECT_FALSE(valid(with(R"({"topic":"a\\C"})")));
  for (const char* topic : {R"(\\\\C)", R"(\\Q\\C\\E)", "C"}) {
    EXPECT_TRUE(valid(with(R"({"topic":")" + std::string(topic) + "\"}"))) << topic;
  }
  EXPECT_FALSE(valid(with(R"({"topic":"\\Qx\\E\\C"})")));
}

}  // namespace
}  // namespace rq::broker
