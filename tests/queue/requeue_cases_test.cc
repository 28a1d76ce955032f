// REQ and delayed messages through the whole engine: limits, and what old checkpoints say about them.
#include <gtest/gtest.h>

#include "core/nsq/numbers.h"
#include "core/storage/checkpoint.h"
#include "core/storage/paths.h"
#include "core/storage/record.h"
#include "tests/queue/engine_world.h"

namespace rq::queue {
namespace {

std::string path_on_disk(EngineWorld& w, std::string_view end) {
  for (const std::string& path : w.disk.files())
    if (path.ends_with(end)) return path;
  return {};
}

// In the form of D-07: a negative delay is refused where the protocol reads it, a long one is clamped.
TEST(RequeueCases, Q_31_ADelayAboveOneHourIsClampedAndANegativeOneIsAnError) {
  EXPECT_FALSE(nsq::parse_number("-1").has_value());
  EngineWorld w(31);
  const ConsumerId consumer = w.subscribe("t", "c", 1);
  ASSERT_EQ(w.publish_and_wait("t", {"a"}), Code::ok);
  ASSERT_TRUE(w.wait_deliveries(1));
  const Instant at = w.now().mono;
  ASSERT_EQ(w.engine().requeue(consumer, w.shard().deliveries[0].id, 36'000'000, w.now()), Code::ok);
  w.process->poke();
  w.world.run_for(3'600 * kSecond - 1 - (w.now().mono - at));
  EXPECT_EQ(w.shard().deliveries.size(), 1u);
  ASSERT_TRUE(w.wait([&] { return w.shard().deliveries.size() == 2; }, 100 * kMillisecond));
  EXPECT_EQ(w.shard().deliveries[1].attempts, 2u);
}

TEST(RequeueCases, Q_40_OldScanEntriesAreDroppedAtOpeningAndRequeueTargetsStay) {
  constexpr std::size_t kDelayed = 10'000;
  EngineWorld w(40);
  w.shard().check_invariants = false;
  ConsumerId consumer = w.subscribe("t", "c", 3);
  ASSERT_EQ(w.publish_and_wait("t", {"a", "b", "c"}), Code::ok);
  ASSERT_TRUE(w.wait_deliveries(3));
  for (const Delivery& delivery : w.shard().deliveries)
    ASSERT_EQ(w.engine().requeue(consumer, delivery.id, 300'000, w.now()), Code::ok);
  ASSERT_TRUE(w.wait([&] { return w.shard().commands.size() == 3; }));
  ASSERT_EQ(w.publish_and_wait("t", std::vector<std::string>(kDelayed, "later"), 600'000), Code::ok);
  w.engine().unsubscribe(consumer, w.now());
  ASSERT_TRUE(w.stop());

  // What a release before 0.10.1 left: the deadline of every delayed message that its scan had looked past.
  const std::string segment = w.disk.content(path_on_disk(w, storage::segment_file_name(1)));
  storage::RecordHeader header;
  ConstBuf payload;
  ConstBuf rest = bytes_of(segment);
  while (storage::scan_record(rest, header, payload) == storage::RecordScan::record) rest = rest.subspan(header.encoded_bytes());
  const std::string path = path_on_disk(w, ".checkpoint");
  auto checkpoint = storage::decode_checkpoint(bytes_of(w.disk.content(path)));
  ASSERT_TRUE(checkpoint.has_value());
  ASSERT_EQ(checkpoint->channel.requeued_until_ms.size(), 3u);
  const std::map<Position, std::int64_t> targets = checkpoint->channel.requeued_until_ms;
  for (Position position = 4; position < 4 + kDelayed; ++position)
    checkpoint->channel.requeued_until_ms[position] = header.available_at_ms;
  w.disk.put(path, storage::encode_checkpoint(checkpoint->channel));

  w.restart();
  w.shard().check_invariants = false;
  const ChannelStats opened = w.stats().at(0).channels.at(0);
  EXPECT_EQ(opened.depth, kDelayed + 3);
  EXPECT_EQ(opened.deferred_count, kDelayed + 3);
  consumer = w.subscribe("t", "c", 2'500);
  w.world.run_for(300 * kSecond);
  ASSERT_EQ(w.shard().deliveries.size(), 3u);
  for (const Delivery& delivery : w.shard().deliveries) EXPECT_EQ(delivery.attempts, 2u);
  w.finish_all();
  w.world.run_for(250 * kSecond);
  EXPECT_TRUE(w.shard().deliveries.empty());
  const ChannelStats waiting = w.stats().at(0).channels.at(0);
  EXPECT_EQ(waiting.deferred_count, kDelayed);

  w.engine().unsubscribe(consumer, w.now());
  ASSERT_TRUE(w.stop());
  checkpoint = storage::decode_checkpoint(bytes_of(w.disk.content(path)));
  ASSERT_TRUE(checkpoint.has_value());
  EXPECT_TRUE(checkpoint->channel.requeued_until_ms.empty());

  // The delayed ones come at their own time.
  w.restart();
  w.shard().check_invariants = false;
  w.subscribe("t", "c", 2'500);
  std::size_t delivered = 0;
  while (delivered < kDelayed) {
    ASSERT_TRUE(w.wait([&] { return !w.shard().deliveries.empty(); }));
    for (const Delivery& delivery : w.shard().deliveries) ASSERT_EQ(delivery.attempts, 1u);
    ASSERT_GE(w.now().wall.ms(), header.available_at_ms);
    delivered += w.shard().deliveries.size();
    w.finish_all();
  }
  EXPECT_EQ(delivered, kDelayed);
  EXPECT_EQ(w.stats().at(0).channels.at(0).depth, 0u);
  EXPECT_EQ(targets.size(), 3u);
}

}  // namespace
}  // namespace rq::queue
