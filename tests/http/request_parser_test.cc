#include "core/http/request_parser.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

namespace rq::http {
namespace {

struct Collect final : BodySink {
  std::string body;
  void on_body(ConstBuf bytes) override { body += text_of(bytes); }
};

// Everything there is to know about parsing one request, however it was cut.
struct Parsed {
  RequestParser::Stage stage = RequestParser::Stage::head;
  int failure = 0;
  std::string method, target, body, authorization;
  int version = 0;
  bool keep_alive = false, chunked = false, expect = false;
  std::size_t used = 0;  // when complete
  bool operator==(const Parsed&) const = default;
};

Parsed parse(std::string_view bytes, const std::vector<std::size_t>& cuts = {}) {
  RequestParser parser;
  Collect sink;
  Parsed out;
  std::size_t at = 0;
  std::size_t cut = 0;
  while (at < bytes.size()) {
    std::size_t piece = bytes.size() - at;
    if (!cuts.empty()) piece = std::min(piece, cuts[cut++ % cuts.size()] + 1);
    const std::string copy(bytes.substr(at, piece));  // so that reading past a piece shows
    std::size_t used = 0;
    while (used < piece && parser.stage() != RequestParser::Stage::complete && parser.stage() != RequestParser::Stage::failed) {
      const std::size_t now = parser.feed(bytes_of(std::string_view(copy).substr(used)), sink);
      used += now;
    }
    at += used;
    if (parser.stage() == RequestParser::Stage::complete || parser.stage() == RequestParser::Stage::failed) break;
  }
  out.stage = parser.stage();
  out.failure = parser.failure_status();
  if (out.stage == RequestParser::Stage::body || out.stage == RequestParser::Stage::complete) {
    const Request& r = parser.request();
    out.method = r.method;
    out.target = r.target;
    out.version = r.version;
    out.keep_alive = r.keep_alive;
    out.chunked = r.chunked;
    out.expect = r.expect_continue;
    out.authorization = r.authorization;
  }
  if (out.stage == RequestParser::Stage::complete) out.used = at;
  if (out.stage != RequestParser::Stage::failed) out.body = sink.body;
  return out;
}

constexpr auto kComplete = RequestParser::Stage::complete;
constexpr auto kFailed = RequestParser::Stage::failed;

TEST(RequestParser, ASimpleRequestIsTakenWholeAndNothingBehindIt) {
  const std::string text = "GET /ping?x=1 HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer t\r\n\r\n";
  const Parsed p = parse(text + "GET /next");
  EXPECT_EQ(p.stage, kComplete);
  EXPECT_EQ(p.used, text.size());
  EXPECT_EQ(p.method, "GET");
  EXPECT_EQ(p.target, "/ping?x=1");
  EXPECT_EQ(p.authorization, "Bearer t");
  EXPECT_TRUE(p.keep_alive);
}

TEST(RequestParser, BodiesByLengthAndInChunks) {
  EXPECT_EQ(parse("POST /pub HTTP/1.1\r\nContent-Length: 5\r\n\r\nhelloX").body, "hello");
  const std::string chunks =
      "POST /pub HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\nT: v\r\n\r\n";
  const Parsed p = parse(chunks + "rest");
  EXPECT_EQ(p.stage, kComplete);
  EXPECT_EQ(p.body, "abc0123456789");
  EXPECT_EQ(p.used, chunks.size());
  EXPECT_EQ(parse("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n").stage, kComplete);
}

TEST(RequestParser, StopsBehindTheHeadSoThatTheCallerDecidesAboutTheBody) {
  RequestParser parser;
  Collect sink;
  const std::string head = "POST /pub HTTP/1.1\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n";
  EXPECT_EQ(parser.feed(bytes_of(head + "hello"), sink), head.size());
  EXPECT_EQ(parser.stage(), RequestParser::Stage::body);
  EXPECT_TRUE(parser.request().expect_continue);
  EXPECT_EQ(sink.body, "");
}

TEST(RequestParser, KeepAliveFollowsVersionAndConnectionHeader) {
  EXPECT_FALSE(parse("GET / HTTP/1.0\r\n\r\n").keep_alive);
  EXPECT_TRUE(parse("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n").keep_alive);
  EXPECT_FALSE(parse("GET / HTTP/1.1\r\nConnection: close\r\n\r\n").keep_alive);
  EXPECT_FALSE(parse("GET / HTTP/1.0\r\nConnection: close\r\nConnection: keep-alive\r\n\r\n").keep_alive);
  EXPECT_FALSE(parse("GET / HTTP/1.1\r\nConnection: x, Close\r\n\r\n").keep_alive);
  EXPECT_TRUE(parse("GET / HTTP/1.1\r\nConnection: closed\r\n\r\n").keep_alive);
}

TEST(RequestParser, WhatAClientTellsItsProxyIsNotForUs) {
  EXPECT_TRUE(parse("GET / HTTP/1.1\r\nProxy-Connection: close\r\n\r\n").keep_alive);
  EXPECT_FALSE(parse("GET / HTTP/1.0\r\nProxy-Connection: keep-alive\r\n\r\n").keep_alive);
}

TEST(RequestParser, AMalformedHeadIsToldBeforeWhatItAsksFor) {
  const std::string get = "GET / HTTP/1.1\r\n";
  EXPECT_EQ(parse(get + "Expect: tea\r\nContent-Length: x\r\n\r\n").failure, 400);
  EXPECT_EQ(parse(get + "Transfer-Encoding: gzip\r\nno colon\r\n\r\n").failure, 400);
  EXPECT_EQ(parse(get + "Transfer-Encoding: gzip\r\nExpect: tea\r\n\r\n").failure, 501);
}

TEST(RequestParser, BlankLinesBeforeARequestAreSkipped) { EXPECT_EQ(parse("\r\n\r\nGET / HTTP/1.1\r\n\r\n").stage, kComplete); }

TEST(RequestParser, AmbiguousOrUnknownFramingFails) {
  const std::string post = "POST /pub HTTP/1.1\r\n";
  for (const char* headers :
       {"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n", "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n",
        "Content-Length: 3\r\nContent-Length: 4\r\n", "Content-Length: -1\r\n", "Content-Length: 1x\r\n",
        "Content-Length: 99999999999999999999\r\n", "Content Length: 3\r\n", "X : a\r\n"}) {
    const Parsed p = parse(post + headers + "\r\nabc");
    EXPECT_EQ(p.stage, kFailed) << headers;
    EXPECT_EQ(p.failure, 400) << headers;
  }
  EXPECT_EQ(parse(post + "Transfer-Encoding: gzip, chunked\r\n\r\n").failure, 501);
  EXPECT_EQ(parse(post + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n").failure, 400);
  EXPECT_EQ(parse("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n").failure, 501);
  EXPECT_EQ(parse(post + "Expect: 200-ok\r\n\r\n").failure, 417);
  EXPECT_EQ(parse("GET / HTTP/2.0\r\n\r\n").failure, 400);
  EXPECT_EQ(parse("nonsense\r\n\r\n").failure, 400);
}

TEST(RequestParser, AnotherProtocolIsRefusedAtItsFirstByte) {
  EXPECT_EQ(parse("  V2").failure, 400);
  EXPECT_EQ(parse("\x16\x03\x01").failure, 400);
  EXPECT_EQ(parse("GET / HTTP/1.1\n").failure, 400);
}

TEST(RequestParser, MalformedChunksFail) {
  const std::string head = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (const char* body :
       {"x\r\n", "\r\n", "3\nabc", "3\r\nabcd\r\n", "3\r\nabc\n", "-3\r\n", "1000000000000000\r\n", "0\r\n\n", "0\r\nT: v\n"})
    EXPECT_EQ(parse(head + body).stage, kFailed) << body;
}

TEST(RequestParser, ALineMayContinueTheOneBeforeItHoweverLong) {
  for (const std::size_t bytes : {1u, 4'000u, 4'095u, 4'096u, 5'000u, 7'900u}) {
    const std::string value(bytes, 'a');
    const Parsed p =
        parse("GET / HTTP/1.1\r\nAuthorization: " + value + " \r\n\t b\r\n \r\n  c:d\r\nExpect: 100-continue\r\n\r\n");
    ASSERT_EQ(p.stage, kComplete) << bytes;
    EXPECT_EQ(p.authorization, value + " b c:d") << bytes;
    EXPECT_TRUE(p.expect) << bytes;
  }
  for (const char* head : {"GET / HTTP/1.1\r\n A: b\r\n\r\n", "GET / HTTP/1.1\r\n \r\n\r\n", "GET /\r\n HTTP/1.1\r\n\r\n",
                           "GET / HTTP/1.1\r\nA\r\n : b\r\n\r\n"}) {
    EXPECT_EQ(parse(head).stage, kFailed) << head;
    EXPECT_EQ(parse(head).failure, 400) << head;
  }
}

TEST(RequestParser, AHeadBeyondTheLimitFailsWith431HoweverItArrives) {
  const std::string target(9'000, 'a');
  const std::string text = "GET /" + target + " HTTP/1.1\r\n\r\n";
  EXPECT_EQ(parse(text).failure, 431);
  EXPECT_EQ(parse(text, {0}).failure, 431);
  EXPECT_EQ(parse(text, {99}).failure, 431);
  EXPECT_EQ(parse("GET / HTTP/1.1\r\nA: " + std::string(9'000, 'b') + "\r\n\r\n").failure, 431);
}

TEST(RequestParser, FramingWithoutDataEnds) {
  const std::string head = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
  EXPECT_EQ(parse(head + "1;" + std::string(10'000, 'x')).stage, kFailed);
  std::string trailers = "0\r\n";
  for (int i = 0; i < 3'000; ++i) trailers += "T: v\r\n";
  EXPECT_EQ(parse(head + trailers).stage, kFailed);
  std::string small;
  for (int i = 0; i < 3'000; ++i) small += "1\r\nx\r\n";
  EXPECT_EQ(parse(head + small + "0\r\n\r\n").body.size(), 3'000u);
}

rc::Gen<std::string> requests() {
  return rc::gen::exec([] {
    const auto pick = [](std::vector<std::string> from) { return *rc::gen::elementOf(from); };
    std::string text = pick({"", "\r\n"}) + pick({"GET", "POST", "OPTIONS"}) + " " +
                       pick({"/ping", "/pub?topic=t", "/", "*", "http://h/x"}) + " HTTP/" + pick({"1.1", "1.0"}) + "\r\n";
    text += pick({"", "Host: a\r\n", "Connection: close\r\n", "X: " + std::string(300, 'y') + "\r\n", "A: b\r\n c\r\n"});
    const std::string body = *rc::gen::container<std::string>(rc::gen::inRange<char>('a', 'f'));
    switch (*rc::gen::inRange(0, 4)) {
      case 0:
        return text + "\r\n";
      case 1:
        return text + "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
      case 2: {
        text += "Transfer-Encoding: chunked\r\n\r\n";
        std::size_t at = 0;
        while (at < body.size()) {
          const std::size_t piece = std::min<std::size_t>(body.size() - at, *rc::gen::inRange<std::size_t>(1, 20));
          char size[8];
          snprintf(size, sizeof size, "%zx", piece);
          text += std::string(size) + pick({"", ";e=v"}) + "\r\n" + body.substr(at, piece) + "\r\n";
          at += piece;
        }
        return text + "0\r\n" + pick({"", "T: v\r\n"}) + "\r\n";
      }
      default: {
        std::string broken = text + "Content-Length: 3\r\n\r\nabc";
        broken[*rc::gen::inRange<std::size_t>(0, broken.size())] = *rc::gen::arbitrary<char>();
        return broken;
      }
    }
  });
}

RC_GTEST_PROP(RequestParserProperty, AnySplitOfARequestParsesTheSame, ()) {
  const std::string text = *requests();
  const auto cuts = *rc::gen::nonEmpty(rc::gen::container<std::vector<std::size_t>>(rc::gen::inRange<std::size_t>(0, 12)));
  RC_ASSERT(parse(text) == parse(text, cuts));
}

RC_GTEST_PROP(RequestParserProperty, AnyBytesEndInAStageWithoutACrash, (const std::string& bytes)) {
  (void)parse("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" + bytes, {0});
  (void)parse(bytes, {2});
}

}  // namespace
}  // namespace rq::http
