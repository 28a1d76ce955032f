// Page 30 section 16, publish cases, on the engine alone or through the whole Broker.
#include <algorithm>
#include <set>

#include "core/storage/format_files.h"
#include "core/storage/paths.h"
#include "sim/harness.h"
#include "tests/sim/engine_fixture.h"

namespace rq::sim {
namespace {

using queue::Code;
using queue::Engine;

constexpr std::uint64_t kRecordBytes = 48 + 4 + 20;  // of a record with one message, without its body

// Bytes of all segments of a Topic.
std::uint64_t log_bytes(const SimDisk& disk, std::string_view topic) {
  const std::string folder = "/" + storage::DataPaths("data").segments(topic) + "/";
  std::uint64_t bytes = 0;
  for (const std::string& path : disk.files())
    if (path.starts_with(folder) && path.ends_with(".rqlog")) bytes += disk.content(path).size();
  return bytes;
}

TEST(PublishCases, Q_01_APublishCrashedBeforeItsBarrierIsThereAsAWholeOrNotAtAll) {
  std::set<std::uint64_t> seen;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    EngineWorld w(seed);
    ASSERT_TRUE(w.open());
    ASSERT_TRUE(w.publish("t", "first").ok());
    const std::uint64_t before = log_bytes(w.disk, "t");
    w.slow_disk(5 * kMillisecond);
    w.act([&](Engine& e, Now now) { ASSERT_TRUE(e.publish("t", w.bodies("second"), 0, w.waiter(9), now).ok()); });
    ASSERT_TRUE(w.world.run_until([&] { return log_bytes(w.disk, "t") > before; }, kSecond));  // appended
    ASSERT_EQ(w.published.size(), 1u);                                                         // not answered
    ASSERT_TRUE(w.crash_and_open()) << w.engine().fault()->message();
    const queue::ConsumerId c = w.subscribe("t", "c", 10);
    ASSERT_TRUE(w.wait_deliveries(1));
    w.world.run_for(kSecond);
    ASSERT_LE(w.deliveries.size(), 2u);
    EXPECT_EQ(text_of(w.deliveries[0].event.body.bytes()), "first");
    if (w.deliveries.size() == 2) {
      EXPECT_EQ(text_of(w.deliveries[1].event.body.bytes()), "second");
    }
    EXPECT_NE(c, queue::ConsumerId::none);
    seen.insert(w.deliveries.size());
  }
  EXPECT_EQ(seen, (std::set<std::uint64_t>{1, 2})) << "both outcomes occur";
}

TEST(PublishCases, Q_02_AnAnsweredPublishSurvivesACrashWithItsIdAndTimestamp) {
  BrokerHarness h(2);
  ASSERT_TRUE(h.start());
  Client& before = h.consumer("t", "c");
  ASSERT_EQ(h.publish("t", "kept"), "OK");
  const auto first = before.message();
  ASSERT_TRUE(first);
  ASSERT_EQ(h.publish("t", "unseen"), "OK");
  h.power_loss();
  ASSERT_TRUE(h.start());
  Client& after = h.consumer("t", "c", 5);
  const auto again = after.message(), other = after.message();
  ASSERT_TRUE(again && other);
  EXPECT_EQ(again->body, "kept");
  EXPECT_EQ(again->id, first->id);
  EXPECT_EQ(again->timestamp_ns, first->timestamp_ns);
  EXPECT_EQ(other->body, "unseen");
  EXPECT_FALSE(after.message(1'000));
}

TEST(PublishCases, Q_03_SixtyFourPublishesShareOneBarrierAndTheNextOneWaits) {
  EngineWorld w(3);
  ASSERT_TRUE(w.open());
  ASSERT_TRUE(w.publish("t", "x").ok());
  w.world.run_for(kSecond);
  const std::uint64_t bytes = log_bytes(w.disk, "t"), barriers = w.engine().metrics().barriers;
  w.published.clear();
  w.act([&](Engine& e, Now now) {
    for (std::uint64_t i = 0; i < 65; ++i) ASSERT_TRUE(e.publish("t", w.bodies("body"), 0, w.waiter(i + 1), now).ok());
  });
  ASSERT_TRUE(w.world.run_until([&] { return w.published.size() >= 64; }, kSecond));
  EXPECT_EQ(w.published.size(), 64u);
  EXPECT_EQ(w.published.front().at, w.published.back().at);
  for (std::uint64_t i = 0; i < 64; ++i) EXPECT_EQ(w.published[i].event.waiter, w.waiter(i + 1));
  ASSERT_TRUE(w.world.run_until([&] { return w.published.size() == 65; }, kSecond));
  EXPECT_GT(w.published[64].at, w.published[63].at);
  EXPECT_EQ(w.engine().metrics().barriers - barriers, 2u);
  EXPECT_EQ(log_bytes(w.disk, "t") - bytes, 65 * (kRecordBytes + 4)) << "one record each";
}

TEST(PublishCases, Q_04_AGroupHoldsAtMostEightMebibytesAndALargerRequestIsAlone) {
  EngineWorld w(4);
  ASSERT_TRUE(w.open());
  ASSERT_TRUE(w.publish("t", "x").ok());
  w.published.clear();
  constexpr std::size_t kMiB = 1 << 20;
  w.act([&](Engine& e, Now now) {
    std::uint64_t n = 1;
    for (const std::size_t size : {5 * kMiB, 2 * kMiB, 2 * kMiB, 20 * kMiB, std::size_t{10}})
      ASSERT_TRUE(e.publish("t", w.bodies(std::string(size, 'b')), 0, w.waiter(n++), now).ok());
  });
  ASSERT_TRUE(w.world.run_until([&] { return w.published.size() == 5; }, 10 * kSecond));
  const auto at = [&](std::size_t i) { return w.published[i].at; };
  EXPECT_EQ(at(0), at(1)) << "5 and 2 MiB in one group";
  EXPECT_LT(at(1), at(2)) << "the second 2 MiB opens the next one";
  EXPECT_LT(at(2), at(3)) << "20 MiB are a group of their own";
  EXPECT_LT(at(3), at(4));
  for (std::uint64_t i = 0; i < 5; ++i) EXPECT_EQ(w.published[i].event.waiter, w.waiter(i + 1));
}

TEST(PublishCases, Q_05_ALonePublishIsAppendedAtOnceAndTwoNeverWait) {
  EngineWorld w(5);
  ASSERT_TRUE(w.open());
  ASSERT_TRUE(w.publish("t", "x").ok());
  w.world.run_for(kSecond);
  w.slow_disk(20 * kMicrosecond);
  for (const int count : {1, 2}) {
    w.published.clear();
    const std::uint64_t bytes = log_bytes(w.disk, "t");
    Instant taken;
    w.act([&](Engine& e, Now now) {
      taken = now.mono;
      for (int i = 0; i < count; ++i) ASSERT_TRUE(e.publish("t", w.bodies("body"), 0, w.waiter(1), now).ok());
    });
    ASSERT_TRUE(w.world.run_until([&] { return log_bytes(w.disk, "t") > bytes; }, kSecond));
    EXPECT_LE(w.world.now() - taken, kMillisecond);
    ASSERT_TRUE(w.world.run_until([&] { return static_cast<int>(w.published.size()) == count; }, kSecond));
    EXPECT_LE(w.published.back().at - taken, kMillisecond);
    w.world.run_for(kSecond);
  }
}

TEST(PublishCases, Q_06_AFailedBarrierAnswersItsWholeGroupWithAStorageErrorAndEndsTheProcess) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    BrokerHarness h(seed);
    ASSERT_TRUE(h.start());
    ASSERT_EQ(h.publish("t", "before"), "OK");
    ASSERT_EQ(h.publish("other", "before"), "OK");
    Client& producer = h.connect();
    Client& second = h.connect();
    h.run_for(1'000);
    h.disk().faults.sync_fail = 1024;
    std::string ten;
    for (int i = 0; i < 10; ++i) ten += pub_command("t", "m" + std::to_string(i));
    producer.send(ten);
    ASSERT_TRUE(h.run_until([&] { return !h.running(); }, 10'000)) << "ends by itself";
    EXPECT_EQ(h.last_exit(), broker::Broker::Exit::failed);
    h.disk().faults.sync_fail = 0;
    second.pub("other", "late");
    h.run_for(100);
    EXPECT_TRUE(second.take_frames().empty());
    h.run_for(1'000);
    for (const Frame& frame : producer.frames()) EXPECT_EQ(frame.type, 1) << frame.payload;
    ASSERT_TRUE(h.start()) << h.last_exit_reason();
    Client& consumer = h.consumer("t", "c", 100);
    h.run_for(2'000);
    const std::vector<Message> messages = consumer.messages();
    ASSERT_GE(messages.size(), 1u);
    EXPECT_EQ(messages[0].body, "before");
    for (std::size_t i = 1; i < messages.size(); ++i) EXPECT_EQ(messages[i].body, "m" + std::to_string(i - 1)) << "a prefix";
  }
}

// I-17.
TEST(PublishCases, Q_06_TheEngineRefusesEveryLaterPublishOnAnyTopic) {
  EngineWorld w(6);
  ASSERT_TRUE(w.open());
  ASSERT_TRUE(w.publish("t", "x").ok());
  w.published.clear();
  w.disk.faults.sync_fail = 1024;
  w.act([&](Engine& e, Now now) {
    for (std::uint64_t i = 0; i < 10; ++i) ASSERT_TRUE(e.publish("t", w.bodies("body"), 0, w.waiter(i + 1), now).ok());
  });
  ASSERT_TRUE(w.world.run_until([&] { return w.published.size() == 10; }, kSecond));
  for (const auto& done : w.published) EXPECT_EQ(done.event.outcome.code, Code::storage);
  w.disk.faults.sync_fail = 0;
  EXPECT_EQ(w.publish("t", "y").code, Code::storage);
  EXPECT_EQ(w.publish("u", "y").code, Code::storage);
}

TEST(PublishCases, Q_07_AFailedWriteFailsTheGroup) {
  EngineWorld w(7);
  ASSERT_TRUE(w.open());
  ASSERT_TRUE(w.publish("t", "x").ok());
  w.published.clear();
  w.disk.faults.write_io_error = 1024;
  w.act([&](Engine& e, Now now) {
    for (std::uint64_t i = 0; i < 5; ++i) ASSERT_TRUE(e.publish("t", w.bodies("body"), 0, w.waiter(i + 1), now).ok());
  });
  ASSERT_TRUE(w.world.run_until([&] { return w.published.size() == 5; }, kSecond));
  for (const auto& done : w.published) EXPECT_EQ(done.event.outcome.code, Code::storage);
}

// I-16.
TEST(PublishCases, Q_07_UsedUpIdsFailOnlyTheRequestThatNeedsThem) {
  EngineWorld w(7);
  ASSERT_TRUE(w.open());
  ASSERT_TRUE(w.publish("t", "x").ok());
  ASSERT_TRUE(w.stop());
  // Ten ids are left.
  auto meta = storage::decode_broker_meta(bytes_of(w.disk.content("data/broker.meta")));
  ASSERT_TRUE(meta);
  meta->next_sequence = storage::kSequenceEnd - 10;
  w.disk.put("data/broker.meta", storage::encode_broker_meta(*meta));
  ASSERT_TRUE(w.open());
  w.published.clear();
  w.act([&](Engine& e, Now now) {
    for (std::uint64_t i = 0; i < 5; ++i) {
      std::vector<Slice> bodies(i == 2 ? 20 : 1, Slice::copy_of(bytes_of("body")));
      ASSERT_TRUE(e.publish("t", std::move(bodies), 0, w.waiter(i + 1), now).ok());
    }
  });
  ASSERT_TRUE(w.world.run_until([&] { return w.published.size() == 5; }, kSecond));
  for (const auto& done : w.published) {
    const bool third = done.event.waiter == w.waiter(3);
    EXPECT_EQ(done.event.outcome.code, third ? Code::sequence_exhausted : Code::ok);
  }
}

TEST(PublishCases, Q_08_APublishOfAClosedConnectionIsCommittedAndItsBytesComeBack) {
  BrokerHarness h(8);
  ASSERT_TRUE(h.start());
  ASSERT_EQ(h.publish("t", "first"), "OK");
  Client& producer = h.connect();
  h.disk().faults.latency_ns_min = h.disk().faults.latency_ns_max = 200 * kMillisecond;
  producer.pub("t", "orphan");
  ASSERT_TRUE(h.run_until([&] { return h.broker().publish_bytes_in_flight() > 0; }, 1'000));
  producer.close();
  h.run_for(50);
  EXPECT_GT(h.broker().publish_bytes_in_flight(), 0u) << "held until it is committed";
  h.run_for(2'000);
  EXPECT_EQ(h.broker().publish_bytes_in_flight(), 0u);
  h.disk().faults.latency_ns_min = h.disk().faults.latency_ns_max = 20'000;
  Client& consumer = h.consumer("t", "c", 10);
  ASSERT_TRUE(consumer.wait_messages(2));
  EXPECT_EQ(consumer.messages()[1].body, "orphan");
}

}  // namespace
}  // namespace rq::sim
