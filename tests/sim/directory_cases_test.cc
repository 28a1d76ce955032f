// Page 31: B-09 and B-10: whose data directory it is.
#include <gtest/gtest.h>

#include <map>

#include "sim/harness.h"

namespace rq::sim {
namespace {

std::map<std::string, std::string> snapshot(const SimDisk& disk) {
  std::map<std::string, std::string> out;
  for (const std::string& path : disk.files())
    if (!path.ends_with("/.rustqueue.lock")) out[path] = disk.content(path);  // D-46: the lock file carries the process id
  return out;
}

TEST(DirectoryCases, B_09_ASecondBrokerOnOneDirectoryEndsAndTheFirstGoesOn) {
  BrokerHarness h(9);
  ASSERT_TRUE(h.start());
  ASSERT_EQ(h.publish("t", "before"), "OK");
  broker::Config config = h.config();
  config.network.tcp_address = "127.0.0.1:5150";
  config.network.http_address = "127.0.0.1:5151";
  BrokerProcess second(h.world(), "second", h.disk(), config);
  second.boot();
  ASSERT_TRUE(h.run_until([&] { return !second.running(); }, 10'000));
  ASSERT_TRUE(second.ended);
  EXPECT_EQ(second.ended->exit, broker::Broker::Exit::failed);
  EXPECT_NE(second.ended->reason.find("lock"), std::string::npos) << second.ended->reason;
  EXPECT_EQ(h.publish("t", "after"), "OK");
  Client& consumer = h.consumer("t", "c", 10);
  EXPECT_TRUE(consumer.wait_messages(2));
  EXPECT_TRUE(h.restart()) << h.last_exit_reason();
}

TEST(DirectoryCases, B_10_AnotherNodesDirectoryIsRefusedAndLeftAsItIs) {
  BrokerHarness h(10);
  ASSERT_TRUE(h.start());
  ASSERT_EQ(h.publish("t", "body"), "OK");
  ASSERT_TRUE(h.stop());
  const auto before = snapshot(h.disk());
  h.config().node.id = 2;
  EXPECT_NE(h.start_expecting_refusal(), "");
  EXPECT_EQ(h.last_exit(), broker::Broker::Exit::failed);
  EXPECT_NE(h.last_exit_reason().find("broker.meta"), std::string::npos) << h.last_exit_reason();
  EXPECT_EQ(snapshot(h.disk()), before);
  h.config().node.id = 1;
  EXPECT_TRUE(h.start());
}

}  // namespace
}  // namespace rq::sim
