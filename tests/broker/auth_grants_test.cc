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
  EXPECT_TRUE(valid(R"({"ttl":18446744073709551615})")) << "capped elsewhere";
}

TEST(AuthGrants, WhatIsNoDocumentIsInvalid) {
  for (const char* json : {"", "[]", "{", "null", R"({"ttl":1,"identity":5})", R"({"ttl":1,"authorizations":{}})",
                           R"({"ttl":1,"authorizations":[1]})"}) {
    EXPECT_FALSE(valid(json)) << json;
  }
  for (const char* entry : {R"({"permissions":["all"],"topic":"t"})", R"({"permissions":["publish"],"topic":"("})",
                            R"({"permissions":["publish"],"topic":5})", R"({"permissions":["publish"]})",
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

TEST(AuthGrants, NothingGrantedIsEmpty) {
  EXPECT_TRUE((*AuthGrants::parse(R"({"ttl":1})"))->empty());
  EXPECT_TRUE((*AuthGrants::parse(with(R"({"permissions":[],"topic":"t"})")))->empty());
}

}  // namespace
}  // namespace rq::broker
