// What AUTH keeps and asks, without connections: the cache, its memory, and questions that nobody waits for any more.
#include "core/broker/auth_service.h"

#include <gtest/gtest.h>

#include "sim/auth_server.h"
#include "tests/broker/machine_process.h"

namespace rq::broker::test {
namespace {

constexpr const char* kServer = "127.0.0.1:4181";

class Auth : public testing::Test {
 protected:
  Auth() {
    config.security.auth_http_addresses = {kServer};
    config.limits.auth_max_ttl_seconds = 60;
    server.answer = [this](const std::string&) { return reply; };
    server.start();
    world.run_for(kMillisecond);
  }
  MachineProcess<AuthService>& service() {
    if (!process)
      process.emplace(world, disk,
                      [this](io::Host& host, ChunkPool& pool) { return std::make_unique<AuthService>(host, config, pool); });
    return *process;
  }
  void send(std::uint32_t slot, const std::string& secret) {
    service()->ask(slot, {"10.0.0.1", false, "", secret}, now());
    service().poke();
  }
  AuthAnswer ask(std::uint32_t slot, const std::string& secret) {
    send(slot, secret);
    EXPECT_TRUE(world.run_until([&] { return service()->has_answers(); }, 20 * kSecond));
    std::vector<AuthAnswer> answers = service()->take_answers(now());
    EXPECT_EQ(answers.size(), 1u);
    if (answers.empty()) return {};
    EXPECT_EQ(answers[0].slot, slot);
    return std::move(answers[0]);
  }
  std::size_t asked() const { return server.heads.size(); }
  Now now() const { return {world.now(), WallTime{world.now().ns}}; }

  Config config;
  sim::World world{1, {}};
  sim::SimDisk& disk = world.make_disk("disk");
  sim::AuthServer server{world, disk, "auth", kServer};
  std::string reply = sim::AuthServer::grant(R"(["publish"])", "t", R"([".*"])", 10);
  std::optional<MachineProcess<AuthService>> process;
};

TEST_F(Auth, AGrantIsAskedForOnceInItsTtl) {
  const AuthAnswer first = ask(1, "s"), second = ask(2, "s");
  EXPECT_EQ(first.verdict, AuthVerdict::granted);
  EXPECT_EQ(second.verdict, AuthVerdict::granted);
  EXPECT_EQ(second.lease.expires(), first.lease.expires());
  EXPECT_EQ(asked(), 1u);
  ask(3, "another");
  EXPECT_EQ(asked(), 2u);
  world.run_for(10 * kSecond);
  ask(4, "s");
  EXPECT_EQ(asked(), 3u) << "its time is over";
}

TEST_F(Auth, RefusalsAndFailuresAreAskedForEachTime) {
  const std::pair<std::string, AuthVerdict> replies[] = {{sim::AuthServer::status(403), AuthVerdict::denied},
                                                         {sim::AuthServer::status(500), AuthVerdict::failed}};
  for (const auto& [text, verdict] : replies) {
    reply = text;
    const std::size_t before = asked();
    EXPECT_EQ(ask(1, "s").verdict, verdict);
    EXPECT_EQ(ask(1, "s").verdict, verdict);
    EXPECT_EQ(asked(), before + 2);
  }
  EXPECT_EQ(service()->cached(), 0u);
  EXPECT_EQ(service()->memory_used(), 0u);
}

TEST_F(Auth, ATtlIsCutToTheLongestOne) {
  reply = sim::AuthServer::grant(R"(["publish"])", "t", R"([".*"])", 1'000'000);
  const AuthAnswer answer = ask(1, "s");
  EXPECT_LE(answer.lease.expires(), world.now() + 60 * kSecond);
}

TEST_F(Auth, TheCacheForgetsTheOldestBeyondItsEntries) {
  config.limits.auth_cache_max_entries = 2;
  for (const char* secret : {"a", "b", "c"}) ask(1, secret);
  EXPECT_EQ(service()->cached(), 2u);
  ask(1, "c");
  ask(1, "b");
  EXPECT_EQ(asked(), 3u);
  ask(1, "a");
  EXPECT_EQ(asked(), 4u);
}

// I3: nobody is answered, and the next one who asks need not.
TEST_F(Auth, AQuestionThatNobodyWaitsForStillFillsTheCache) {
  send(1, "s");
  service()->cancel(1);
  ASSERT_TRUE(world.run_until([&] { return service()->has_answers(); }, 20 * kSecond));
  EXPECT_TRUE(service()->take_answers(now()).empty());
  EXPECT_EQ(ask(2, "s").verdict, AuthVerdict::granted);
  EXPECT_EQ(asked(), 1u);
}

// I1: a lease and the cache are charged for as long as they hold grants.
TEST_F(Auth, MemoryIsHeldByLeasesAndByTheCache) {
  std::optional<AuthAnswer> held = ask(1, "s");
  const std::uint64_t both = service()->memory_used();
  EXPECT_GT(both, 0u);
  EXPECT_EQ(both % 4'096, 0u);
  held.reset();
  EXPECT_EQ(service()->memory_used(), both / 2);
  ask(2, "s");
  ask(3, "another");
  EXPECT_EQ(service()->memory_used(), both);
}

TEST_F(Auth, WithoutMemoryForAnAnswerNobodyIsAsked) {
  config.limits.auth_memory_bytes = AuthService::kAnswersCharged * config.limits.auth_response_bytes - 1;
  EXPECT_EQ(ask(1, "s").verdict, AuthVerdict::overloaded);
  EXPECT_EQ(asked(), 0u);
  EXPECT_EQ(service()->memory_used(), 0u);
}

}  // namespace
}  // namespace rq::broker::test
