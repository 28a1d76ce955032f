// The parts of rustqueue-bench without connections: histogram, schedule, number ranges, bodies, frames, options.
#include <gtest/gtest.h>

#include "bench/load/body.h"
#include "bench/load/frames.h"
#include "bench/load/id_ranges.h"
#include "bench/load/latency.h"
#include "bench/load/options.h"
#include "bench/load/schedule.h"
#include "core/base/random.h"
#include "core/storage/names.h"

namespace rq::load {
namespace {

TEST(LoadLatency, ValuesUpTo2047AreExact) {
  Latency latency;
  for (std::uint64_t us = 1; us <= 1000; ++us) latency.record_us(us);
  EXPECT_EQ(latency.value_at(500), 500u);
  EXPECT_EQ(latency.value_at(990), 990u);
  EXPECT_EQ(latency.value_at(999), 999u);
  EXPECT_EQ(latency.value_at(1000), 1000u);
  EXPECT_EQ(latency.max_us(), 1000u);
}

TEST(LoadLatency, EveryValueComesBackWithThreeDigitsAndNeverTooLow) {
  Random random(1);
  for (int i = 0; i < 20'000; ++i) {
    const std::uint64_t us = 1 + random.below(Latency::kMaxUs >> random.below(26));
    Latency latency;
    latency.record_us(us);
    latency.record_us(Latency::kMaxUs);  // so that the maximum does not cut the value
    EXPECT_GE(latency.value_at(500), us);
    EXPECT_LE(latency.value_at(500), us + us / 1000);
  }
}

TEST(LoadLatency, ValuesOutsideAreClampedAndAnEmptyOneIsZero) {
  Latency latency;
  EXPECT_EQ(latency.value_at(990), 0u);
  EXPECT_EQ(latency.max_us(), 0u);
  latency.record_us(0);
  EXPECT_EQ(latency.value_at(1000), 1u);
  latency.record_us(90'000'000);
  EXPECT_EQ(latency.max_us(), Latency::kMaxUs);
  EXPECT_EQ(latency.value_at(1000), Latency::kMaxUs);
}

TEST(LoadLatency, OneSampleInAThousandShowsAboveP999Only) {
  Latency latency;
  for (int i = 0; i < 9'990; ++i) latency.record_us(100);
  for (int i = 0; i < 10; ++i) latency.record_us(1'000'000);
  EXPECT_EQ(latency.value_at(999), 100u);
  EXPECT_EQ(latency.value_at(1000), 1'000'000u);
}

TEST(LoadSchedule, ArrivalsAreEvenAndDoNotDrift) {
  const Schedule third(3, 1);
  EXPECT_EQ(third.due_ns(0), 0);
  EXPECT_EQ(third.due_ns(1), 333'333'333);
  EXPECT_EQ(third.due_ns(3'000'000), 1'000'000 * kSecond);
  const Schedule batches(1'000, 64);
  EXPECT_EQ(batches.due_ns(1), 64 * kMillisecond);
  EXPECT_EQ(batches.commands_within(1), 16u);  // at 0, 64, ..., 960 ms
  EXPECT_EQ(Schedule(100, 1).commands_within(5), 500u);
}

TEST(LoadIdRanges, L_19_TenMillionNumbersInOrderAreOneRange) {
  IdRanges ids;
  for (std::uint64_t id = 0; id < 10'000'000; ++id) ASSERT_TRUE(ids.insert(id));
  EXPECT_EQ(ids.ranges(), 1u);
  EXPECT_EQ(ids.count(), 10'000'000u);
  EXPECT_FALSE(ids.insert(1'234'567));
  EXPECT_EQ(ids.count(), 10'000'000u);
}

TEST(LoadIdRanges, NumbersInAnyOrderAreCountedOnce) {
  Random random(2);
  IdRanges ids;
  std::vector<bool> seen(2'000);
  std::uint64_t distinct = 0;
  for (int i = 0; i < 20'000; ++i) {
    const std::uint64_t id = random.below(seen.size());
    EXPECT_EQ(ids.insert(id), !seen[id]);
    if (!seen[id]) ++distinct;
    seen[id] = true;
    EXPECT_EQ(ids.count(), distinct);
  }
  std::size_t ranges = 0;
  for (std::size_t i = 0; i < seen.size(); ++i) ranges += seen[i] && (i == 0 || !seen[i - 1]) ? 1 : 0;
  EXPECT_EQ(ids.ranges(), ranges);
}

TEST(LoadIdRanges, TheEndsOfTheNumbersAreNumbersToo) {
  IdRanges ids;
  EXPECT_TRUE(ids.insert(~std::uint64_t{0}));
  EXPECT_TRUE(ids.insert(0));
  EXPECT_TRUE(ids.insert(~std::uint64_t{0} - 1));
  EXPECT_FALSE(ids.insert(~std::uint64_t{0}));
  EXPECT_EQ(ids.ranges(), 2u);
}

TEST(LoadBody, ABodyIsRecognisedByNonceNumberAndPattern) {
  for (const std::uint32_t size : {1u, 7u, 8u, 15u, 16u, 17u, 1024u}) {
    const Body body(size, 0x1122334455667788);
    std::string text = body.model();
    ASSERT_EQ(text.size(), size);
    body.write_number(reinterpret_cast<std::byte*>(text.data()), 77);
    std::uint64_t number = 5;
    EXPECT_EQ(body.look(bytes_of(text), number), Body::Kind::ours) << size;
    EXPECT_EQ(number, size >= 8 ? 77u : 5u);
    EXPECT_EQ(body.look(bytes_of(text + "x"), number), Body::Kind::altered);
    if (size != 8 && size != 16) {
      text.back() = static_cast<char>(text.back() ^ 1);
      EXPECT_EQ(body.look(bytes_of(text), number), Body::Kind::altered) << size;
    }
    const Body other(size, 99);
    EXPECT_EQ(other.look(bytes_of(body.model()), number) == Body::Kind::foreign, size >= 16);
  }
}

TEST(LoadBody, CommandsAreTheWiresPubAndMpub) {
  const Body body(8, 0);
  Command one("t", body, 1);
  EXPECT_EQ(text_of(one.set(0x0102, 1)), std::string("PUB t\n\0\0\0\x08\0\0\0\0\0\0\x01\x02", 18));
  Command many("t", body, 2);
  const std::string two("MPUB t\n\0\0\0\x1c\0\0\0\x02\0\0\0\x08\0\0\0\0\0\0\0\x05\0\0\0\x08\0\0\0\0\0\0\0\x06", 39);
  EXPECT_EQ(text_of(many.set(5, 2)), two);
  EXPECT_EQ(text_of(many.set(7, 1)), std::string("MPUB t\n\0\0\0\x10\0\0\0\x01\0\0\0\x08\0\0\0\0\0\0\0\x07", 27));
  EXPECT_EQ(text_of(many.set(5, 2)), two);
}

TEST(LoadFrames, FramesComeOutWholeHoweverTheBytesArrive) {
  const std::string stream(
      "\0\0\0\x06\0\0\0\0OK\0\0\0\x04\0\0\0\x02\0\0\0\x07\0\0\0\x01"
      "abc",
      29);
  for (std::size_t piece = 1; piece <= stream.size(); ++piece) {
    Frames frames;
    std::string seen;
    for (std::size_t at = 0; at < stream.size(); at += piece)
      ASSERT_TRUE(frames.feed(bytes_of(std::string_view(stream).substr(at, piece)), [&](const Frame& frame) {
        seen += std::to_string(frame.type) + std::string(text_of(frame.payload)) + ";";
      }));
    EXPECT_EQ(seen, "0OK;2;1abc;") << piece;
    EXPECT_FALSE(frames.mid_frame());
  }
}

TEST(LoadFrames, ASizeThatMakesNoSenseIsRefused) {
  for (const std::string& stream :
       {std::string("\0\0\0\x03\0\0\0\0", 8), std::string("\x7f\0\0\0\0\0\0\0", 8), std::string("HTTP/1.1")}) {
    for (std::size_t piece : {1u, 8u}) {
      Frames frames;
      bool good = true;
      for (std::size_t at = 0; at < stream.size() && good; at += piece)
        good = frames.feed(bytes_of(std::string_view(stream).substr(at, piece)), [](const Frame&) { FAIL(); });
      EXPECT_FALSE(good) << stream;
    }
  }
}

TEST(LoadOptionsCheck, DefaultsAreThoseOfTheSpecification) {
  const LoadOptions o;
  EXPECT_EQ(o.address, "127.0.0.1:4150");
  EXPECT_EQ(o.topic, "benchmark");
  EXPECT_EQ(o.messages, 100'000u);
  EXPECT_EQ(o.message_bytes, 1'024u);
  EXPECT_EQ(o.producers, 16u);
  EXPECT_EQ(o.consumers, 16u);
  EXPECT_EQ(o.batch_size, 1u);
  EXPECT_EQ(o.warmup_seconds, 0u);
  EXPECT_EQ(o.duration_seconds, std::nullopt);
  EXPECT_EQ(o.rate, std::nullopt);
  EXPECT_EQ(o.drain_timeout_seconds, 300u);
  EXPECT_FALSE(o.reuse_topic);
  EXPECT_FALSE(o.fixed_rate());
}

TEST(LoadOptionsCheck, DefaultsAreAcceptedAndEachRuleNamesItsFlag) {
  EXPECT_EQ(refusal({}), std::nullopt);
  const auto refused = [](const char* flag, auto change) {
    LoadOptions options;
    change(options);
    const auto why = refusal(options);
    ASSERT_TRUE(why.has_value()) << flag;
    EXPECT_NE(why->find(flag), std::string::npos) << *why;
  };
  refused("--messages", [](LoadOptions& o) { o.messages = 0; });
  refused("--message-bytes", [](LoadOptions& o) { o.message_bytes = 0; });
  refused("--producers", [](LoadOptions& o) { o.producers = 0; });
  refused("--consumers", [](LoadOptions& o) { o.consumers = 50'001; });
  refused("--consumers together", [](LoadOptions& o) { o.consumers = 50'000; });
  refused("--batch-size", [](LoadOptions& o) { o.batch_size = 0; });
  refused("--batch-size", [](LoadOptions& o) { o.batch_size = 200'000; });
  refused("--duration-seconds", [](LoadOptions& o) { o.duration_seconds = 0; });
  refused("--drain-timeout-seconds", [](LoadOptions& o) { o.drain_timeout_seconds = 0; });
  refused("--rate", [](LoadOptions& o) { o.rate = 0; });
  refused("--rate", [](LoadOptions& o) { o.rate = 15; });  // 16 producers
  refused("--messages", [](LoadOptions& o) {
    o.messages = kMessagesMax;
    o.rate = 16;
  });
  refused("--topic", [](LoadOptions& o) { o.topic = "a b"; });
  refused("--topic", [](LoadOptions& o) { o.topic = std::string(65, 'a'); });
  refused("memory", [](LoadOptions& o) { o.message_bytes = kMessageBytesMax; });
  refused("--reuse-topic", [](LoadOptions& o) {
    o.reuse_topic = true;
    o.message_bytes = 15;
  });
  LoadOptions short_bodies;
  short_bodies.message_bytes = 15;
  EXPECT_EQ(refusal(short_bodies), std::nullopt);
  short_bodies.reuse_topic = true;
  short_bodies.consumers = 0;
  EXPECT_EQ(refusal(short_bodies), std::nullopt);
  LoadOptions timed;
  timed.messages = 0;  // ignored with a duration
  timed.duration_seconds = 1;
  EXPECT_EQ(refusal(timed), std::nullopt);
  LoadOptions least;
  least.rate = 16;
  least.consumers = 0;
  EXPECT_EQ(refusal(least), std::nullopt);
}

TEST(LoadNames, ASuffixIsAddedAndTheNameFits64Bytes) {
  LoadOptions options;
  EXPECT_EQ(names_for(options, "u1", false).topic, "benchmark-u1");
  EXPECT_EQ(names_for(options, "u1", false).channel, "bench-u1");
  EXPECT_EQ(names_for(options, "u1", true).topic, "benchmark-u1-warmup");
  options.topic = std::string(64, 'a');
  EXPECT_EQ(names_for(options, "u1", false).topic, std::string(61, 'a') + "-u1");
  options.topic = std::string(54, 'a') + "#ephemeral";
  EXPECT_TRUE(storage::valid_name(names_for(options, std::string(20, 'u'), true).topic));
  EXPECT_TRUE(names_for(options, "u1", true).topic.ends_with("#ephemeral"));
  options.reuse_topic = true;
  EXPECT_EQ(names_for(options, "u1", false).topic, options.topic);
  EXPECT_NE(names_for(options, "u1", true).topic, options.topic);
}

}  // namespace
}  // namespace rq::load
