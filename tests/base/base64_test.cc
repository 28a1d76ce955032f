#include "core/base/base64.h"

#include <gtest/gtest.h>

#include <utility>

namespace rq {
namespace {

TEST(Base64, VectorsOfRfc4648) {
  const std::pair<const char*, const char*> vectors[] = {{"", ""},
                                                         {"f", "Zg=="},
                                                         {"fo", "Zm8="},
                                                         {"foo", "Zm9v"},
                                                         {"foob", "Zm9vYg=="},
                                                         {"fooba", "Zm9vYmE="},
                                                         {"foobar", "Zm9vYmFy"}};
  for (const auto& [plain, encoded] : vectors) EXPECT_EQ(to_base64(plain), encoded);
  EXPECT_EQ(to_base64(std::string_view("\xff\xfe\x00", 3)), "//4A");
}

}  // namespace
}  // namespace rq
