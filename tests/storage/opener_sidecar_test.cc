// Opening: sidecars of sealed segments (page 20 section 4.2).
#include <gtest/gtest.h>

#include "tests/storage/directory.h"

namespace rq::storage::testing {
namespace {

using namespace examples;

TEST(Recovery, S_27_AMissingOrInvalidSidecarIsRewritten) {
  const auto with = [](std::size_t at, std::string_view bytes, bool fix_crc) {
    std::string sidecar = kEx4;
    sidecar.replace(at, bytes.size(), bytes);
    if (fix_crc)
      store32(reinterpret_cast<std::byte*>(sidecar.data()) + 56, crc32c(bytes_of(std::string_view(sidecar).substr(0, 56))));
    return sidecar;
  };
  using namespace std::string_view_literals;
  for (const std::string& sidecar : {std::string(), with(56, "\0"sv, false), with(4, "\1"sv, true),
                                     kEx4.substr(0, kEx4.size() - 1), with(15, "\xad"sv, true), kEx4 + "x"}) {
    Machine machine;
    put_g1(machine);
    machine.put(kSidecar1, sidecar);
    const Opened opened = machine.open();
    ASSERT_TRUE(opened.ok()) << opened.faults[0].message();
    EXPECT_EQ(machine.disk.durable_content(kSidecar1), kEx4);
    EXPECT_EQ(opened.topic("events").sealed[0].crc, 0xeed37fafu);
  }
  Machine machine;
  put_g1(machine);
  machine.disk.remove(kSidecar1);
  ASSERT_TRUE(machine.open().ok());
  EXPECT_EQ(machine.disk.durable_content(kSidecar1), kEx4);
}

std::string damaged_sidecar(bool locations, bool metadata) {
  std::string sidecar = kEx4;
  if (locations) sidecar[64 + 8] ^= 1;
  if (metadata) sidecar[64 + 48 + 12 + 60 + 3] ^= 1;
  return sidecar;
}

TEST(Recovery, S_28_DamagedMetadataIsRebuilt) {
  Machine machine;
  put_g1(machine);
  machine.put(kSidecar1, damaged_sidecar(false, true));
  const Opened opened = machine.open();
  ASSERT_TRUE(opened.ok());
  EXPECT_EQ(opened.topic("events").sealed[0].message_count, 3u);
  EXPECT_EQ(machine.content(kSidecar1), kEx4);
}

TEST(Recovery, S_29_DamagedLocationsAloneStillOpen) {
  Machine machine;
  put_g1(machine);
  machine.put(kSidecar1, damaged_sidecar(true, false));
  EXPECT_TRUE(machine.open().ok());
}

TEST(Recovery, S_30_DamagedLocationsAndMetadataFallBackToAScan) {
  Machine machine;
  put_g1(machine);
  machine.put(kSidecar1, damaged_sidecar(true, true));
  const Opened opened = machine.open();
  ASSERT_TRUE(opened.ok());
  EXPECT_EQ(opened.topic("events").sealed[0].message_count, 3u);
  EXPECT_EQ(machine.content(kSidecar1), kEx4);
}

TEST(Recovery, S_31_ADamagedPayloadBehindAGoodSidecarStillOpens) {
  Machine machine;
  put_g1(machine);
  std::string segment = kEx1 + kEx2;
  segment[72] ^= 1;
  machine.put(kSegment1, segment);
  EXPECT_TRUE(machine.open().ok());
}

TEST(Recovery, AGoodSidecarOfAnotherSegmentIsNotBelieved) {
  Machine machine;
  put_three_segments(machine);
  machine.put(kSidecar1, machine.content(kPaths.sidecar("events", 3)));  // of a segment of equal length (D-44)
  const Opened opened = machine.open();
  ASSERT_TRUE(opened.ok()) << opened.faults[0].message();
  EXPECT_EQ(opened.topic("events").sealed[0].first_position, 1u);
  Log log;
  log.add(1, 1, "a");
  log.add(2, 2, "b");
  EXPECT_EQ(machine.content(kSidecar1), log.sidecar());
}

TEST(Recovery, S_32_StraySidecarsAreIgnored) {
  Machine machine;
  put_g1(machine);
  machine.put(kPaths.sidecar("events", 3), "beside the active segment");
  machine.put(kPaths.sidecar("events", 77), "without segment");
  machine.put(temporary_of(kSidecar1), "half");
  const Opened opened = machine.open();
  ASSERT_TRUE(opened.ok());
  EXPECT_EQ(opened.topic("events").sealed.size(), 1u);
  EXPECT_FALSE(machine.disk.exists(kPaths.sidecar("events", 77)));
  EXPECT_FALSE(machine.disk.exists(temporary_of(kSidecar1)));
}

}  // namespace
}  // namespace rq::storage::testing
