// Which bodies stay in memory after a publish (storage.entry_cache_bytes).
#include <gtest/gtest.h>

#include "tests/queue/engine_world.h"

namespace rq::queue {
namespace {

constexpr std::size_t kBody = 1'000;

void publish(EngineWorld& w, int messages) {
  for (int i = 0; i < messages; ++i) ASSERT_EQ(w.publish_and_wait("t", {std::string(kBody, 'b')}), Code::ok);
}

TEST(TailReaders, WithoutAChannelNoBodyIsKept) {
  EngineWorld w(1);
  publish(w, 5);
  w.subscribe("t", "c", 10);
  ASSERT_TRUE(w.wait_deliveries(5));
  EXPECT_EQ(w.engine().metrics().payload_cache_hits, 0u);
  w.finish_all();
  // The new Channel is seen at once.
  publish(w, 5);
  ASSERT_TRUE(w.wait_deliveries(5));
  EXPECT_EQ(w.engine().metrics().payload_cache_hits, 5u);
}

TEST(TailReaders, AChannelWhoseBacklogFitsFindsItInMemory) {
  EngineWorld w(2);
  ASSERT_EQ(w.admin(Admin::create_channel, "t", "c"), Code::ok);
  publish(w, 20);
  w.subscribe("t", "c", 50);
  ASSERT_TRUE(w.wait_deliveries(20));
  EXPECT_EQ(w.engine().metrics().payload_cache_hits, 20u);
}

TEST(TailReaders, WhatAChannelWillNotReachInTimeTakesNothingFromWhatItWill) {
  EngineOptions options;
  options.entry_cache_bytes = 16 * 1024;
  EngineWorld w(3, options);
  ASSERT_EQ(w.admin(Admin::create_channel, "t", "c"), Code::ok);
  for (int i = 0; i < 100; ++i) {
    publish(w, 1);
    w.world.run_for(kSecond);  // each is looked at by itself
  }
  w.subscribe("t", "c", 200);
  ASSERT_TRUE(w.wait_deliveries(100));
  const std::uint64_t hits = w.engine().metrics().payload_cache_hits;
  EXPECT_GE(hits, 10u);  // the oldest, which are read first
  EXPECT_LE(hits, 16u);
  w.finish_all();
  // It has caught up.
  w.world.run_for(kSecond);
  publish(w, 10);
  ASSERT_TRUE(w.wait_deliveries(10));
  EXPECT_EQ(w.engine().metrics().payload_cache_hits, hits + 10);
}

}  // namespace
}  // namespace rq::queue
