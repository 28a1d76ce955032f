// Registration by itself, beside an engine and a simulated nsqlookupd, without a Broker around them (D-19a).
#include "core/broker/lookup_registration.h"

#include <gtest/gtest.h>

#include "core/broker/server_view.h"
#include "io/sim/world.h"
#include "sim/lookup_server.h"

namespace rq::broker::test {
namespace {

constexpr const char* kServer = "127.0.0.1:4160";
using Lines = std::vector<std::string>;

// A process that is an engine and its registration.
class Shard final : public io::Shard {
 public:
  Shard(io::Host& host, io::Turn& turn, const Config& config, const queue::EngineOptions& options)
      : engine(host, options), registration(host, config, pool_), turn_(turn) {
    engine.open();
    registration.begin(4150, 4151);
  }
  void expire(Now now) override {
    engine.expire(now);
    registration.expire(now);
  }
  void settle(Now now) override {
    do {
      for (const queue::StatsDone& done : engine.events().stats)
        if (waiter_kind(done.waiter) == WaiterKind::lookup) registration.on_stats(done, now);
      engine.events().clear();
      registration.settle(now, engine);
      engine.advance(now);
    } while (!engine.events().empty());
    engine.submit(now);
  }
  Instant next_deadline() const override { return std::min(engine.next_deadline(turn_.now()), registration.next_deadline()); }

 private:
  ChunkPool pool_;

 public:
  queue::Engine engine;
  LookupRegistration registration;

 private:
  io::Turn& turn_;
};

class Registration : public testing::Test {
 protected:
  Registration() {
    config.network.nsqlookupd_tcp_addresses = {kServer};
    options.data_path = "data";
    process.start();
    process.poke();
    world.run_until([&] { return shard().engine.state() == queue::EngineState::open; }, kSecond);
  }
  Shard& shard() { return *static_cast<Shard*>(process.shard()); }
  // What an HTTP request does; `told`: and says to the registration.
  void admin(queue::Admin action, const std::string& topic, const std::string& channel = {}, bool told = false) {
    shard().engine.admin(action, topic, channel, make_waiter(WaiterKind::http, 1), shard_now());
    process.poke();
    world.run_for(20 * kMillisecond);
    if (!told) return;
    shard().registration.removed(topic, channel);
    process.poke();
  }
  Now shard_now() { return {process.host()->clock.now(), process.host()->clock.wall()}; }
  // What the server has heard since the last call, that much later; PINGs and introductions aside.
  Lines heard(std::int64_t limit_ns) {
    world.run_for(limit_ns);
    Lines lines = std::exchange(server.commands, {});
    std::erase_if(lines, [](const std::string& line) { return line.starts_with("IDENTIFY") || line.starts_with("PING"); });
    return lines;
  }

  sim::World world{1, {}};
  Config config;
  queue::EngineOptions options;
  sim::SimDisk& disk = world.make_disk("disk");
  sim::LookupServer server{world, disk, "lookup", kServer};
  sim::Process& process = world.make_process("registration", disk, [this](io::Host& host, io::Turn& turn) {
    return std::unique_ptr<io::Shard, void (*)(io::Shard*)>(new Shard(host, turn, config, options),
                                                            [](io::Shard* s) { delete static_cast<Shard*>(s); });
  });
};

TEST_F(Registration, NamesAreToldInTheirOrderAndChangesAsTheyCome) {
  admin(queue::Admin::create_channel, "b", "2");
  admin(queue::Admin::create_channel, "b", "1");
  admin(queue::Admin::create_topic, "a");
  server.start();
  EXPECT_EQ(heard(5 * kSecond), (Lines{"REGISTER a", "REGISTER b 1", "REGISTER b 2"}));
  EXPECT_TRUE(shard().registration.registered(kServer));
  admin(queue::Admin::create_channel, "a", "x");
  EXPECT_EQ(heard(kSecond), (Lines{"REGISTER a x"}));
}

TEST_F(Registration, AfterANewConnectionEveryNameThatIsStillThereIsToldAgain) {
  admin(queue::Admin::create_channel, "t", "goes");
  admin(queue::Admin::create_channel, "t", "stays");
  admin(queue::Admin::create_topic, "gone");
  server.start();
  EXPECT_EQ(heard(5 * kSecond), (Lines{"REGISTER gone", "REGISTER t goes", "REGISTER t stays"}));
  server.stop();
  world.run_for(kSecond);
  EXPECT_FALSE(shard().registration.registered(kServer));
  // Deleted while nobody hears of it: no UNREGISTER is kept for later, the names are just not there any more.
  admin(queue::Admin::delete_channel, "t", "goes", true);
  admin(queue::Admin::delete_topic, "gone", {}, true);
  admin(queue::Admin::create_topic, "new");
  server.start();
  EXPECT_EQ(heard(20 * kSecond), (Lines{"REGISTER new", "REGISTER t stays"}));
}

TEST_F(Registration, ADeletedTopicIsTakenBackChannelsFirstAndComesBackAnew) {
  server.start();
  admin(queue::Admin::create_channel, "t", "c");
  EXPECT_EQ(heard(2 * kSecond), (Lines{"REGISTER t c"}));
  shard().engine.admin(queue::Admin::delete_topic, "t", {}, make_waiter(WaiterKind::http, 1), shard_now());
  admin(queue::Admin::create_channel, "t", "c");
  shard().registration.removed("t", {});
  process.poke();
  EXPECT_EQ(heard(2 * kSecond), (Lines{"UNREGISTER t c", "UNREGISTER t", "REGISTER t c"}));
}

TEST_F(Registration, AnAddressThatIsTakenAwayEndsItsConnectionAndOneThatIsAddedHearsAll) {
  sim::LookupServer other{world, disk, "other", "127.0.0.1:4260"};
  server.start();
  other.start();
  admin(queue::Admin::create_topic, "t");
  world.run_for(2 * kSecond);
  EXPECT_EQ(server.names(), (std::set<std::string>{"t"}));
  shard().registration.set_addresses({"127.0.0.1:4260", "127.0.0.1:4260"});
  process.poke();
  world.run_for(5 * kSecond);
  EXPECT_EQ(shard().registration.addresses(), (Lines{"127.0.0.1:4260"}));
  EXPECT_EQ(server.connections(), 0u);
  EXPECT_EQ(other.names(), (std::set<std::string>{"t"}));
  shard().registration.end();
  process.poke();
  world.run_for(kSecond);
  EXPECT_EQ(other.connections(), 0u);
}

}  // namespace
}  // namespace rq::broker::test
