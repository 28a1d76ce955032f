// D-42a: every fault while running names the file, the offset and the positions that it concerns.
#include <gtest/gtest.h>

#include "tests/queue/engine_world.h"

namespace rq::queue {
namespace {

const std::string kFirst = "topics/74/segments/segment-00000000000000000001";  // of Topic "t"

EngineOptions cold() {
  EngineOptions options;
  options.max_segment_bytes = 4096;
  options.entry_cache_bytes = 1;  // bodies come from the disk
  return options;
}

// Ten messages of 300 bytes a segment; two are sealed.
void fill(EngineWorld& w) {
  ASSERT_EQ(w.admin(Admin::create_channel, "t", "c"), Code::ok);
  for (int i = 0; i < 24; ++i) ASSERT_EQ(w.publish_and_wait("t", {std::to_string(i) + std::string(300, 'x')}), Code::ok);
  ASSERT_TRUE(w.wait([&] { return w.engine().quiet(); }));
}

// The fault that follows, as it is logged.
std::string fault(EngineWorld& w) {
  EXPECT_TRUE(w.wait([&] { return w.engine().state() == EngineState::faulted; }));
  const storage::Fault* found = w.engine().fault();
  if (found == nullptr) return "";
  EXPECT_TRUE(found->offset.has_value()) << found->message();
  return found->message();
}

void expect_names(const std::string& text, std::initializer_list<std::string_view> parts) {
  for (const std::string_view part : parts) EXPECT_NE(text.find(part), std::string::npos) << text << " has no " << part;
}

TEST(Fault, ADamagedBody) {
  EngineWorld w(1, cold());
  fill(w);
  const std::string path = "data/" + kFirst + ".rqlog";
  const std::size_t at = w.disk.content(path).find("3xxx");
  ASSERT_TRUE(w.disk.rot(path, at + 9));
  w.subscribe("t", "c", 10);
  expect_names(fault(w), {kFirst + ".rqlog at offset " + std::to_string(at), "position 4"});
}

TEST(Fault, ABodyThatCannotBeRead) {
  EngineWorld w(2, cold());
  fill(w);
  ASSERT_EQ(w.stats().at(0).message_count, 24u);
  // The metadata page first, then the disk fails.
  w.subscribe("t", "c", 0);
  w.disk.faults.read_io_error = 1024;
  w.subscribe("t", "c", 10);
  expect_names(fault(w), {kFirst, "position"});
}

TEST(Fault, ADamagedMetadataPage) {
  EngineWorld w(3, cold());
  fill(w);
  w.restart();
  ASSERT_TRUE(w.disk.rot("data/" + kFirst + ".rqidx", 64 + 10 * 24 + 12 + 2 * 60 + 30));
  w.subscribe("t", "c", 10);
  expect_names(fault(w), {kFirst + ".rqidx at offset " + std::to_string(64 + 10 * 24 + 12 + 2 * 60), "position 3"});
}

TEST(Fault, AMetadataPageThatCannotBeRead) {
  EngineWorld w(4, cold());
  fill(w);
  w.restart();
  w.disk.faults.read_io_error = 1024;
  w.subscribe("t", "c", 10);
  expect_names(fault(w), {kFirst + ".rqidx at offset " + std::to_string(64 + 10 * 24 + 12), "read: ", "position 1"});
}

TEST(Fault, AnAppendThatFails) {
  EngineWorld w(5);
  ASSERT_EQ(w.publish_and_wait("t", {"a"}), Code::ok);
  ASSERT_TRUE(w.wait([&] { return w.engine().quiet(); }));
  const std::uint64_t end = w.disk.content("data/" + kFirst + ".rqlog").size();
  w.disk.faults.write_io_error = 1024;
  w.publish("t", {"b"});
  expect_names(fault(w), {kFirst + ".rqlog at offset " + std::to_string(end), "append: ", "positions from 2 on"});
}

TEST(Fault, ABarrierThatFails) {
  EngineWorld w(6);
  ASSERT_EQ(w.publish_and_wait("t", {"a"}), Code::ok);
  ASSERT_TRUE(w.wait([&] { return w.engine().quiet(); }));
  const std::uint64_t end = w.disk.content("data/" + kFirst + ".rqlog").size();
  w.disk.faults.sync_fail = 1024;
  w.publish("t", {"b"});
  expect_names(fault(w), {kFirst + ".rqlog at offset " + std::to_string(end), "barrier: ", "positions from 2 on"});
}

TEST(Fault, AWalThatCannotBeWritten) {
  EngineWorld w(7);
  ASSERT_EQ(w.publish_and_wait("t", {"a"}), Code::ok);
  const ConsumerId consumer = w.subscribe("t", "c", 1);
  ASSERT_TRUE(w.wait_deliveries(1));
  ASSERT_TRUE(w.wait([&] { return w.engine().quiet(); }));
  w.disk.faults.write_io_error = 1024;
  ASSERT_EQ(w.engine().finish(consumer, w.shard().deliveries[0].id, w.now()), Code::ok);
  w.process->poke();
  expect_names(fault(w), {"topics/74/channels/63.wal at offset 0"});
}

}  // namespace
}  // namespace rq::queue
