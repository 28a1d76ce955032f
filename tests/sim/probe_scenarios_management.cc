#include <gtest/gtest.h>

#include "tests/queue/managed_requests.h"
#include "tests/sim/probe_scenarios.h"

namespace rq::sim::scenarios {
namespace {

using queue::Code;
using queue::ManagedAction;
constexpr std::int64_t kHourMs = 3'600'000;

std::uint64_t settled_revision(queue::EngineWorld& w) {
  EXPECT_TRUE(w.wait([&] { return w.engine().quiet(); }));
  return w.engine().registry_revision();
}

}  // namespace

// A delete whose result was not recorded is adopted under another id; both ids answer the same afterwards. There was nothing to
// delete any more.
void management_repeated() {
  queue::EngineWorld w(401);
  ASSERT_EQ(w.admin(queue::Admin::create_topic, "t"), Code::ok);
  const queue::ManagedRequest remove =
      until(on_topic(1, ManagedAction::remove, "t", settled_revision(w)), queue::in_ms(w, kHourMs));
  w.manage(remove);
  ASSERT_TRUE(w.wait([&] { return !w.disk.exists("data/topics/74/manifest"); }));
  w.restart();
  queue::ManagedRequest other = remove;
  other.operation_id = queue::operation_id(2);
  const queue::ManagedDone adopted = w.manage_and_wait(other);
  ASSERT_EQ(adopted.outcome.code, Code::ok);
  EXPECT_EQ(w.manage_and_wait(remove).revision, adopted.revision);
}

// Requests that wait for a slow disk, and a consumer with room, while a fence of their Topic becomes durable.
void management_meets_waiting_requests() {
  queue::EngineOptions options;
  options.max_segment_bytes = 4096;
  queue::EngineWorld w(402, options);
  w.subscribe("t", "c", 10);
  ASSERT_EQ(w.publish_and_wait("t", {std::string(3000, 'a')}), Code::ok);
  const std::uint64_t revision = settled_revision(w);
  w.disk.faults.latency_ns_min = w.disk.faults.latency_ns_max = 5 * kMillisecond;
  w.engine().admin(queue::Admin::pause_topic, "t", {}, static_cast<queue::WaiterId>(1'001), w.now());
  w.process->poke();
  w.world.run_for(kMillisecond);
  const std::uint64_t publish = w.publish("t", {std::string(3000, 'b')});
  w.engine().admin(queue::Admin::create_channel, "t", "d", static_cast<queue::WaiterId>(1'002), w.now());
  const std::uint64_t fence = w.manage(until(on_topic(1, ManagedAction::tombstone, "t", revision), queue::in_ms(w, kHourMs)));
  ASSERT_TRUE(w.wait([&] {
    return w.shard().published.contains(publish) && w.shard().managed.contains(fence) && w.shard().admin.contains(1'002) &&
           !w.shard().closed.empty();
  }));
  EXPECT_EQ(w.shard().admin[1'001].code, Code::ok);
  EXPECT_EQ(w.shard().admin[1'002].code, Code::management_unavailable);
  EXPECT_EQ(w.shard().published[publish].code, Code::management_unavailable);
  EXPECT_EQ(w.shard().managed[fence].outcome.code, Code::ok);
  EXPECT_EQ(w.shard().closed[0].frame, "E_DELIVERY_FAILED topic is tombstoned");
}

// Its leases come back at the next completion of the scrub, and then its files go.
void deleted_while_it_is_scrubbed() {
  queue::EngineOptions options;
  options.max_segment_bytes = 1000;
  queue::EngineWorld w(403, options);
  for (int i = 0; i < 20; ++i) ASSERT_EQ(w.publish_and_wait("t", {std::string(300, 'x')}), Code::ok);
  w.disk.faults.latency_ns_min = w.disk.faults.latency_ns_max = 5 * kMillisecond;
  const std::uint64_t scrub = w.scrub();
  w.world.run_for(2 * kMillisecond);
  EXPECT_EQ(w.admin(queue::Admin::delete_topic, "t"), Code::ok);
  ASSERT_TRUE(w.wait([&] { return w.scrubbed(scrub) != nullptr; }));
  EXPECT_TRUE(w.scrubbed(scrub)->outcome.ok());
  EXPECT_FALSE(w.disk.exists("data/topics/74/manifest"));
}

}  // namespace rq::sim::scenarios
