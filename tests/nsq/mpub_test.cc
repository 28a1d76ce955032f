#include "core/nsq/mpub.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace rq::nsq {
namespace {

std::string body_of(const std::vector<std::string>& messages) {
  std::string body;
  put32(body, static_cast<std::uint32_t>(messages.size()));
  for (const std::string& message : messages) {
    put32(body, static_cast<std::uint32_t>(message.size()));
    body += message;
  }
  return body;
}

std::string scan(const std::string& body, MpubLimits limits = {65'536, 1'000}) {
  MpubScanner scanner(static_cast<std::uint32_t>(body.size()), limits);
  return scanner.advance(bytes_of(body)).value_or("");
}

TEST(Mpub, MessagesArePartsOfTheBody) {
  const Slice body = Slice::copy_of(bytes_of(body_of({"a", "bcd"})));
  EXPECT_EQ(scan(std::string(text_of(body.bytes()))), "");
  const auto messages = mpub_messages(body);
  ASSERT_EQ(messages.size(), 2u);
  EXPECT_EQ(text_of(messages[1].bytes()), "bcd");
  EXPECT_EQ(messages[1].data(), body.data() + 13);
}

TEST(Mpub, CountIsWithinItsLimits) {
  std::string zero;
  put32(zero, 0);
  EXPECT_EQ(scan(zero), "E_BAD_BODY MPUB invalid message count 0");
  std::string many;
  put32(many, 65'537);
  EXPECT_EQ(scan(many + std::string(400'000, '\0')), "E_BAD_BODY MPUB invalid message count 65537");
  std::string negative;
  put32(negative, 0xffffffff);
  EXPECT_EQ(scan(negative), "E_BAD_BODY MPUB invalid message count -1");
  EXPECT_EQ(scan("abc"), "E_BAD_BODY MPUB failed to read message count");
  EXPECT_EQ(mpub_messages_max(5'242'880), 65'536u);
  EXPECT_EQ(mpub_messages_max(1'004), 200u);
}

TEST(Mpub, MessageSizesAreChecked) {
  EXPECT_EQ(scan(body_of({"a", ""})), "E_BAD_MESSAGE MPUB invalid message(1) body size 0");
  EXPECT_EQ(scan(body_of({std::string(1'001, 'x')})), "E_BAD_MESSAGE MPUB message too big 1001 > 1000");
}

TEST(Mpub, AnOuterSizeThatDisagreesIsABadBody) {
  EXPECT_EQ(scan(body_of({"a", "b"}) + "x"), "E_BAD_BODY MPUB trailing bytes");
  const std::string whole = body_of({"a", "bcd"});
  EXPECT_EQ(scan(whole.substr(0, whole.size() - 1)), "E_BAD_BODY MPUB message(1) exceeds body size");
  EXPECT_EQ(scan(whole.substr(0, 11)), "E_BAD_BODY MPUB message(1) exceeds body size");
}

TEST(Mpub, ATruncatedBodyNamesWhatIsMissing) {
  const std::string whole = body_of({"a", "bcd"});
  const auto truncated = [&](std::size_t bytes) {
    MpubScanner scanner(static_cast<std::uint32_t>(whole.size()), {65'536, 1'000});
    return scanner.truncated(bytes_of(std::string_view(whole).substr(0, bytes)));
  };
  EXPECT_EQ(truncated(3), "E_BAD_BODY MPUB failed to read message count");
  EXPECT_EQ(truncated(6), "E_BAD_MESSAGE MPUB failed to read message(0) body size");
  EXPECT_EQ(truncated(8), "E_BAD_MESSAGE MPUB failed to read message body");
  EXPECT_EQ(truncated(9), "E_BAD_MESSAGE MPUB failed to read message(1) body size");
  EXPECT_EQ(truncated(14), "E_BAD_MESSAGE MPUB failed to read message body");
}

RC_GTEST_PROP(MpubProperty, AnyGrowingPrefixGivesTheSameVerdictAsTheWhole, (const std::string& bytes, bool valid)) {
  const std::string body = valid ? body_of({bytes + "a", "b" + bytes}) : bytes;
  RC_PRE(!body.empty());
  const std::string wanted = scan(body);
  MpubScanner scanner(static_cast<std::uint32_t>(body.size()), {65'536, 1'000});
  std::string got;
  for (std::size_t n = 0; n <= body.size() && got.empty(); ++n) {
    got = scanner.advance(bytes_of(std::string_view(body).substr(0, n))).value_or("");
  }
  RC_ASSERT(got == wanted);
}

}  // namespace
}  // namespace rq::nsq
