// The outbox of an earlier process at the start (page 20 section 7.1).
#include <gtest/gtest.h>

#include "core/storage/outbox.h"
#include "tests/queue/engine_world.h"

namespace rq::queue {
namespace {

struct Outbox {
  explicit Outbox(std::uint64_t seed) : w(seed) {}

  // Publishes and hands out, so that the id is known; the message stays unfinished.
  MessageId message(const std::string& body) {
    EXPECT_EQ(w.publish_and_wait("events", {body}), Code::ok);
    w.subscribe("events", "workers", 1);
    EXPECT_TRUE(w.wait_deliveries(1));
    return w.shard().deliveries[0].id;
  }
  std::string put(MessageId id, const std::string& body, const std::string& name = {}, const std::string& topic = "events",
                  const std::string& channel = "workers") {
    const storage::OutboxEntry entry{topic, channel, topic + "." + channel + ".DLQ", id, body};
    const std::string path = "data/dlq-outbox/" + (name.empty() ? storage::outbox_file_name(entry) : name);
    w.disk.put(path, storage::encode_outbox(entry));
    return path;
  }
  // Stopped first, so that the files are there when the next process opens.
  void reopen(const std::function<void()>& prepare) {
    w.process->kill();
    prepare();
    w.process->start();
    w.wait([&] { return w.engine().state() != EngineState::opening; });
  }
  std::uint64_t messages(std::string_view topic) {
    for (const TopicStats& stats : w.stats())
      if (stats.name == topic) return stats.message_count;
    return 0;
  }
  std::uint64_t depth(std::string_view topic) {
    for (const TopicStats& stats : w.stats())
      if (stats.name == topic) return stats.channels.at(0).depth;
    return 99;
  }

  EngineWorld w;
};

TEST(DeadLetterReplay, S_63_AnIntentIsPublishedOnceItsSourceFinishedAndItsFileGone) {
  Outbox o(63);
  const MessageId id = o.message("poison");
  std::string path;
  o.reopen([&] { path = o.put(id, "poison"); });
  ASSERT_EQ(o.w.engine().state(), EngineState::open);
  EXPECT_FALSE(o.w.disk.exists(path));
  EXPECT_EQ(o.depth("events"), 0u);
  EXPECT_EQ(o.messages("events.workers.DLQ"), 1u);
  o.w.restart(true);
  EXPECT_EQ(o.depth("events"), 0u);
  o.w.subscribe("events.workers.DLQ", "d", 1);
  ASSERT_TRUE(o.w.wait_deliveries(1));
  EXPECT_EQ(o.w.bodies(), std::vector<std::string>{"poison"});
}

TEST(DeadLetterReplay, S_63_TheOlderFileNameIsTakenToo) {
  Outbox o(64);
  const MessageId id = o.message("poison");
  std::string path;
  o.reopen([&] { path = o.put(id, "poison", "0001000000000001-23536443.outbox"); });
  ASSERT_EQ(o.w.engine().state(), EngineState::open);
  EXPECT_FALSE(o.w.disk.exists(path));
  EXPECT_EQ(o.depth("events"), 0u);
  EXPECT_EQ(o.messages("events.workers.DLQ"), 1u);
}

TEST(DeadLetterReplay, S_64_AnIntentWhoseSourceIsFinishedGoesWithoutACopy) {
  Outbox o(65);
  const MessageId id = o.message("poison");
  o.w.finish_all();
  std::string path;
  o.reopen([&] { path = o.put(id, "poison"); });
  ASSERT_EQ(o.w.engine().state(), EngineState::open);
  EXPECT_FALSE(o.w.disk.exists(path));
  EXPECT_EQ(o.w.stats().size(), 1u);
}

TEST(DeadLetterReplay, AMissingSourceIsPublishedAllTheSame) {
  Outbox o(66);
  const MessageId id = o.message("poison");
  o.reopen([&] {
    o.put(id, "no channel", {}, "events", "others");
    o.put(id, "no topic", {}, "gone", "workers");
    o.put(id + 500'000, "no message");
  });
  ASSERT_EQ(o.w.engine().state(), EngineState::open);
  EXPECT_EQ(o.messages("events.others.DLQ"), 1u);
  EXPECT_EQ(o.messages("gone.workers.DLQ"), 1u);
  EXPECT_EQ(o.messages("events.workers.DLQ"), 1u);
  EXPECT_EQ(o.depth("events"), 1u);
}

TEST(DeadLetterReplay, TheSourceIsFoundInSealedSegmentsByItsId) {
  EngineOptions options;
  options.max_segment_bytes = 4'096;
  Outbox o(67);
  o.w.set_options([](EngineOptions& change) { change.max_segment_bytes = 4'096; });
  o.w.restart();
  for (int i = 0; i < 40; ++i) {
    ASSERT_EQ(o.w.publish_and_wait("events", {std::string(300, 'x'), std::string(300, 'y')}), Code::ok);
    ASSERT_EQ(o.w.publish_and_wait("between", {"z"}), Code::ok);
  }
  o.w.subscribe("events", "workers", 80);
  ASSERT_TRUE(o.w.wait_deliveries(80));
  std::vector<MessageId> ids;
  for (const Delivery& delivery : o.w.shard().deliveries) ids.push_back(delivery.id);
  o.reopen([&] {
    for (const std::size_t i : {0, 17, 42, 79}) o.put(ids[i], "copy");
  });
  ASSERT_EQ(o.w.engine().state(), EngineState::open);
  EXPECT_EQ(o.depth("events"), 76u);
  EXPECT_EQ(o.messages("events.workers.DLQ"), 4u);
}

// I-49
TEST(DeadLetterReplay, IntentsOfATtlTopicAreDroppedWithoutACopy) {
  Outbox o(68);
  const MessageId id = o.message("poison");
  ASSERT_EQ(o.w.configure("events", {true, 3'600}).code, Code::ok);
  std::string path;
  o.reopen([&] { path = o.put(id, "poison"); });
  ASSERT_EQ(o.w.engine().state(), EngineState::open);
  EXPECT_FALSE(o.w.disk.exists(path));
  EXPECT_EQ(o.depth("events"), 1u);
  EXPECT_EQ(o.w.stats().size(), 1u);
}

TEST(DeadLetterReplay, ABodyOverTheLimitOfTheFeatureLevelRefusesTheStart) {
  Outbox o(69);
  const MessageId id = o.message("poison");
  o.reopen([&] { o.put(id, std::string(75'497'449, 'x')); });
  EXPECT_EQ(o.w.engine().state(), EngineState::faulted);
  EXPECT_NE(o.w.engine().fault()->message().find("too large for a dead letter"), std::string::npos);
}

}  // namespace
}  // namespace rq::queue
