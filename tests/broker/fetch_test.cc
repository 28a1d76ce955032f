// One HTTP request of the Broker's own, against servers that answer, lie, stall and vanish.
#include "core/http/fetch.h"

#include <gtest/gtest.h>

#include "sim/web_server.h"
#include "tests/broker/machine_process.h"

namespace rq::broker::test {
namespace {

constexpr const char* kServer = "127.0.0.1:8080";

class Probe final : public http::Fetch {
 public:
  Probe(io::Host& host, ChunkPool& pool) : Fetch(host, pool, 100) {}
  void settle(Now now) {
    if (std::exchange(wanted, false))
      start({kServer, false, "GET /x HTTP/1.1\r\nHost: h\r\n\r\n", 2 * kSecond, 5 * kSecond}, now);
    if (std::exchange(given_up, false)) {
      stop();
      ended_before = ends.size();
    }
    Fetch::settle(now);
  }
  bool at_rest() const { return !running() && idle(); }
  bool wanted = true, given_up = false;
  std::vector<std::string> ends;
  std::size_t ended_before = 0;  // when it was given up

 private:
  void on_answer(int status, const std::string& body) override { ends.push_back(std::to_string(status) + " " + body); }
  void on_failure(std::string_view why) override { ends.emplace_back(why); }
};

class Fetch : public testing::Test {
 protected:
  // What the fetch came to, and how long it took.
  std::string outcome() {
    const std::int64_t since = world.now().ns;
    EXPECT_TRUE(world.run_until([&] { return !probe->ends.empty() && probe->at_rest(); }, 20 * kSecond));
    took_ns = world.now().ns - since;
    EXPECT_EQ(probe->ends.size(), 1u);
    return probe->ends.empty() ? "" : probe->ends[0];
  }
  void again() {
    probe->ends.clear();
    probe->wanted = true;
    probe.poke();
  }

  sim::World world{1, {}};
  sim::SimDisk& disk = world.make_disk("disk");
  sim::WebServer server{world, disk, "server", kServer};
  MachineProcess<Probe> probe{world, disk, [](io::Host& host, ChunkPool& pool) { return std::make_unique<Probe>(host, pool); }};
  std::int64_t took_ns = 0;
};

TEST_F(Fetch, AnAnswerComesOnceWithItsStatusAndBody) {
  EXPECT_EQ(outcome(), "connection refused") << "nobody listens yet";
  server.start();
  world.run_for(kMillisecond);
  server.answer = [](const std::string& head) { return sim::WebServer::status(418, head.substr(0, 6)); };
  for (int i = 0; i < 3; ++i) {
    again();
    EXPECT_EQ(outcome(), "418 GET /x");
  }
  EXPECT_EQ(server.heads.size(), 3u);
}

TEST_F(Fetch, WhatIsNoAnswerIsAFailure) {
  server.start();
  outcome();
  const std::pair<std::string, const char*> answers[] = {
      {"NSQ\r\n\r\n", "no usable answer"},
      {sim::WebServer::document(std::string(101, 'x')), "no usable answer"},
      {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfou", "no usable answer"},
      {"HTTP/1.1 200 OK\r\n\r\n" + std::string(100, 'x'), "200 "},
      {"HTTP/1.1 200 OK\r\n\r\n" + std::string(101, 'x'), "no usable answer"},
      {"HTTP/1.1 200 OK\r\nX: " + std::string(Probe::kHeadBytesMax, 'x') + "\r\n\r\n", "no usable answer"},
  };
  for (const auto& [answer, wanted] : answers) {
    server.answer = [text = answer](const std::string&) { return text; };
    again();
    EXPECT_TRUE(outcome().starts_with(wanted)) << answer.substr(0, 60) << ": " << probe->ends[0];
  }
}

TEST_F(Fetch, SilenceEndsAtTheLimit) {
  server.start();
  outcome();
  server.answer = [](const std::string&) { return std::string(); };
  again();
  EXPECT_EQ(outcome(), "timed out");
  EXPECT_GE(took_ns, 5 * kSecond);
  EXPECT_LT(took_ns, 6 * kSecond);
  server.answer = nullptr;
  again();
  EXPECT_EQ(outcome(), "500 ");
}

TEST_F(Fetch, AServerThatCannotBeReachedEndsAtTheLimitOfConnecting) {
  server.start();
  outcome();
  world.partition("machine", "server");
  again();
  outcome();
  EXPECT_GE(took_ns, 2 * kSecond);
  EXPECT_LT(took_ns, 3 * kSecond);
}

// I2, I3: wherever it is given up nothing is said of it, and it comes to rest.
TEST_F(Fetch, GivenUpAtAnyMomentItSaysNothing) {
  server.start();
  outcome();
  server.late_ns = [] { return 2 * kMillisecond; };
  for (std::int64_t after_us = 0; after_us < 4'000; after_us += 50) {
    again();
    world.run_for(after_us * kMicrosecond);
    probe->given_up = true;
    probe.poke();
    ASSERT_TRUE(world.run_until([&] { return probe->at_rest() && !probe->given_up; }, kSecond)) << after_us;
    world.run_for(10 * kMillisecond);
    EXPECT_EQ(probe->ends.size(), probe->ended_before) << after_us;
  }
}

}  // namespace
}  // namespace rq::broker::test
