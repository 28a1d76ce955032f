// Host names in the real world: which of several addresses is tried.
#include "io/real/look_up.h"

#include <gtest/gtest.h>
#include <netinet/in.h>

namespace rq::real {
namespace {

TEST(LookUp, AnAddressOfIpv4IsPreferredWhereverItStands) {
  addrinfo second_v4{}, first_v4{}, last_v6{}, first_v6{};
  first_v6.ai_family = last_v6.ai_family = AF_INET6;
  first_v4.ai_family = second_v4.ai_family = AF_INET;
  first_v6.ai_next = &first_v4;
  first_v4.ai_next = &second_v4;
  EXPECT_EQ(preferred(&first_v6), &first_v4);
  EXPECT_EQ(preferred(&first_v4), &first_v4);
  first_v6.ai_next = &last_v6;
  EXPECT_EQ(preferred(&first_v6), &first_v6);
}

TEST(LookUp, AKnownNameIsFoundWithItsPort) {
  const auto found = look_up({"localhost", "4150"});
  ASSERT_TRUE(found.has_value());
  const std::string text = format_address(*found);
  EXPECT_TRUE(text == "127.0.0.1:4150" || text == "[::1]:4150") << text;
}

}  // namespace
}  // namespace rq::real
