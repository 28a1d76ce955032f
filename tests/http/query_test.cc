#include "core/http/query.h"

#include <gtest/gtest.h>

namespace rq::http {
namespace {

TEST(Query, FirstValueWinsAndUnknownKeysAreKept) {
  const auto query = Query::parse("topic=a&topic=b&x&y=&=z");
  ASSERT_TRUE(query);
  EXPECT_EQ(*query->find("topic"), "a");
  EXPECT_EQ(*query->find("x"), "");
  EXPECT_EQ(*query->find("y"), "");
  EXPECT_EQ(query->find("none"), nullptr);
}

TEST(Query, EscapesAndPlusAreDecodedInKeysAndValues) {
  const auto query = Query::parse("to%70ic=a%23ephemeral&n=1+2%2B");
  ASSERT_TRUE(query);
  EXPECT_EQ(*query->find("topic"), "a#ephemeral");
  EXPECT_EQ(*query->find("n"), "1 2+");
}

TEST(Query, BadEscapesAndSemicolonsMakeItUnusable) {
  for (const char* text : {"a=%zz", "a=%4", "a=%", "a;b", "a=1&b;=2", "%g1=a"}) EXPECT_FALSE(Query::parse(text)) << text;
  for (const char* text : {"", "&&", "a==b", "a=%00"}) EXPECT_TRUE(Query::parse(text)) << text;
}

TEST(Target, OriginAndAbsoluteFormsAreTakenApart) {
  EXPECT_EQ(parse_target("/p%75b?topic=a%20b")->path, "/pub");
  EXPECT_EQ(parse_target("/p%75b?topic=a%20b")->query, "topic=a%20b");
  EXPECT_EQ(parse_target("http://host:1/stats?x=1")->path, "/stats");
  EXPECT_EQ(parse_target("http://host")->path, "/");
  EXPECT_EQ(parse_target("http://host?x")->query, "x");
  EXPECT_EQ(parse_target("/a+b")->path, "/a+b");
  for (const char* text : {"pub", "/%zz", "", "verylongscheme://a/"}) EXPECT_FALSE(parse_target(text)) << text;
}

}  // namespace
}  // namespace rq::http
