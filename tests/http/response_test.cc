#include "core/http/response.h"

#include <gtest/gtest.h>

#include "core/http/body_buffer.h"

namespace rq::http {
namespace {

std::string written(const Response& response, const ResponseFraming& framing = {}) {
  std::string out;
  write_response(out, response, framing);
  return out;
}

TEST(Response, ATextResultIsWrittenAsNsqdWritesIt) {
  EXPECT_EQ(written(text_response("OK")),
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\nX-NSQ-Content-Type: nsq; version=1.0\r\n"
            "Content-Length: 2\r\n\r\nOK");
}

TEST(Response, AnEmptyResultHasNoContentType) {
  EXPECT_EQ(written(empty_response()), "HTTP/1.1 200 OK\r\nX-NSQ-Content-Type: nsq; version=1.0\r\nContent-Length: 0\r\n\r\n");
}

TEST(Response, AnErrorIsJsonWithoutALineEndAndThrottlingSaysWhenToComeBack) {
  EXPECT_EQ(error_response(404, "TOPIC_NOT_FOUND").body, "{\"message\":\"TOPIC_NOT_FOUND\"}");
  EXPECT_EQ(error_response(400, "X", "why").body, "{\"message\":\"X\",\"detail\":\"why\"}");
  EXPECT_NE(written(error_response(429, "E_THROTTLED")).find("\r\nRetry-After: 1\r\n"), std::string::npos);
}

TEST(Response, TheConnectionHeaderSaysWhatHappensNext) {
  const auto has = [](const std::string& text, const char* part) { return text.find(part) != std::string::npos; };
  EXPECT_TRUE(has(written(empty_response(), {10, true, "", false}), "Connection: keep-alive\r\n"));
  EXPECT_TRUE(has(written(empty_response(), {10, true, "", false}), "HTTP/1.0 200"));
  EXPECT_TRUE(has(written(empty_response(), {11, false, "", false}), "Connection: close\r\n"));
  Response closing = empty_response();
  closing.close = true;
  EXPECT_TRUE(has(written(closing, {11, true, "x", false}), "Connection: close\r\n"));
  EXPECT_TRUE(has(written(closing, {11, true, "x", false}), "Date: x\r\n"));
}

TEST(Response, AHeadRequestGetsTheLengthWithoutTheBody) {
  const std::string text = written(text_response("OK"), {11, true, "", true});
  EXPECT_TRUE(text.ends_with("Content-Length: 2\r\n\r\n"));
}

TEST(BodyBuffer, KeepsWhatFitsAndCountsTheRestAsOverflow) {
  BodyBuffer declared(10, 10);
  declared.on_body(bytes_of("01234"));
  declared.on_body(bytes_of("56789"));
  EXPECT_FALSE(declared.overflow());
  EXPECT_EQ(text_of(declared.take().bytes()), "0123456789");
  EXPECT_EQ(declared.size(), 0u);

  BodyBuffer open(6'000, std::nullopt);
  const std::string part(1'000, 'x');
  for (int i = 0; i < 6; ++i) open.on_body(bytes_of(part));
  EXPECT_FALSE(open.overflow());
  EXPECT_EQ(open.size(), 6'000u);
  open.on_body(bytes_of("y"));
  EXPECT_TRUE(open.overflow());
  EXPECT_EQ(open.size(), 6'000u);
}

}  // namespace
}  // namespace rq::http
