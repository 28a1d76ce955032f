// Log lines: filter, text and JSON (page 31 section 1.9).
#include "io/real/log_sink.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>

namespace rq::test {
namespace {

using io::Level;
using real::LogFilter;
using real::LogFormat;

constexpr WallTime kAt{1'700'000'000'123'456'789};

TEST(LogFilter, TakesALevelOrDirectives) {
  EXPECT_FALSE(LogFilter::parse("").passes(Level::debug));
  EXPECT_TRUE(LogFilter::parse("").passes(Level::info));
  EXPECT_TRUE(LogFilter::parse("debug").passes(Level::debug));
  EXPECT_TRUE(LogFilter::parse("TRACE").passes(Level::debug));
  EXPECT_FALSE(LogFilter::parse("warn").passes(Level::info));
  EXPECT_FALSE(LogFilter::parse("off").passes(Level::error));
  EXPECT_TRUE(LogFilter::parse("warn,rustqueued=debug").passes(Level::debug));
  EXPECT_FALSE(LogFilter::parse("debug,rustqueued=error").passes(Level::warn));
  EXPECT_FALSE(LogFilter::parse("warn,other=debug").passes(Level::info));
}

TEST(LogFilter, MalformedMeansInfo) {
  EXPECT_TRUE(LogFilter::parse("loud").passes(Level::info));
  EXPECT_FALSE(LogFilter::parse("loud").passes(Level::debug));
  EXPECT_FALSE(LogFilter::parse("rustqueued=").passes(Level::debug));
}

TEST(LogLine, TextHasTimeLevelTargetMessageAndFields) {
  EXPECT_EQ(real::format_line(LogFormat::text, kAt, Level::info, "start", "node_id=1 tcp=0.0.0.0:4150"),
            "2023-11-14T22:13:20.123456Z  INFO rustqueued: start node_id=1 tcp=0.0.0.0:4150\n");
}

TEST(LogLine, TextStaysOneLine) {
  EXPECT_EQ(real::format_line(LogFormat::text, kAt, Level::warn, "peer", "name=a\nb"),
            "2023-11-14T22:13:20.123456Z  WARN rustqueued: peer name=a\\x0ab\n");
}

TEST(LogLine, EveryJsonLineParsesAndHasTheFourKeys) {
  const std::pair<std::string_view, std::string_view> lines[] = {
      {"start", "node_id=1 format=7"},
      {"topic removed", "topic=\"a b\" reason=\"quote \\\" and \\\\ inside\""},
      {"odd", "flag key= \"unclosed"},
      {"control", "name=\x01\xff"},
      {"empty", ""},
  };
  for (const auto& [event, fields] : lines) {
    const std::string line = real::format_line(LogFormat::json, kAt, Level::error, event, fields);
    ASSERT_TRUE(line.ends_with('\n'));
    EXPECT_EQ(line.find('\n'), line.size() - 1);
    boost::json::error_code failed;
    const boost::json::value value = boost::json::parse(line, failed);
    ASSERT_FALSE(failed) << line;
    EXPECT_EQ(value.at("timestamp").as_string(), "2023-11-14T22:13:20.123456Z");
    EXPECT_EQ(value.at("level").as_string(), "ERROR");
    EXPECT_EQ(value.at("target").as_string(), "rustqueued");
    EXPECT_EQ(value.at("fields").at("message").as_string(), boost::json::string_view(event.data(), event.size()));
  }
}

TEST(LogLine, JsonFieldsLoseTheirQuotes) {
  const std::string line =
      real::format_line(LogFormat::json, kAt, Level::info, "removed", "topic=\"a b\" reason=\"a \\\" b\" messages=12");
  const boost::json::value value = boost::json::parse(line);
  EXPECT_EQ(value.at("fields").at("topic").as_string(), "a b");
  EXPECT_EQ(value.at("fields").at("reason").as_string(), "a \" b");
  EXPECT_EQ(value.at("fields").at("messages").as_string(), "12");
}

}  // namespace
}  // namespace rq::test
