#include "core/storage/checkpoint.h"
#include "core/storage/manifest.h"
#include "core/storage/paths.h"
#include "sim/harness.h"
#include "tests/sim/engine_fixture.h"
#include "tests/sim/probe_scenarios.h"

namespace rq::sim::scenarios {
namespace {

const storage::DataPaths kPaths("data");

// Eight messages of 100 bytes in segments of two, on an engine that was opened again and knows no body.
void eight_in_segments_of_two(EngineWorld& w) {
  w.options.max_segment_bytes = 400;
  ASSERT_TRUE(w.open());
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(w.publish("t", std::string(100, static_cast<char>('a' + i))).ok());
  ASSERT_TRUE(w.stop());
}

}  // namespace

void emptied_while_its_body_is_read() {
  BrokerHarness h(301);
  ASSERT_TRUE(h.start());
  ASSERT_EQ(h.publish("t", "gone"), "OK");
  h.consumer("t", "c", 0);
  ASSERT_TRUE(h.stop());
  ASSERT_TRUE(h.start());
  Client& consumer = h.consumer("t", "c", 0);
  h.disk().faults.latency_ns_min = h.disk().faults.latency_ns_max = 300 * kMillisecond;
  consumer.rdy(1);
  h.run_for(50);
  EXPECT_EQ(h.http("POST", "/channel/empty?topic=t&channel=c").status, 200);
  h.run_for(2'000);
  EXPECT_TRUE(consumer.messages().empty());
  h.disk().faults.latency_ns_min = h.disk().faults.latency_ns_max = 20'000;
  ASSERT_EQ(h.publish("t", "next"), "OK");
  const auto next = consumer.message();
  ASSERT_TRUE(next);
  EXPECT_EQ(next->body, "next");
}

// A FIN and an Empty in one moment: the Empty finds nothing to do, and is answered when the FIN is durable.
void emptied_behind_a_fin() {
  BrokerHarness h(303);
  ASSERT_TRUE(h.start());
  ASSERT_EQ(h.publish("t", "finished"), "OK");
  Client& consumer = h.consumer("t", "c", 1);
  const auto message = consumer.message();
  ASSERT_TRUE(message);
  h.disk().faults.latency_ns_min = h.disk().faults.latency_ns_max = 300 * kMillisecond;
  consumer.fin(message->id);
  h.run_for(50);
  EXPECT_EQ(h.http("POST", "/channel/empty?topic=t&channel=c").status, 200);
  h.disk().faults = {};
  h.power_loss();
  ASSERT_TRUE(h.start());
  Client& next = h.consumer("t", "c", 1);
  h.run_for(1'000);
  EXPECT_TRUE(next.messages().empty());
}

// A flipped bit in a sealed segment is found when its message is read: the Broker names file and offset, and ends (D-42a).
void damaged_body() {
  EngineWorld w(302);
  ASSERT_NO_FATAL_FAILURE(eight_in_segments_of_two(w));
  ASSERT_TRUE(w.open());
  const std::string path = kPaths.segment("t", 1);
  std::string content = w.disk.content(path);
  content[100] = static_cast<char>(content[100] ^ 1);
  w.disk.put(path, content);
  w.subscribe("t", "c", 1);
  ASSERT_TRUE(w.world.run_until([&] { return w.engine().fault() != nullptr; }, 10 * kSecond));
  EXPECT_TRUE(w.deliveries.empty());
  EXPECT_NE(w.engine().fault()->message().find("segment-00000000000000000001.rqlog at offset 72"), std::string::npos)
      << w.engine().fault()->message();
}

void full_group() {
  EngineWorld w(309);
  ASSERT_TRUE(w.open());
  w.act([&](queue::Engine& e, Now now) {
    for (std::uint64_t i = 1; i <= 130; ++i) ASSERT_TRUE(e.publish("t", w.bodies("b"), 0, w.waiter(i), now).ok());
  });
  EXPECT_TRUE(w.world.run_until([&] { return w.published.size() == 130; }, 10 * kSecond));
  EXPECT_EQ(w.engine().metrics().publish_group_max, 64u);
}

void large_group() {
  EngineWorld w(303);
  ASSERT_TRUE(w.open());
  ASSERT_TRUE(w.publish("t", "x").ok());
  w.published.clear();
  w.act([&](queue::Engine& e, Now now) {
    for (std::uint64_t i = 1; i <= 3; ++i)
      ASSERT_TRUE(e.publish("t", w.bodies(std::string(4 << 20, 'b')), 0, w.waiter(i), now).ok());
  });
  ASSERT_TRUE(w.world.run_until([&] { return w.published.size() == 3; }, 10 * kSecond));
  EXPECT_LT(w.published[0].at, w.published[2].at);
}

void lost_broker_meta() {
  EngineWorld w(304);
  ASSERT_NO_FATAL_FAILURE(eight_in_segments_of_two(w));
  w.disk.remove(kPaths.broker_meta());
  ASSERT_TRUE(w.open());
  ASSERT_TRUE(w.publish("t", "after").ok());
  w.subscribe("t", "c", 100);
  ASSERT_TRUE(w.wait_deliveries(9));
  for (std::size_t i = 1; i < 9; ++i) EXPECT_GT(w.deliveries[i].event.id, w.deliveries[i - 1].event.id);
}

void temporaries_of_a_crash() {
  EngineWorld w(305);
  ASSERT_NO_FATAL_FAILURE(eight_in_segments_of_two(w));
  const std::string left = kPaths.outbox() + "/0001.json.tmp";
  w.disk.put(left, "half");
  ASSERT_TRUE(w.open());
  EXPECT_FALSE(w.disk.exists(left));
}

// A sidecar that is good but another segment's is not believed (D-44).
void swapped_sidecar() {
  EngineWorld w(306);
  ASSERT_NO_FATAL_FAILURE(eight_in_segments_of_two(w));
  const std::string first = kPaths.sidecar("t", 1), second = kPaths.sidecar("t", 3);
  ASSERT_TRUE(w.disk.exists(first) && w.disk.exists(second));
  w.disk.put(second, w.disk.content(first));
  ASSERT_TRUE(w.open()) << w.engine().fault()->message();
  w.subscribe("t", "c", 100);
  ASSERT_TRUE(w.wait_deliveries(8));
  for (std::size_t i = 0; i < 8; ++i)
    EXPECT_EQ(text_of(w.deliveries[i].event.body.bytes()), std::string(100, static_cast<char>('a' + static_cast<int>(i))));
}

// Older writers kept a requeue target for each deferred message they had looked past (page 30 section 3.3).
void deferred_scan_residue() {
  EngineWorld w(307);
  ASSERT_TRUE(w.open());
  ASSERT_TRUE(w.publish("t", "later", 60'000).ok());
  w.subscribe("t", "c", 0);
  ASSERT_TRUE(w.stop());
  const std::string segment = w.disk.content(kPaths.segment("t", 1)), path = kPaths.checkpoint("t", "c");
  ASSERT_GE(segment.size(), storage::kRecordHeaderBytes);
  const auto available_at_ms = static_cast<std::int64_t>(load64(bytes_of(segment).data() + 32));  // page 20 section 3
  auto checkpoint = storage::decode_checkpoint(bytes_of(w.disk.content(path)));
  ASSERT_TRUE(checkpoint);
  checkpoint->channel.requeued_until_ms[1] = available_at_ms;
  w.disk.put(path, storage::encode_checkpoint(checkpoint->channel));
  ASSERT_TRUE(w.open());
  const queue::TopicStats stats = w.topic_stats("t");
  ASSERT_EQ(stats.channels.size(), 1u);
  EXPECT_EQ(stats.channels[0].deferred_count, 1u) << "still deferred by its own time";
  w.subscribe("t", "c", 1);
  EXPECT_TRUE(w.wait_deliveries(1, 70 * kSecond));
}

// Positions that durable state mentions are never given to another message (I-08).
void positions_known_but_lost() {
  EngineWorld w(308);
  ASSERT_NO_FATAL_FAILURE(eight_in_segments_of_two(w));
  auto manifest = storage::decode_manifest(bytes_of(w.disk.content(kPaths.manifest("t"))));
  ASSERT_TRUE(manifest);
  manifest->next_position += 5;
  w.disk.put(kPaths.manifest("t"), storage::encode_manifest(*manifest));
  ASSERT_TRUE(w.open());
  ASSERT_TRUE(w.publish("t", "after").ok());
  EXPECT_EQ(w.topic_stats("t").published_count, 14u);
  w.subscribe("t", "c", 100);
  EXPECT_TRUE(w.wait_deliveries(9));
}

// A full ephemeral queue drops the newest message, in memory as over files (D-21), and the Topic goes with its last Channel.
void ephemeral_bounds() {
  EngineWorld w(310);
  w.options.ephemeral_queue_messages = 2;
  ASSERT_TRUE(w.open());
  for (const std::string_view topic : {"t", "t#ephemeral"}) {
    const std::size_t before = w.deliveries.size();
    const queue::ConsumerId consumer = w.subscribe(topic, "c#ephemeral", 0);
    for (const char* body : {"1", "2", "3"}) ASSERT_TRUE(w.publish(topic, body).ok());
    w.act([&](queue::Engine& e, Now) { e.set_ready(consumer, 10); });
    w.world.run_for(kSecond);
    EXPECT_EQ(w.deliveries.size() - before, 2u);
    w.act([&](queue::Engine& e, Now now) { e.unsubscribe(consumer, now); });
    w.world.run_for(kSecond);
  }
  EXPECT_TRUE(w.engine().has_topic("t"));
  EXPECT_FALSE(w.engine().has_topic("t#ephemeral"));
  w.act([](queue::Engine& e, Now) { e.keep_for_known_channels(true); });
  ASSERT_TRUE(w.publish("u#ephemeral", "1").ok());
  for (const char* channel : {"a", "b"}) w.subscribe("u#ephemeral", channel, 0);
}

// A refused target closes the connection and keeps the intent; the start after an Empty finds its source finished. Then both
// triggers, with room for the target.
void dead_letters() {
  BrokerHarness h(310, [](broker::Config& c) {
    c.queue.max_delivery_attempts = 2;
    c.queue.message_retention_seconds = 30;
    c.queue.max_topics = 1;
  });
  ASSERT_TRUE(h.start());
  ASSERT_EQ(h.publish("t", "often"), "OK");
  Client& refused = h.consumer("t", "c", 1);
  const auto first = refused.message();
  ASSERT_TRUE(first);
  refused.req(first->id, 0);
  EXPECT_TRUE(refused.answer().is_error("E_DELIVERY_FAILED"));
  EXPECT_TRUE(refused.wait_closed());
  EXPECT_EQ(h.http("POST", "/channel/empty?topic=t&channel=c").status, 200);
  h.kill();
  h.config().queue.max_topics = 10;
  ASSERT_TRUE(h.start());
  EXPECT_EQ(h.broker().engine().metrics().dead_letter_messages, 0u);

  ASSERT_EQ(h.publish("t", "often"), "OK");
  ASSERT_EQ(h.publish("old", "old"), "OK");
  Client& often = h.consumer("t", "c", 1);
  const auto again = often.message();
  ASSERT_TRUE(again);
  often.req(again->id, 0);
  h.run_for(40'000);
  h.consumer("old", "c", 1);
  EXPECT_TRUE(h.run_until([&] { return h.broker().engine().metrics().dead_letter_messages == 2; }));
  Client& letters = h.consumer("t.c.DLQ", "d", 1);
  const auto letter = letters.message();
  ASSERT_TRUE(letter);
  EXPECT_EQ(letter->body, "often");
  EXPECT_EQ(letter->attempts, 1);
}

// The node's bytes are all held by one consumer's message: another's waits until that one was written.
void delivery_budget() {
  EngineWorld w(311);
  w.options.node_delivery_inflight_bytes = 200;
  w.options.connection_delivery_inflight_bytes = 100;
  ASSERT_TRUE(w.open());
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(w.publish("t", std::string(100, 'x')).ok());
  const queue::ConsumerId first = w.subscribe("t", "c", 1);
  ASSERT_TRUE(w.wait_deliveries(1));
  w.subscribe("t", "c", 1);
  w.world.run_for(kSecond);
  EXPECT_EQ(w.deliveries.size(), 1u);
  w.act([&](queue::Engine& e, Now) { e.written(first, 100); });
  ASSERT_TRUE(w.wait_deliveries(2));
}

}  // namespace rq::sim::scenarios
