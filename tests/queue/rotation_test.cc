// Sealing a segment: its sidecar is written piece by piece, from memory and at opening alike.
#include <gtest/gtest.h>

#include "core/storage/sidecar.h"
#include "tests/queue/engine_world.h"

namespace rq::queue {
namespace {

const std::string kSegments = "data/topics/74/segments/";

TEST(Rotation, ASidecarOfManyPiecesIsTheSameFromMemoryAndRebuiltFromItsSegment) {
  EngineOptions options;
  options.max_segment_bytes = 1'750'000;
  options.max_defer_ms = 1ll << 40;
  EngineWorld w(1, options);
  w.shard().check_invariants = false;
  constexpr std::int64_t kFortyDaysMs = 40ll * 86'400'000;
  ASSERT_EQ(w.publish_and_wait("t", {"much later"}, kFortyDaysMs), Code::ok);
  for (int i = 0; i < 75; ++i) ASSERT_EQ(w.publish_and_wait("t", std::vector<std::string>(1'000, "body")), Code::ok);
  const std::string sidecar = kSegments + "segment-00000000000000000001.rqidx";
  const std::string written = w.disk.content(sidecar);
  ASSERT_GT(written.size(), 4 * storage::SidecarPieces::kPieceBytes);
  w.process->kill();
  w.disk.remove(sidecar);
  w.process->start();
  ASSERT_TRUE(w.wait([&] { return w.engine().state() == EngineState::open; }));
  EXPECT_TRUE(w.disk.content(sidecar) == written);
  EXPECT_TRUE(w.disk.durable_content(sidecar) == written);
  EXPECT_EQ(w.stats()[0].message_count, 75'001u);
  w.subscribe("t", "c", 0);
  EXPECT_EQ(w.stats()[0].channels[0].deferred_count, 1u);
}

// 19,000 messages in a segment that has no room for 2,000 more.
struct NearlyFull : EngineWorld {
  NearlyFull() : EngineWorld(1, small_segments()) {
    shard().check_invariants = false;
    for (int i = 0; i < 19; ++i) EXPECT_EQ(publish_and_wait("t", batch(1'000)), Code::ok);
  }
  static std::vector<std::string> batch(std::size_t messages) { return std::vector<std::string>(messages, "body"); }
  static EngineOptions small_segments() {
    EngineOptions options;
    options.max_segment_bytes = 500'000;
    return options;
  }
};

// Every call takes a millisecond, so the loop cuts between any two of them, until the publish that waits is answered before the
// cut.
TEST(Rotation, APowerLossBetweenAnyTwoStepsLosesNothingAndLeavesTheSameSidecar) {
  std::string sidecar;
  int cuts = 0;
  for (bool answered = false; !answered; ++cuts) {
    NearlyFull w;
    w.disk.faults.latency_ns_min = w.disk.faults.latency_ns_max = kMillisecond;
    const std::uint64_t waiter = w.publish("t", w.batch(2'000));
    w.world.run_for(cuts * kMillisecond);
    answered = w.shard().published.contains(waiter);
    const bool sealed = w.disk.durable_content(kSegments + "segment-00000000000000000001.rqidx").size() > 0;
    w.restart(true);
    ASSERT_EQ(w.engine().state(), EngineState::open) << cuts;
    EXPECT_GE(w.stats()[0].message_count, answered ? 21'000u : 19'000u) << cuts;
    const std::string content = w.disk.content(kSegments + "segment-00000000000000000001.rqidx");
    if (sidecar.empty()) sidecar = content;
    EXPECT_TRUE(content == sidecar || (content.empty() && !sealed)) << cuts;
    ASSERT_LT(cuts, 100);
  }
  EXPECT_GT(cuts, 15);
  EXPECT_GT(sidecar.size(), storage::SidecarPieces::kPieceBytes);
}

// Page 30 section 0.1: a rotation holds PUBLISH to its last completion, and its sidecar is part of it (section 2.6).
TEST(Rotation, NothingIsAppendedBeforeTheSidecarIsDurable) {
  NearlyFull w;
  w.disk.faults.latency_ns_min = w.disk.faults.latency_ns_max = kMillisecond;
  const std::uint64_t waiter = w.publish("t", w.batch(2'000));
  const std::string next = kSegments + "segment-00000000000000000020.rqlog";
  ASSERT_TRUE(w.wait([&] { return !w.disk.content(next).empty(); }));
  EXPECT_FALSE(w.shard().published.contains(waiter));
  EXPECT_GT(w.disk.durable_content(kSegments + "segment-00000000000000000001.rqidx").size(), storage::SidecarPieces::kPieceBytes);
}

// Page 20 U5: the next file is created exclusively. Whatever stands there was not put there by this Broker and is not
// overwritten.
TEST(Rotation, AFileWhereTheNextSegmentBelongsIsAFaultAndStaysAsItIs) {
  NearlyFull w;
  const std::string next = kSegments + "segment-00000000000000000020.rqlog";
  w.disk.put(next, "somebody's");
  EXPECT_EQ(w.publish_and_wait("t", w.batch(2'000)), Code::storage);
  ASSERT_NE(w.engine().fault(), nullptr);
  EXPECT_EQ(w.engine().fault()->file, next);
  EXPECT_EQ(w.disk.content(next), "somebody's");
}

}  // namespace
}  // namespace rq::queue
