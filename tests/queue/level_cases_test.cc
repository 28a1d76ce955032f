// What the feature level lets the Engine write (page 20 sections 6.2 and 9).
#include <gtest/gtest.h>

#include <set>

#include "core/storage/wal.h"
#include "tests/queue/engine_world.h"

namespace rq::queue {
namespace {

EngineOptions level(std::uint32_t feature_level) {
  EngineOptions options;
  options.feature_level = feature_level;
  options.max_message_bytes = 100u << 20;
  return options;
}

std::set<int> wal_tags(EngineWorld& w) {
  const std::string wal = w.disk.content("data/topics/74/channels/63.wal");
  std::set<int> tags;
  ConstBuf rest = bytes_of(wal);
  storage::WalCommand command;
  for (std::uint32_t consumed = 0; storage::read_wal_frame(rest, command, consumed) == storage::WalRead::command;
       rest = rest.subspan(consumed))
    tags.insert(static_cast<int>(command.kind));
  return tags;
}

TEST(LevelCases, S_59_ARequeueAndATimeoutUseTheTagsOfTheirLevel) {
  for (const std::uint32_t feature_level : {1u, 2u}) {
    EngineWorld w(59, level(feature_level));
    ASSERT_EQ(w.publish_and_wait("t", {"m"}), Code::ok);
    SubscribeOptions impatient;
    impatient.message_timeout_ms = 1'000;
    const ConsumerId consumer = w.subscribe("t", "c", 1, impatient);
    ASSERT_TRUE(w.wait_deliveries(1));
    ASSERT_EQ(w.engine().requeue(consumer, w.shard().deliveries[0].id, 0, w.now()), Code::ok);
    w.process->poke();
    std::set<int> tags;  // a checkpoint may empty the WAL later
    for (int ms = 0; ms < 1'200; ++ms) {
      w.world.run_for(kMillisecond);
      tags.merge(wal_tags(w));
    }
    EXPECT_EQ(w.shard().timed_out.size(), 1u);
    EXPECT_EQ(tags, (feature_level == 1 ? std::set<int>{2} : std::set<int>{6, 7}));
  }
}

// A record with two messages whose payload has exactly that length.
std::vector<std::string> batch_of(std::uint64_t payload_bytes) {
  const std::uint64_t bodies = payload_bytes - 4 - 2 * 20;
  return {std::string(bodies / 2, 'a'), std::string(bodies - bodies / 2, 'b')};
}

TEST(LevelCases, S_61_ARecordAboveTheLevelsPayloadIsRefusedAndTheFileUnchanged) {
  const std::string log = "data/topics/74/segments/segment-00000000000000000001.rqlog";
  {
    EngineWorld w(61, level(1));
    ASSERT_EQ(w.publish_and_wait("t", {"m"}), Code::ok);
    const std::string before = w.disk.content(log);
    EXPECT_EQ(w.publish_and_wait("t", batch_of(75'497'473)), Code::batch_too_large);
    EXPECT_EQ(w.publish_and_wait("t", {std::string(75'497'449, 'x')}), Code::batch_too_large);
    EXPECT_EQ(w.disk.content(log), before);
    EXPECT_EQ(w.publish_and_wait("t", batch_of(75'497'472)), Code::ok);
  }
  EngineOptions options = level(2);
  options.max_segment_bytes = 200u << 20;
  EngineWorld w(61, options);
  EXPECT_EQ(w.publish_and_wait("t", batch_of(167'772'161)), Code::batch_too_large);
  EXPECT_EQ(w.publish_and_wait("t", batch_of(167'772'160)), Code::ok);
  EXPECT_EQ(w.disk.content(log).size(), 48u + 167'772'160u);
}

}  // namespace
}  // namespace rq::queue
