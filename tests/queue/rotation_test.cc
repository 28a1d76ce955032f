// Sealing a segment: its sidecar is written piece by piece, from memory and at opening alike.
#include <gtest/gtest.h>

#include "core/storage/sidecar.h"
#include "tests/queue/engine_world.h"

namespace rq::queue {
namespace {

const std::string kSegments = "data/topics/74/segments/";

TEST(Rotation, ASidecarOfManyPiecesIsTheSameFromMemoryAndRebuiltFromItsSegment) {
  EngineOptions options;
  options.max_segment_bytes = 500'000;
  options.max_defer_ms = 1ll << 40;
  EngineWorld w(1, options);
  w.shard().check_invariants = false;
  constexpr std::int64_t kFortyDaysMs = 40ll * 86'400'000;
  ASSERT_EQ(w.publish_and_wait("t", {"much later"}, kFortyDaysMs), Code::ok);
  for (int i = 0; i < 22; ++i) ASSERT_EQ(w.publish_and_wait("t", std::vector<std::string>(1'000, "body")), Code::ok);
  const std::string sidecar = kSegments + "segment-00000000000000000001.rqidx";
  const std::string written = w.disk.content(sidecar);
  ASSERT_GT(written.size(), 4 * storage::SidecarPieces::kPieceBytes);
  w.process->kill();
  w.disk.remove(sidecar);
  w.process->start();
  ASSERT_TRUE(w.wait([&] { return w.engine().state() == EngineState::open; }));
  EXPECT_TRUE(w.disk.content(sidecar) == written);
  EXPECT_TRUE(w.disk.durable_content(sidecar) == written);
  EXPECT_EQ(w.stats()[0].message_count, 22'001u);
  w.subscribe("t", "c", 0);
  EXPECT_EQ(w.stats()[0].channels[0].deferred_count, 1u);
}

TEST(Rotation, APowerLossInTheMiddleOfASidecarLosesNothing) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    EngineOptions options;
    options.max_segment_bytes = 500'000;
    EngineWorld w(seed, options);
    w.shard().check_invariants = false;
    for (int i = 0; i < 19; ++i) ASSERT_EQ(w.publish_and_wait("t", std::vector<std::string>(1'000, "body")), Code::ok);
    w.disk.faults.latency_ns_min = w.disk.faults.latency_ns_max = kMillisecond;
    w.publish("t", std::vector<std::string>(2'000, "body"));
    w.world.run_for(static_cast<std::int64_t>(4 + seed) * kMillisecond);
    w.restart(true);
    ASSERT_EQ(w.engine().state(), EngineState::open);
    EXPECT_GE(w.stats()[0].message_count, 19'000u);
  }
}

}  // namespace
}  // namespace rq::queue
