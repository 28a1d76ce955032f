// One nsqlookupd server as the Broker sees it, by itself: its address, and more to say than may wait.
#include "core/broker/lookup_peer.h"

#include <gtest/gtest.h>

#include <memory>

#include "io/sim/world.h"
#include "sim/lookup_server.h"

namespace rq::broker::test {
namespace {

constexpr const char* kServer = "127.0.0.1:4160";

// A process that is nothing but a peer.
class PeerShard final : public io::Shard {
 public:
  explicit PeerShard(io::Host& host) : peer(host, pool_, kServer, "{}") {}
  void expire(Now now) override { peer.expire(now); }
  void settle(Now now) override {
    peer.send(std::exchange(commands, {}));
    peer.settle(now, names);
  }
  Instant next_deadline() const override { return commands.empty() ? peer.next_deadline() : Instant{}; }

 private:
  ChunkPool pool_;

 public:
  LookupPeer peer;
  LookupNames names;
  LookupNames::Commands commands;
};

TEST(LookupPeer, ItStartsOverRatherThanKeepMoreChangesThanItMay) {
  sim::World world(1, {});
  sim::SimDisk& disk = world.make_disk("disk");
  sim::LookupServer server(world, disk, "lookup", kServer);
  std::vector<std::string> lost;
  world.set_log([&](std::string_view, io::Level, std::string_view event, std::string_view fields) {
    if (event == "nsqlookupd_lost") lost.emplace_back(fields);
  });
  PeerShard* shard = nullptr;
  sim::Process& process = world.make_process("peer", disk, [&](io::Host& host, io::Turn&) {
    shard = new PeerShard(host);
    return std::unique_ptr<io::Shard, void (*)(io::Shard*)>(shard, [](io::Shard* s) { delete static_cast<PeerShard*>(s); });
  });
  server.start();
  world.run_for(100 * kMillisecond);
  process.start();
  ASSERT_TRUE(world.run_until([&] { return shard->peer.registered(); }, kSecond));
  server.answer = [](std::size_t, const std::string&, const std::string&) { return std::string(); };  // so that changes wait
  const auto change = [&](std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) shard->commands.push_back("REGISTER t" + std::to_string(i) + "\n");
    world.run_for(500 * kMillisecond);
  };
  const std::int64_t since = world.now().ns;
  world.run_until([&] { return server.commands.size() == 2; }, 20 * kSecond);  // a PING: it wakes when it is due
  EXPECT_LT(world.now().ns - since, 16 * kSecond);
  change(LookupPeer::kWaitingMax);
  EXPECT_TRUE(lost.empty());
  EXPECT_TRUE(shard->peer.registered());
  world.run_until([&] { return !lost.empty(); }, 2 * kSecond);
  ASSERT_EQ(lost.size(), 1u);
  EXPECT_NE(lost[0].find("timed out"), std::string::npos) << "the PING";
  server.answer = {};
  ASSERT_TRUE(world.run_until([&] { return shard->peer.registered(); }, 20 * kSecond));
  shard->commands.assign(LookupPeer::kWaitingMax + 1, "REGISTER t\n");
  world.run_until([&] { return lost.size() == 2; }, 20 * kSecond);
  ASSERT_EQ(lost.size(), 2u);
  EXPECT_NE(lost[1].find("too many changes wait"), std::string::npos);
  EXPECT_TRUE(world.run_until([&] { return shard->peer.registered(); }, 20 * kSecond));
}

TEST(LookupPeer, AddressesAreHostAndPort) {
  for (const char* good : {"lookup:4160", "127.0.0.1:1", "[::1]:65535", "a.b-c_d:4160"}) EXPECT_TRUE(is_host_port(good)) << good;
  for (const char* bad : {"", ":1", "a", "a:", "a:0", "a:65536", "a:01", "a:x", "::1:1", "[]:1", "a b:1", "http://a:1", "a\"b:1"})
    EXPECT_FALSE(is_host_port(bad)) << bad;
}

}  // namespace
}  // namespace rq::broker::test
