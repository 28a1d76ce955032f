// Opening: checkpoints, WALs, lost positions and floors (page 20 sections 6.4 and 8.4).
#include <gtest/gtest.h>

#include "core/storage/recovery.h"
#include "tests/storage/directory.h"

namespace rq::storage::testing {
namespace {

using namespace examples;
using Kind = WalCommand::Kind;

const std::string kWalName = "topics/6576656e7473/channels/776f726b657273.wal";
const std::string kCheckpointName = "topics/6576656e7473/channels/776f726b657273.checkpoint";

const ChannelImage& only_channel(const Opened& opened) {
  RQ_CHECK(opened.ok());
  RQ_CHECK(opened.topic("events").channels.size() == 1);
  return opened.topic("events").channels[0];
}

WalCommand requeue(Kind kind, Position position, std::int64_t until, std::uint16_t attempts, std::uint64_t count = 0) {
  return {kind, position, kFirstId - 1 + position, until, attempts, false, count};
}

TEST(Fence, S_38_PositionsBeyondTheLogAreNotUsedAgain) {
  const auto next_position = [](const ChannelImage& channel) {
    Machine machine;
    put_active(machine);
    put_channel(machine, channel);
    const Opened opened = machine.open();
    RQ_CHECK(opened.ok());
    const TopicImage& topic = opened.topic("events");
    EXPECT_EQ(topic.active.info.base, 3u);  // the tail was sealed
    EXPECT_EQ(machine.content(kManifest), encode_manifest(events_manifest(topic.next_position)));
    EXPECT_TRUE(topic.channels[0].acknowledged.empty());
    EXPECT_TRUE(topic.channels[0].requeued_until_ms.empty());
    EXPECT_TRUE(topic.channels[0].attempts.empty());
    return topic.next_position;
  };
  ChannelImage channel = workers();
  channel.acknowledged = {9};
  EXPECT_EQ(next_position(channel), 10u);
  channel = workers();
  channel.requeued_until_ms = {{11, 5}};
  EXPECT_EQ(next_position(channel), 12u);
  channel = workers();
  channel.attempts = {{20, 1}};
  EXPECT_EQ(next_position(channel), 21u);
  EXPECT_EQ(next_position(workers(6)), 7u);
}

TEST(Fence, TheFenceIsTakenFromTheWalToo) {
  Machine machine;
  put_active(machine);
  put_channel(machine, workers(), frame(finish(8)));
  const Opened opened = machine.open();
  EXPECT_EQ(opened.topic("events").next_position, 9u);
  EXPECT_EQ(only_channel(opened).ack_floor, 0u);
  EXPECT_TRUE(only_channel(opened).acknowledged.empty());
}

TEST(Fence, S_40_TheLastPositionOfAllIsRefused) {
  Machine machine;
  put_active(machine);
  put_channel(machine, workers(UINT64_MAX));
  EXPECT_FALSE(machine.open().ok());
}

TEST(TtlPrefix, S_51_FloorsBehindTheExpiredPrefixAreRaisedDurably) {
  for (const bool clean : {true, false}) {
    Machine machine;
    put_g1(machine);
    if (clean) machine.put(kPaths.lock(), lock_content(1, true));
    Manifest manifest = events_manifest();
    manifest.ttl_discard = true;
    manifest.message_ttl_seconds = 60;
    manifest.expired_through = 2;
    put_manifest(machine, manifest);
    const Opened opened = machine.open();
    EXPECT_EQ(only_channel(opened).ack_floor, 2u);
    EXPECT_EQ(only_channel(opened).wal_commands, 2u);
    const std::string wal = frame(finish(1)) + evict_frame(2);
    EXPECT_EQ(machine.disk.durable_content(kWal), wal);
    EXPECT_EQ(only_channel(opened).wal_bytes, wal.size());
    EXPECT_TRUE(machine.open().repairs.empty());
  }
}

TEST(TtlPrefix, AFullWalBecomesACheckpoint) {
  Machine machine;
  put_g1(machine);
  Manifest manifest = events_manifest();
  manifest.expired_through = 2;
  put_manifest(machine, manifest);
  std::string wal;
  for (std::uint32_t i = 0; i < kWalCommandsMax; ++i) put_wal_frame(wal, finish(1));
  machine.put(kWal, wal);
  const Opened opened = machine.open();
  EXPECT_EQ(only_channel(opened).ack_floor, 2u);
  EXPECT_EQ(only_channel(opened).wal_commands, 0u);
  EXPECT_EQ(machine.disk.durable_content(kWal), "");
  EXPECT_EQ(machine.disk.durable_content(kCheckpoint), encode_checkpoint(workers(2)));
}

TEST(WalFile, S_52_ATornTailIsCutOff) {
  const std::string good = frame(finish(1));
  for (const std::string& tail :
       {std::string(1, 'x'), std::string(11, '\0'), frame(finish(2)).substr(0, 28), good.substr(0, 12)}) {
    Machine machine;
    put_active(machine);
    machine.put(kWal, good + tail);
    const Opened opened = machine.open();
    EXPECT_EQ(only_channel(opened).ack_floor, 1u);
    EXPECT_EQ(only_channel(opened).wal_bytes, good.size());
    EXPECT_EQ(machine.disk.durable_content(kWal), good);
  }
}

TEST(WalFile, S_53_EverythingElseIsRefused) {
  const std::string good = frame(finish(1));
  const auto framed = [](std::string_view body) {
    std::string out;
    put_frame(out, "RCW7", bytes_of(body));
    return out;
  };
  using namespace std::string_literals;
  std::string bad_crc = frame(finish(2));
  bad_crc.back() ^= 1;
  for (const std::string& tail :
       {std::string(12, '\0'), std::string(64, '\0'), bad_crc, framed("\x08xxxxxxxx"),
        framed(std::string(frame(finish(2)).substr(12)) + "x"), framed("\x03\x02"), framed(""), "RCW7\x00\x10\x00\x01zzzz"s}) {
    Machine machine;
    put_active(machine);
    machine.put(kWal, good + tail);
    expect_refused(machine, kWalName, good.size());
  }
}

TEST(WalFile, S_54_SixteenThousandThreeHundredEightyFourCommandsAreAccepted) {
  std::string wal;
  for (std::uint32_t i = 0; i < kWalCommandsMax; ++i) put_wal_frame(wal, requeue(Kind::requeue_counted, 2, 5, 1, i + 1));
  Machine machine;
  put_active(machine);
  machine.put(kWal, wal);
  const Opened opened = machine.open();
  EXPECT_EQ(only_channel(opened).wal_commands, kWalCommandsMax);
  EXPECT_EQ(only_channel(opened).requeue_count, kWalCommandsMax);
  const std::uint64_t bytes = wal.size();
  put_wal_frame(wal, finish(1));
  machine.put(kWal, wal);
  expect_refused(machine, kWalName, bytes);
}

TEST(WalFile, AFrameCutFarBehindTheLastCommandIsStillTorn) {
  std::string wal;
  for (std::uint32_t i = 0; i < kWalCommandsMax; ++i) put_wal_frame(wal, requeue(Kind::requeue_counted, 2, 5, 1, i + 1));
  const std::uint64_t bytes = wal.size();
  wal += "RCW7";
  put32(wal, kWalBodyBytesMax);
  put32(wal, 0);
  wal.append(kWalBodyBytesMax - 1, 'x');
  Machine machine;
  put_active(machine);
  machine.put(kWal, wal);
  ASSERT_TRUE(machine.open().ok());
  EXPECT_EQ(machine.content(kWal).size(), bytes);
}

TEST(WalFile, S_55_AMissingWalIsCreatedAndOneWithoutCheckpointIgnored) {
  Machine machine;
  put_active(machine);
  machine.disk.remove(kWal);
  machine.put(kPaths.wal("events", "other"), frame(finish(1)));
  const Opened opened = machine.open();
  EXPECT_EQ(only_channel(opened).ack_floor, 0u);
  EXPECT_TRUE(machine.disk.exists(kWal));
  EXPECT_EQ(machine.content(kWal), "");
}

TEST(WalFile, S_56_AnOldWalOverANewCheckpointChangesNothing) {
  for (const bool counted : {false, true}) {
    Machine machine;
    put_active(machine);
    ChannelImage channel = workers(1);
    channel.requeued_until_ms = {{2, 1'700'000'005'000}};
    channel.attempts = {{2, 3}};
    channel.requeue_count = 1;
    channel.timeout_count = 2;
    std::string wal = frame(requeue(counted ? Kind::requeue_counted : Kind::requeue, 2, 1'700'000'005'000, 3, 1));
    if (counted) put_wal_frame(wal, {Kind::timeout, 0, 0, 0, 0, false, 2});
    wal += frame(finish(1));
    put_channel(machine, channel, wal);
    const Opened opened = machine.open();
    ChannelImage expected = channel;
    const ChannelImage& found = only_channel(opened);
    EXPECT_EQ(encode_checkpoint(found), encode_checkpoint(expected));
  }
}

TEST(CheckpointFile, S_57_ADefectiveCheckpointIsRefused) {
  std::string bit = kEx5;
  bit[40] ^= 1;
  ChannelImage other = workers();
  other.name = "others";
  for (const std::string& file : {bit, kEx5 + " ", kEx5.substr(0, 5), encode_checkpoint(other), std::string()}) {
    Machine machine;
    put_active(machine);
    machine.put(kCheckpoint, file);
    expect_refused(machine, kCheckpointName, std::nullopt);
  }
}

TEST(CheckpointFile, S_58_AnEphemeralChannelOnDiskIsRemoved) {
  Machine machine;
  put_active(machine);
  ChannelImage channel = workers();
  channel.name = "tmp#ephemeral";
  machine.put(kPaths.checkpoint("events", channel.name), encode_checkpoint(channel, true));
  machine.put(kPaths.wal("events", channel.name), "anything");
  const Opened opened = machine.open();
  EXPECT_EQ(only_channel(opened).name, "workers");
  EXPECT_FALSE(machine.disk.exists(kPaths.checkpoint("events", channel.name)));
  EXPECT_FALSE(machine.disk.exists(kPaths.wal("events", channel.name)));
}

TEST(CheckpointFile, S_62_OldDeferredScanEntriesAreDroppedAndRequeuesStay) {
  for (const bool sealed : {true, false}) {
    Machine machine;
    if (sealed)
      put_g1(machine);
    else
      put_active(machine);
    ChannelImage channel = workers();
    channel.requeued_until_ms = {{1, kTimeMs}, {2, kTimeMs + 60'000}, {3, kTimeMs + 60'001}};
    channel.attempts = {{1, 2}};
    put_channel(machine, channel);
    const Opened opened = machine.open();
    // Position 1 equals its message's time but has an attempt, 3 differs from it.
    EXPECT_EQ(only_channel(opened).requeued_until_ms, (std::map<Position, std::int64_t>{{1, kTimeMs}, {3, kTimeMs + 60'001}}));
    EXPECT_EQ(only_channel(opened).attempts, (std::map<Position, std::uint16_t>{{1, 2}}));
  }
}

TEST(CheckpointFile, S_72_MoreThan1024ChannelsAreRefused) {
  Machine machine;
  put_active(machine);
  for (std::uint32_t i = 0; i < kChannelsMax; ++i) {
    ChannelImage channel;
    channel.name = "c" + std::to_string(i);
    put_channel(machine, channel);
  }
  expect_refused(machine, "topics/6576656e7473/channels", std::nullopt);
  machine.disk.remove(kCheckpoint);
  const Opened opened = machine.open();
  ASSERT_TRUE(opened.ok()) << opened.faults[0].message();
  EXPECT_EQ(opened.topic("events").channels.size(), kChannelsMax);
}

TEST(Floor, AdvancesOverGapsAndAcknowledgementsInTurn) {
  ChannelImage channel = workers(2);
  channel.acknowledged = {1, 5, 6, 8, 12};
  channel.requeued_until_ms = {{2, 1}, {4, 1}, {9, 1}, {11, 1}, {12, 1}};
  channel.attempts = {{5, 1}, {11, 1}};
  settle_channel(channel, {{3, 4}, {7, 7}, {9, 10}});
  EXPECT_EQ(channel.ack_floor, 10u);
  EXPECT_EQ(channel.acknowledged, (std::vector<Position>{12}));
  EXPECT_EQ(channel.requeued_until_ms, (std::map<Position, std::int64_t>{{11, 1}}));
  EXPECT_EQ(channel.attempts, (std::map<Position, std::uint16_t>{{11, 1}}));
}

}  // namespace
}  // namespace rq::storage::testing
