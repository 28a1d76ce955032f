// Scripts of disk steps: their order, what a failure leaves, and how many round trips they take.
#include "core/storage/script.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "core/storage/paths.h"
#include "io/sim/world.h"

namespace rq::storage {
namespace {

constexpr std::int64_t kCall = 10 * kMillisecond;  // what each call takes

struct ScriptShard final : io::Shard {
  explicit ScriptShard(io::Host& host)
      : script(host, this, [](void* self, Script&) { static_cast<ScriptShard*>(self)->done = true; }) {}
  void expire(Now) override {}
  void settle(Now) override {}
  Instant next_deadline() const override { return Instant::never(); }
  Script script;
  bool done = false;
};

struct ScriptWorld {
  ScriptWorld() {
    disk.faults.latency_ns_min = disk.faults.latency_ns_max = kCall;
    process.start();
  }
  ~ScriptWorld() { process.kill(); }
  ScriptShard& shard() { return *static_cast<ScriptShard*>(process.shard()); }
  Script& script() { return shard().script; }
  bool run() {
    return world.run_until([&] { return shard().done; }, kSecond);
  }

  sim::World world{1};
  sim::SimDisk& disk = world.make_disk("machine");
  sim::Process& process = world.make_process("writer", disk, [](io::Host& host, io::Turn&) {
    return std::unique_ptr<io::Shard, void (*)(io::Shard*)>(new ScriptShard(host),
                                                            [](io::Shard* shard) { delete static_cast<ScriptShard*>(shard); });
  });
};

TEST(Script, WhatIsDoneToAFileThatItOpenedTakesOneRoundTripBehindTheOpening) {
  ScriptWorld w;
  const std::int64_t start = w.world.now().ns;
  w.script().write_new("/file", "content");
  w.script().start();
  ASSERT_TRUE(w.run());
  EXPECT_FALSE(w.script().failed());
  EXPECT_EQ(w.disk.content("/file"), "content");
  EXPECT_LT(w.world.now().ns - start, 3 * kCall);
}

TEST(Script, NothingBehindAHoldHappensBeforeTheRelease) {
  ScriptWorld w;
  w.disk.put("/file", "old");
  w.script().write_new("/file.tmp", "new");
  w.script().hold();
  w.script().rename("/file.tmp", "/file");
  w.script().start();
  EXPECT_FALSE(w.run());
  EXPECT_TRUE(w.script().running());
  EXPECT_EQ(w.disk.content("/file.tmp"), "new");
  EXPECT_EQ(w.disk.content("/file"), "old");
  w.script().release(1);
  w.script().release(1);
  ASSERT_TRUE(w.run());
  EXPECT_EQ(w.disk.content("/file"), "new");
}

TEST(Script, AReleaseThatCameFirstLetsItThrough) {
  ScriptWorld w;
  w.script().write_new("/file.tmp", "new");
  w.script().hold();
  w.script().rename("/file.tmp", "/file");
  w.script().start();
  w.script().release(1);
  ASSERT_TRUE(w.run());
  EXPECT_EQ(w.disk.content("/file"), "new");
}

TEST(Script, AFileIsCreatedBeforeItsContentIsKnown) {
  ScriptWorld w;
  w.disk.put("/file", "old");
  w.script().write_new_later("/file.tmp");
  w.script().hold();
  w.script().rename("/file.tmp", "/file");
  w.script().start();
  EXPECT_FALSE(w.run());
  ASSERT_TRUE(w.script().held());
  EXPECT_EQ(w.disk.content("/file.tmp"), "");
  w.script().supply("new");
  w.script().release(1);
  EXPECT_FALSE(w.script().held());
  w.script().release(1);
  EXPECT_FALSE(w.run());
  EXPECT_TRUE(w.script().held());
  EXPECT_EQ(w.disk.content("/file.tmp"), "new");
  EXPECT_EQ(w.disk.content("/file"), "old");
  EXPECT_EQ(w.disk.handles_open(), 0u);
  w.script().release(2);
  ASSERT_TRUE(w.run());
  EXPECT_EQ(w.disk.content("/file"), "new");
}

TEST(Script, AfterAFailedAppendTheFileIsClosedAndNothingIsRenamed) {
  ScriptWorld w;
  w.disk.put("/file", "old");
  w.script().replace_file("/file", "new");
  w.script().start();
  w.world.run_for(kCall + kMillisecond);  // opened
  w.disk.faults.write_io_error = 1'024;
  ASSERT_TRUE(w.run());
  ASSERT_TRUE(w.script().failed());
  EXPECT_STREQ(w.script().error().op, "append");
  EXPECT_EQ(w.script().fault().file, temporary_of("/file"));
  EXPECT_EQ(w.disk.content("/file"), "old");
  EXPECT_EQ(w.disk.handles_open(), 0u);
}

}  // namespace
}  // namespace rq::storage
