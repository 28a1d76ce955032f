#include "core/nsq/command_parser.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace rq::nsq {
namespace {

// Parses with a fixed policy: PUB has a body, ROOM one that gets its room in steps, SKIP one that is dropped. Each step as one
// line of text.
std::vector<std::string> parse(const std::vector<std::string>& pieces) {
  CommandParser parser;
  std::vector<std::string> steps;
  for (const std::string& piece : pieces) {
    parser.push(Slice::copy_of(bytes_of(piece)));
    for (bool more = true; more;) {
      switch (parser.next()) {
        case CommandParser::Step::need_more:
          more = false;
          break;
        case CommandParser::Step::line: {
          std::string text = "line " + std::string(parser.command().name);
          for (std::uint32_t i = 0; i < std::min(2u, parser.command().param_count); ++i) {
            text += "|" + std::string(parser.command().params[i]);
          }
          steps.push_back(text + "#" + std::to_string(parser.command().param_count));
          if (text.starts_with("line PUB") || text.starts_with("line ROOM") || text.starts_with("line SKIP"))
            parser.expect_size();
          break;
        }
        case CommandParser::Step::size:
          steps.push_back("size " + std::to_string(parser.size()));
          if (parser.size() <= 0 || parser.size() > 100'000) return steps;
          if (steps[steps.size() - 2].starts_with("line SKIP")) {
            parser.skip_body();
          } else if (steps[steps.size() - 2].starts_with("line ROOM")) {
            parser.take_body(1);
          } else {
            parser.take_body();
          }
          break;
        case CommandParser::Step::room:
          parser.more_room(parser.room_wanted());
          break;
        case CommandParser::Step::body:
          steps.push_back("body " + std::string(text_of(parser.take().bytes())));
          break;
        case CommandParser::Step::skipped:
          steps.push_back("skipped");
          break;
        case CommandParser::Step::line_too_long:
          steps.push_back("too long");
          break;
      }
    }
  }
  return steps;
}

std::string with_body(const std::string& line, const std::string& body) {
  std::string out = line;
  put32(out, static_cast<std::uint32_t>(body.size()));
  return out + body;
}

using Lines = std::vector<std::string>;

TEST(CommandParser, LinesAreSplitAtSingleSpaces) {
  EXPECT_EQ(parse({"SUB t c\n"}), Lines{"line SUB|t|c#2"});
  EXPECT_EQ(parse({"SUB  t c\n"}), Lines{"line SUB||t#3"});
  EXPECT_EQ(parse({"RDY \n"}), Lines{"line RDY|#1"});
  EXPECT_EQ(parse({"RDY\t1\n"}), Lines{"line RDY\t1#0"});
}

TEST(CommandParser, OneCarriageReturnBeforeTheLineFeedIsRemoved) {
  EXPECT_EQ(parse({"NOP\r\n"}), Lines{"line NOP#0"});
  EXPECT_EQ(parse({"NOP\r\r\n"}), Lines{"line NOP\r#0"});
  EXPECT_EQ(parse({"\r\n"}), Lines{"line #0"});
  EXPECT_EQ(parse({"\n"}), Lines{"line #0"});
}

TEST(CommandParser, ALineOf1024BytesIsTheLongest) {
  EXPECT_EQ(parse({std::string(1'023, 'A') + "\n"}), Lines{"line " + std::string(1'023, 'A') + "#0"});
  EXPECT_EQ(parse({std::string(1'024, 'A') + "\nNOP\n"}), Lines{"too long"});
  EXPECT_EQ(parse({std::string(1'024, 'A')}), Lines{"too long"});
}

TEST(CommandParser, SizesAreSigned) {
  EXPECT_EQ(parse({std::string("PUB t\n\xff\xff\xff\xff", 10)}), (Lines{"line PUB|t#1", "size -1"}));
  EXPECT_EQ(parse({std::string("PUB t\n\x80\0\0\0", 10)}), (Lines{"line PUB|t#1", "size -2147483648"}));
}

TEST(CommandParser, ABodyWithinOneSliceIsAPartOfIt) {
  CommandParser parser;
  const Slice received = Slice::copy_of(bytes_of(with_body("PUB t\n", "hello") + "NOP\n"));
  parser.push(received);
  ASSERT_EQ(parser.next(), CommandParser::Step::line);
  parser.expect_size();
  ASSERT_EQ(parser.next(), CommandParser::Step::size);
  parser.take_body();
  ASSERT_EQ(parser.next(), CommandParser::Step::body);
  const Slice body = parser.take();
  EXPECT_EQ(text_of(body.bytes()), "hello");
  EXPECT_EQ(body.data(), received.data() + 10);
}

TEST(CommandParser, AStraddlingBodyIsCopiedIntoAChunkOfItsSize) {
  CommandParser parser;
  const std::string stream = with_body("PUB t\n", "hello");
  parser.push(Slice::copy_of(bytes_of(std::string_view(stream).substr(0, 12))));
  ASSERT_EQ(parser.next(), CommandParser::Step::line);
  parser.expect_size();
  ASSERT_EQ(parser.next(), CommandParser::Step::size);
  parser.take_body();
  ASSERT_EQ(parser.next(), CommandParser::Step::need_more);
  EXPECT_EQ(text_of(parser.arrived()), "he");
  EXPECT_EQ(parser.awaited(), "PUB");
  parser.push(Slice::copy_of(bytes_of(std::string_view(stream).substr(12))));
  ASSERT_EQ(parser.next(), CommandParser::Step::body);
  const Slice body = parser.take();
  EXPECT_EQ(text_of(body.bytes()), "hello");
  EXPECT_EQ(body.pinned_bytes(), 5u);
}

TEST(CommandParser, ABodyInStepsAsksForNoMoreThanTwiceOfWhatIsThere) {
  CommandParser parser;
  parser.push(Slice::copy_of(bytes_of(with_body("AUTH\n", std::string(5'000, 's')).substr(0, 9 + 100))));
  ASSERT_EQ(parser.next(), CommandParser::Step::line);
  parser.expect_size();
  ASSERT_EQ(parser.next(), CommandParser::Step::size);
  parser.take_body(150);
  EXPECT_EQ(parser.next(), CommandParser::Step::need_more);
  EXPECT_EQ(parser.arrived().size(), 100u);
  parser.push(Slice::copy_of(bytes_of(std::string(900, 's'))));
  ASSERT_EQ(parser.next(), CommandParser::Step::room);
  EXPECT_EQ(parser.room_wanted(), 2'000u);
  parser.more_room(2'000);
  EXPECT_EQ(parser.next(), CommandParser::Step::need_more);
  parser.push(Slice::copy_of(bytes_of(std::string(4'000, 's') + "NOP\n")));
  ASSERT_EQ(parser.next(), CommandParser::Step::room);
  EXPECT_EQ(parser.room_wanted(), 5'000u);
  parser.more_room(5'000);
  ASSERT_EQ(parser.next(), CommandParser::Step::body);
  EXPECT_EQ(text_of(parser.take().bytes()), std::string(5'000, 's'));
  EXPECT_EQ(parser.next(), CommandParser::Step::line);
}

TEST(CommandParser, ASkippedBodyIsFollowedByTheNextCommand) {
  EXPECT_EQ(parse({with_body("SKIP\n", "\n\nNOP\n") + "FIN x\n"}), (Lines{"line SKIP#0", "size 6", "skipped", "line FIN|x#1"}));
}

TEST(CommandParser, ItKnowsWhetherACommandHasBegun) {
  CommandParser parser;
  EXPECT_FALSE(parser.inside_command());
  parser.push(Slice::copy_of(bytes_of("NOP\nNO")));
  EXPECT_EQ(parser.next(), CommandParser::Step::line);
  EXPECT_FALSE(parser.inside_command());
  EXPECT_EQ(parser.next(), CommandParser::Step::need_more);
  EXPECT_TRUE(parser.inside_command());
  EXPECT_EQ(parser.awaited(), "");
}

// Cuts `stream` at the given distances, over and over.
std::vector<std::string> cut(const std::string& stream, const std::vector<std::uint8_t>& distances) {
  std::vector<std::string> pieces;
  std::size_t at = 0, turn = 0;
  while (at < stream.size()) {
    const std::size_t length = distances.empty() ? 1 : 1 + distances[turn++ % distances.size()];
    pieces.push_back(stream.substr(at, length));
    at += pieces.back().size();
  }
  return pieces;
}

RC_GTEST_PROP(CommandParserProperty, AnySplitOfCommandsParsesTheSame,
              (const std::vector<std::string>& bodies, const std::vector<std::uint8_t>& distances)) {
  std::string stream;
  for (std::size_t i = 0; i < bodies.size(); ++i) {
    if (i % 4 == 0) stream += "NOP x y z\r\n";
    if (i % 4 == 1) stream += "FIN 0123456789abcdef\n";
    stream += with_body(i % 3 == 0 ? "SKIP t\n" : i % 3 == 1 ? "ROOM t\n" : "PUB topic\n", bodies[i] + "!");
  }
  RC_ASSERT(parse(cut(stream, distances)) == parse({stream}));
}

RC_GTEST_PROP(CommandParserProperty, AnySplitOfAnyBytesParsesTheSame,
              (const std::string& bytes, const std::vector<std::uint8_t>& distances)) {
  RC_ASSERT(parse(cut("PUB " + bytes, distances)) == parse({"PUB " + bytes}));
}

}  // namespace
}  // namespace rq::nsq
