// Scrub of sealed segments, and collection beside it (page 30 section 6.2, page 20 section 8.6).
#include <gtest/gtest.h>

#include "tests/queue/engine_world.h"

namespace rq::queue {
namespace {

const std::string kSegments = "data/topics/74/segments/";  // of Topic "t"
const std::string kFirst = kSegments + "segment-00000000000000000001";

EngineOptions scrubbing() {
  EngineOptions options;
  options.max_segment_bytes = 4096;
  options.maintenance_startup_delay_seconds = 0;
  options.bootstrap_retention_seconds = 1;
  return options;
}

// Ten messages a segment.
void fill(EngineWorld& w, int messages, std::string_view topic = "t") {
  for (int i = 0; i < messages; ++i) ASSERT_EQ(w.publish_and_wait(topic, {std::to_string(i) + std::string(300, 'x')}), Code::ok);
}

ScrubDone scrub_and_wait(EngineWorld& w) {
  const std::uint64_t waiter = w.scrub();
  EXPECT_TRUE(w.wait([&] { return w.scrubbed(waiter) != nullptr; }, 600 * kSecond));
  const ScrubDone* done = w.scrubbed(waiter);
  return done == nullptr ? ScrubDone{} : *done;
}

TEST(Scrub, CountsTheRecordsOfSealedSegmentsOfAllTopicsButNotOfActiveOnes) {
  EngineWorld w(1, scrubbing());
  ASSERT_EQ(w.admin(Admin::create_channel, "t", "c"), Code::ok);
  fill(w, 40);
  fill(w, 25, "u");
  fill(w, 3, "v");
  const ScrubDone done = scrub_and_wait(w);
  EXPECT_TRUE(done.outcome.ok()) << done.outcome.detail;
  EXPECT_EQ(done.records, 50u);
  w.restart(true);  // from sidecars
  EXPECT_EQ(scrub_and_wait(w).records, 50u);
}

TEST(Scrub, AFlippedBitAnywhereInASealedSegmentOrItsSidecarIsAFaultThatNamesFileAndOffset) {
  for (const std::string suffix : {".rqlog", ".rqidx"}) {
    for (std::uint64_t at = 0; at < 1'700; at += 97) {
      EngineWorld w(at + 1, scrubbing());
      ASSERT_EQ(w.admin(Admin::create_channel, "t", "c"), Code::ok);
      fill(w, 24);
      if (suffix == ".rqidx" && at >= w.disk.content(kFirst + suffix).size()) break;
      ASSERT_TRUE(w.disk.rot(kFirst + suffix, at)) << suffix << at;
      const ScrubDone done = scrub_and_wait(w);
      EXPECT_EQ(done.outcome.code, Code::storage) << suffix << " " << at;
      EXPECT_EQ(w.engine().state(), EngineState::faulted);
      ASSERT_NE(w.engine().fault(), nullptr);
      EXPECT_NE(w.engine().fault()->file.find("segment-00000000000000000001" + suffix), std::string::npos);
      EXPECT_TRUE(w.engine().fault()->offset.has_value());
    }
  }
}

TEST(Scrub, Q_64_AFlippedBitInASealedBodyIsAFaultThatNamesThePosition) {
  EngineWorld w(64, scrubbing());
  ASSERT_EQ(w.admin(Admin::create_channel, "t", "c"), Code::ok);
  fill(w, 24);
  const std::string content = w.disk.content(kFirst + ".rqlog");
  const std::size_t third = content.find("2xxx");
  ASSERT_NE(third, std::string::npos);
  ASSERT_TRUE(w.disk.rot(kFirst + ".rqlog", third + 20));
  const ScrubDone done = scrub_and_wait(w);
  EXPECT_EQ(done.outcome.code, Code::storage);
  EXPECT_NE(done.outcome.detail.find("(position 3)"), std::string::npos) << done.outcome.detail;
  EXPECT_NE(done.outcome.detail.find("at offset"), std::string::npos) << done.outcome.detail;
  EXPECT_EQ(w.publish_and_wait("t", {"m"}), Code::storage);
}

TEST(Scrub, Q_60_Q_64_CollectionWaitsForTheLeaseAndTheScrubEndsWithoutAFault) {
  EngineOptions options = scrubbing();
  options.scrub_bytes_per_second = 500;
  EngineWorld w(60, options);
  ASSERT_EQ(w.admin(Admin::create_channel, "t", "c"), Code::ok);
  fill(w, 40);
  const std::uint64_t waiter = w.scrub();
  ASSERT_EQ(w.admin(Admin::empty_channel, "t", "c"), Code::ok);
  // The first segment is read within 8 s; ticks of the collection pass meanwhile.
  w.world.run_for(7 * kSecond);
  EXPECT_EQ(w.scrubbed(waiter), nullptr);
  EXPECT_EQ(w.stats().at(0).message_count, 40u);
  EXPECT_TRUE(w.disk.exists(kFirst + ".rqlog"));
  // The second one is under way; what was given back goes, the rest stays.
  ASSERT_TRUE(w.wait([&] { return !w.disk.exists(kFirst + ".rqlog"); }));
  EXPECT_EQ(w.scrubbed(waiter), nullptr);
  ASSERT_TRUE(w.wait([&] { return w.scrubbed(waiter) != nullptr; }));
  EXPECT_TRUE(w.scrubbed(waiter)->outcome.ok());
  EXPECT_EQ(w.scrubbed(waiter)->records, 30u);
  EXPECT_TRUE(w.wait([&] { return w.stats().at(0).message_count == 0; }));
}

TEST(Scrub, ATopicIsDeletedAndMadeAgainWhileItsSegmentsAreRead) {
  EngineOptions options = scrubbing();
  options.scrub_bytes_per_second = 500;
  EngineWorld w(3, options);
  fill(w, 40);
  fill(w, 24, "u");
  const std::uint64_t waiter = w.scrub();
  w.world.run_for(3 * kSecond);
  ASSERT_EQ(w.admin(Admin::delete_topic, "t"), Code::ok);
  fill(w, 30);
  ASSERT_TRUE(w.wait([&] { return w.scrubbed(waiter) != nullptr; }, 200 * kSecond));
  EXPECT_TRUE(w.scrubbed(waiter)->outcome.ok()) << w.scrubbed(waiter)->outcome.detail;
}

TEST(Scrub, RunsByItselfAfterTheStartupDelayAndThenAtItsInterval) {
  EngineOptions options = scrubbing();
  options.maintenance_startup_delay_seconds = 30;
  options.scrub_interval_seconds = 100;
  EngineWorld w(4, options);
  ASSERT_EQ(w.admin(Admin::create_channel, "t", "c"), Code::ok);
  fill(w, 24);
  w.world.run_for(25 * kSecond);
  EXPECT_EQ(w.engine().metrics().scrub_us.count, 0u);
  w.world.run_for(10 * kSecond);
  EXPECT_EQ(w.engine().metrics().scrub_us.count, 1u);
  w.world.run_for(100 * kSecond);
  EXPECT_EQ(w.engine().metrics().scrub_us.count, 2u);
  ASSERT_TRUE(w.disk.rot(kFirst + ".rqlog", 100));
  w.world.run_for(100 * kSecond);
  EXPECT_EQ(w.engine().state(), EngineState::faulted);
}

TEST(Scrub, ReadsNoFasterThanItsRate) {
  EngineOptions options = scrubbing();
  options.scrub_bytes_per_second = 1'000;
  EngineWorld w(5, options);
  ASSERT_EQ(w.admin(Admin::create_channel, "t", "c"), Code::ok);
  fill(w, 100);
  const Instant before = w.world.now();
  ASSERT_TRUE(scrub_and_wait(w).outcome.ok());
  EXPECT_GT(w.world.now() - before, 25 * kSecond);
}

TEST(Scrub, AStopEndsAPassAtOnce) {
  EngineOptions options = scrubbing();
  options.scrub_bytes_per_second = 10;
  EngineWorld w(6, options);
  fill(w, 40);
  const std::uint64_t waiter = w.scrub();
  w.world.run_for(3 * kSecond);
  EXPECT_TRUE(w.stop());
  ASSERT_NE(w.scrubbed(waiter), nullptr);
  EXPECT_EQ(w.scrubbed(waiter)->outcome.code, Code::exiting);
}

}  // namespace
}  // namespace rq::queue
