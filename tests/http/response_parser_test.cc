// Responses as bytes arrive: lengths, chunks, bodies that end with the connection, limits, and that the cut changes nothing.
#include "core/http/response_parser.h"

#include <gtest/gtest.h>

namespace rq::http {
namespace {

using Stage = ResponseParser::Stage;

struct Parsed {
  Stage stage;
  int status = 0;
  std::string body;
  bool operator==(const Parsed&) const = default;
};

Parsed parse(std::string_view text, std::size_t piece, bool ends = false, std::uint64_t body_bytes_max = 100) {
  ResponseParser parser(1'024, body_bytes_max);
  for (std::size_t at = 0; at < text.size(); at += piece) parser.feed(bytes_of(text.substr(at, piece)));
  if (ends) parser.end_of_input();
  return {parser.stage(), parser.status(), parser.body()};
}
// The same whatever the pieces.
Parsed parse(std::string_view text, bool ends = false, std::uint64_t body_bytes_max = 100) {
  const Parsed whole = parse(text, text.size(), ends, body_bytes_max);
  for (const std::size_t piece : {1, 2, 3, 7}) {
    const Parsed cut = parse(text, piece, ends, body_bytes_max);
    EXPECT_EQ(cut.stage, whole.stage) << text;
    if (whole.stage != Stage::failed) {
      EXPECT_EQ(cut, whole) << text;
    }
  }
  return whole;
}

TEST(ResponseParser, ReadsBodiesWithALengthInChunksAndToTheEnd) {
  EXPECT_EQ(parse("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcdef"), (Parsed{Stage::complete, 200, "abc"}));
  EXPECT_EQ(parse("HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n"),
            (Parsed{Stage::complete, 200, "abc"}));
  EXPECT_EQ(parse("HTTP/1.0 403\r\n\r\nabc", true), (Parsed{Stage::complete, 403, "abc"}));
  EXPECT_EQ(parse("HTTP/1.1 204 No Content\r\n\r\n"), (Parsed{Stage::complete, 204, ""}));
  EXPECT_EQ(parse("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), (Parsed{Stage::complete, 200, ""}));
  EXPECT_EQ(parse("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx"),
            (Parsed{Stage::complete, 200, "x"}));
}

TEST(ResponseParser, AnEndInTheMiddleIsAFailure) {
  EXPECT_EQ(parse("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab", true).stage, Stage::failed);
  EXPECT_EQ(parse("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n", true).stage, Stage::failed);
  EXPECT_EQ(parse("HTTP/1.1 200 OK\r\n", true).stage, Stage::failed);
  EXPECT_EQ(parse("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab").stage, Stage::body);
}

TEST(ResponseParser, LimitsHoldHoweverTheBodyComes) {
  const std::string full(100, 'x');
  EXPECT_EQ(parse("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n" + full).stage, Stage::complete);
  EXPECT_EQ(parse("HTTP/1.1 200 OK\r\nContent-Length: 101\r\n\r\n").stage, Stage::failed) << "as declared";
  EXPECT_EQ(parse("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n65\r\n" + full + "x\r\n0\r\n\r\n").stage, Stage::failed);
  EXPECT_EQ(parse("HTTP/1.1 200 OK\r\n\r\n" + full + "x", true).stage, Stage::failed);
  EXPECT_EQ(parse("HTTP/1.1 200 OK\r\nX: " + std::string(2'000, 'x')).stage, Stage::failed) << "head";
}

TEST(ResponseParser, WhatIsNoResponseIsAFailure) {
  for (const char* text : {"HTTP/2 200\r\n\r\n", "GET / HTTP/1.1\r\n\r\n", "HTTP/1.1 20x OK\r\n\r\n", "HTTP/1.1 2000\r\n\r\n",
                           "HTTP/1.1 200 OK\r\nno colon\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
                           "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
                           "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n"}) {
    EXPECT_EQ(parse(text).stage, Stage::failed) << text;
  }
}

}  // namespace
}  // namespace rq::http
