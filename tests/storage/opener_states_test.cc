// Opening: directories that no crash leaves, but a rotten disk, an operator or another program does.
#include <gtest/gtest.h>

#include "core/storage/meta_store.h"
#include "tests/storage/directory.h"

namespace rq::storage::testing {
namespace {

using namespace examples;

// It has an ephemeral name, so it goes with its last consumer, and must have no files by then (page 20 section 1.1).
TEST(States, AChannelWithAnEphemeralNameIsRemovedWhateverItsCheckpointSays) {
  Machine machine;
  put_active(machine);
  machine.disk.remove(kCheckpoint);
  machine.disk.remove(kWal);
  ChannelImage channel = workers(2);
  channel.name = "tmp#ephemeral";
  put_channel(machine, channel, frame(finish(3)));
  const Opened opened = machine.open();
  ASSERT_TRUE(opened.ok()) << opened.faults[0].message();
  EXPECT_TRUE(opened.topic("events").channels.empty());
  EXPECT_EQ(opened.topic("events").unrouted_from, 1u);  // no durable Channel: everything stored waits for the first one
  EXPECT_FALSE(machine.disk.exists(kPaths.checkpoint("events", channel.name)));
  EXPECT_FALSE(machine.disk.exists(kPaths.wal("events", channel.name)));
}

// Ids rise within a Topic: what a lower node appends behind those of a higher one would be refused by the next start.
TEST(States, TheMessagesOfAHigherNodeAreRefused) {
  Machine machine;
  put_root(machine);
  put_manifest(machine, events_manifest(2));
  Log log;
  log.add({1, kTime, MessageId{2} << 48 | 5, kTimeMs, 1}, {"a"});
  machine.put(kSegment1, log.bytes);
  const std::string name = "topics/6576656e7473/segments/segment-00000000000000000001.rqlog";
  expect_refused(machine, name);  // the Topic was copied
  machine.disk.remove(kPaths.broker_meta());
  expect_refused(machine, name, std::nullopt, false);  // broker.meta was lost
  machine.options.node_id = 2;
  const Opened opened = machine.open();
  ASSERT_TRUE(opened.ok()) << opened.faults[0].message();
  EXPECT_EQ(opened.image->next_sequence, 6u);
}

TEST(States, AnImpossibleNextSequenceIsRefusedAndZeroIsOne) {
  Machine machine;
  put_g1(machine);
  machine.put(kPaths.broker_meta(), encode_broker_meta({1, kSequenceEnd + 1, 2}));
  expect_refused(machine, "broker.meta");
  machine.put(kPaths.broker_meta(), encode_broker_meta({1, kSequenceEnd, 2}));  // used up: it opens, and publishes nothing
  EXPECT_TRUE(machine.open().ok());
  Machine empty;
  put_root(empty);
  empty.put(kPaths.broker_meta(), encode_broker_meta({1, 0, 2}));
  const Opened opened = empty.open();
  ASSERT_TRUE(opened.ok());
  EXPECT_EQ(opened.image->next_sequence, 1u);
}

// Cutting there would drop what was acknowledged behind it.
TEST(States, ADamagedLengthIsNoTornTail) {
  for (const std::size_t bodies :
       {std::size_t{1}, std::size_t{3'000'000}}) {  // the next record in the same piece, and far behind
    Machine machine;
    put_active(machine);
    Log log;
    log.add(1, 1, std::string(bodies, 'a'));
    log.add(2, 2, std::string(bodies, 'b'));
    const std::uint64_t second = log.bytes.size() / 2;
    log.add(3, 3, "c");
    std::string damaged = log.bytes;
    damaged[second + 40] ^= 0x04;  // 64 MiB more
    machine.put(kSegment1, damaged);
    expect_refused(machine, "topics/6576656e7473/segments/segment-00000000000000000001.rqlog", second);
    // With a record of another place in its body, it is a torn tail like any.
    Log torn;
    torn.add(1, 1, "a");
    Log other;
    other.add(7, 7, "b");
    torn.add(2, 2, std::string(bodies, 'a') + other.bytes + "rest");
    machine.put(kSegment1, torn.bytes.substr(0, torn.bytes.size() - 1));
    EXPECT_EQ(machine.open().topic("events").sealed.at(0).message_count, 1u);  // sealed, since positions 2 and 3 were known
  }
}

TEST(States, ADamagedLengthInAWalIsNoTornTail) {
  Machine machine;
  put_active(machine);
  std::string wal = frame(finish(1)) + frame(finish(2)) + frame(finish(3));
  wal[29 + 5] ^= 0x01;  // 64 KiB more
  machine.put(kWal, wal);
  expect_refused(machine, "topics/6576656e7473/channels/776f726b657273.wal", 29);
}

TEST(States, ASegmentWithTheLastNameOfAllIsRefused) {
  Machine machine;
  put_active(machine);
  machine.put(kPaths.segment("events", 3), "");
  EXPECT_TRUE(machine.open().ok());
  machine.disk.remove(kPaths.segment("events", 3));
  machine.put(kPaths.segment("events", UINT64_MAX), "");
  expect_refused(machine, "topics/6576656e7473/segments");
}

// Every directory that the first start made is durable before the Broker answers anybody.
TEST(States, ADeepDataDirectorySurvivesAPowerLossBehindItsFirstStart) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    Machine machine(seed);
    machine.options.data_path = "/srv/queue/node/data";
    ASSERT_TRUE(machine.open().ok());
    machine.disk.power_loss();
    EXPECT_TRUE(machine.disk.exists("/srv/queue/node/data/broker.meta")) << seed;
  }
}

// The first of them was killed at any moment, the second one opened.
TEST(States, ADeepDataDirectorySurvivesAPowerLossBehindAKilledFirstStart) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Machine machine(seed);
    machine.options.data_path = "/srv/queue/node/data";
    machine.begin(static_cast<std::int64_t>(seed % 50) * 200 * kMicrosecond);
    ASSERT_TRUE(machine.open().ok());
    machine.disk.power_loss();
    EXPECT_TRUE(machine.disk.exists("/srv/queue/node/data/broker.meta")) << seed;
  }
}

TEST(States, ADirectoryNamedLikeATemporaryFileIsNobodys) {
  Machine machine;
  put_g1(machine);
  machine.put(kPaths.outbox() + "/old.tmp/x", "");
  machine.put(kPaths.audit() + "/old.tmp/x", "");
  const Opened opened = machine.open();
  EXPECT_TRUE(opened.ok()) << opened.faults[0].message();
}

TEST(States, AsManyLogsAsTheProcessMayHaveOpenFilesAreMadeDurable) {
  Machine machine;
  put_active(machine);
  for (int i = 0; i < 600; ++i) {
    ChannelImage channel;
    channel.name = "c" + std::to_string(i);
    put_channel(machine, channel, frame(finish(1)));
  }
  machine.disk.handles_max = 24;
  const Opened opened = machine.open();
  ASSERT_TRUE(opened.ok()) << opened.faults[0].message();
  EXPECT_EQ(opened.topic("events").channels.size(), 601u);
}

}  // namespace
}  // namespace rq::storage::testing
