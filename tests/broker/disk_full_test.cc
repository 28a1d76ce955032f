// A volume that fills up: pressure, protective eviction, and the reserve with which a full one is drained (page 30 section 8,
// D-27, D-42b).
#include "core/broker/disk_guard.h"
#include "tests/broker/tcp_support.h"

namespace rq::broker::test {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;

io::DiskUsage used(std::uint64_t percent) { return {1'000'000, 1'000'000 - percent * 10'000}; }

TEST(DiskFull, Q_70_PressureStartsAtTheHighWatermarkAndEndsBelowTheLowOneWithSpaceFree) {
  Config::Storage storage;
  storage.min_free_bytes = 1'000;
  EXPECT_FALSE(pressure_after(used(84), false, storage));
  EXPECT_TRUE(pressure_after(used(85), false, storage));
  EXPECT_TRUE(pressure_after(used(80), true, storage));
  EXPECT_FALSE(pressure_after(used(80), false, storage));
  EXPECT_FALSE(pressure_after(used(74), true, storage));
  storage.min_free_bytes = 300'000;
  EXPECT_TRUE(pressure_after(used(74), true, storage));
  EXPECT_EQ(used_percent({0, 0}), 100u);
}

TEST(DiskFull, TheBytesUntilPressureAreThoseToTheNearerOfTheTwoLimits) {
  Config::Storage storage;
  storage.min_free_bytes = 0;
  EXPECT_EQ(bytes_until_pressure(used(80), storage), 50'000u);
  EXPECT_EQ(bytes_until_pressure(used(85), storage), 0u);
  EXPECT_EQ(bytes_until_pressure(used(99), storage), 0u);
  storage.min_free_bytes = 190'000;
  EXPECT_EQ(bytes_until_pressure(used(80), storage), 10'000u);
  EXPECT_EQ(bytes_until_pressure(used(81), storage), 0u);
  EXPECT_EQ(bytes_until_pressure({0, 0}, storage), 0u);
}

class Volume : public testing::Test {
 protected:
  Volume()
      : h(1, [](Config& config) {
          config.storage.min_free_bytes = 0;
          config.storage.max_segment_bytes = kMiB;
          config.limits.max_body_bytes = config.queue.max_message_bytes = kMiB / 2;
          config.storage.maintenance_startup_delay_seconds = 1'000'000;
        }) {
    h.disk().capacity = 100 * kMiB;
  }
  void publish(int count) {
    for (int i = 0; i < count; ++i) ASSERT_EQ(h.publish("t", std::to_string(i) + std::string(kMiB / 4, 'x')), "OK");
  }
  void fill_to(std::uint64_t bytes) {
    ASSERT_LE(h.disk().used(), bytes);
    h.disk().put("filler", std::string(bytes - h.disk().used(), 'f'));
  }
  std::uint64_t evictions() { return h.broker().engine().metrics().protective_evictions; }
  BrokerHarness h;
};

// A reading a second would see nothing of this until the volume is full.
TEST_F(Volume, PublishersThatFillItWithinASecondAreThrottledBeforeItIsFull) {
  ASSERT_TRUE(h.start());
  h.run_for(100);
  fill_to(40 * kMiB);
  h.run_for(2'000);
  const Instant began = h.now();
  std::string answer;
  while ((answer = h.publish("t", std::string(kMiB / 4, 'x'))) == "OK") ASSERT_LT(h.disk().used(), 97 * kMiB);
  EXPECT_EQ(answer, "E_THROTTLED PUB disk pressure");
  EXPECT_LT(h.now() - began, kSecond);
  EXPECT_GE(h.disk().used(), 68 * kMiB);  // at 85, and the reserve was given back
  EXPECT_EQ(h.publish("t", "the connection goes on"), "E_THROTTLED PUB disk pressure");
}

// I-47: without the switch nothing unfinished goes.
TEST_F(Volume, Q_71_AfterTheGraceOneSegmentGoesEverySecondAndNoneWithoutTheSwitch) {
  for (const bool enabled : {false, true}) {
    h.config().storage.protective_eviction_enabled = enabled;
    ASSERT_TRUE(enabled ? h.restart() : h.start());
    if (!enabled) publish(24);
    h.disk().remove("filler");
    fill_to(90 * kMiB);
    ASSERT_TRUE(h.run_until([&] { return h.broker().disk_pressure(); }));
    h.run_for(58'500);
    EXPECT_EQ(evictions(), 0u);
    h.run_for(5'000);
    EXPECT_GE(evictions(), enabled ? 3u : 0u);
    EXPECT_LE(evictions(), enabled ? 5u : 0u);
  }
}

class FullVolume : public Volume {
 protected:
  void SetUp() override {
    h.config().storage.min_free_bytes = 20 * kMiB;
    ASSERT_TRUE(h.start());
    publish(8);
    ASSERT_EQ(h.http("POST", "/channel/create?topic=t&channel=c").status, 200);
    h.run_for(3'000);
    EXPECT_GE(h.disk().used(), 16 * kMiB);  // the reserve is taken
    EXPECT_LE(h.disk().used(), 20 * kMiB);
    fill_to(100 * kMiB);  // not a byte is left
  }
  void drain() {
    EXPECT_TRUE(h.broker().disk_pressure());
    EXPECT_NE(h.publish("t", "refused"), "OK");
    Client& client = h.consumer("t", "c", 10);
    for (int i = 0; i < 8; ++i) {
      const auto message = client.message();
      ASSERT_TRUE(message) << i;
      client.fin(message->id);
    }
    ASSERT_TRUE(h.run_until([&] { return channel_stat(h, "t", "c", "depth") == 0; }));
    EXPECT_TRUE(h.stop());
  }
};

TEST_F(FullVolume, IsOpenedAndDrainedWithTheReserveAfterAKill) {
  h.kill();
  EXPECT_EQ(h.disk().used(), 100 * kMiB);
  ASSERT_TRUE(h.start()) << h.last_exit_reason();
  drain();
}

TEST_F(FullVolume, IsDrainedWithTheReserveWhileTheProcessRuns) {
  h.run_for(2'000);
  EXPECT_LT(h.disk().used(), 85 * kMiB);
  drain();
  h.disk().remove("filler");
  ASSERT_TRUE(h.start());
  EXPECT_EQ(h.publish("t", "there is space again"), "OK");
}

}  // namespace
}  // namespace rq::broker::test
