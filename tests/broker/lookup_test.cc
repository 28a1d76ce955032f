// Registration with nsqlookupd servers in the simulated world (page 10 section 7.6, D-19a).
#include "tests/broker/lookup_support.h"

namespace rq::broker::test {
namespace {

TEST_F(Lookup, WhatIsThereIsRegisteredOnceTheBrokerServes) {
  ASSERT_TRUE(h.start());
  ASSERT_EQ(h.publish("alone", "x"), "OK");
  h.consumer("t", "a");
  h.consumer("t", "b");
  h.run_for(100);
  first.start();
  ASSERT_TRUE(h.restart());
  ASSERT_TRUE(shows(first, {"alone", "t", "t a", "t b"}));
  EXPECT_TRUE(h.run_until([&] { return logged("nsqlookupd_registered") > 0; }));
  EXPECT_EQ(first.commands[0], R"(IDENTIFY {"broadcast_address":"127.0.0.1","hostname":"127.0.0.1","http_port":4151,)"
                               R"("tcp_port":4150,"version":"1.3.0+rustqueue.)" RQ_VERSION R"("})");
  const std::vector<std::string> rest(first.commands.begin() + 1, first.commands.end());
  EXPECT_EQ(rest, (std::vector<std::string>{"REGISTER alone", "REGISTER t a", "REGISTER t b"}));
}

TEST_F(Lookup, NamesAreRegisteredAsTheyComeAndTakenBackAsTheyGo) {
  first.start();
  ASSERT_TRUE(h.start());
  ASSERT_EQ(h.publish("t", "x"), "OK");
  ASSERT_TRUE(shows(first, {"t"}));
  Client& gone = h.consumer("t", "gone#ephemeral");
  Client& both = h.consumer("e#ephemeral", "c#ephemeral");
  h.consumer("t", "stays");
  ASSERT_TRUE(shows(first, {"t", "t stays", "t gone#ephemeral", "e#ephemeral", "e#ephemeral c#ephemeral"}));
  gone.close();
  both.close();
  ASSERT_TRUE(shows(first, {"t", "t stays"}));
  EXPECT_EQ(h.http("POST", "/channel/delete?topic=t&channel=stays").status, 200);
  ASSERT_TRUE(shows(first, {"t"}));
  EXPECT_EQ(h.http("POST", "/topic/create?topic=made").status, 200);
  EXPECT_EQ(h.http("POST", "/topic/delete?topic=t").status, 200);
  ASSERT_TRUE(shows(first, {"made"}));
  EXPECT_EQ(first.connections(), 1u);
}

// A tool that deletes a Topic takes it off the servers first and then asks the Broker: a Topic that is back a moment later must
// be registered anew, although nothing has changed between two looks at the names.
TEST_F(Lookup, ATopicThatIsDeletedAndComesBackAtOnceIsRegisteredAnew) {
  first.start();
  ASSERT_TRUE(h.start());
  h.consumer("t", "c");
  ASSERT_TRUE(shows(first, {"t", "t c"}));
  EXPECT_EQ(h.http("POST", "/topic/delete?topic=t").status, 200);
  EXPECT_EQ(h.http("POST", "/topic/create?topic=t").status, 200);
  EXPECT_EQ(h.http("POST", "/channel/create?topic=t&channel=c").status, 200);
  ASSERT_TRUE(h.run_until([&] { return heard(first, "REGISTER t c") == 2; }));
  EXPECT_EQ(heard(first, "UNREGISTER t c"), 1u);
  EXPECT_EQ(heard(first, "UNREGISTER t"), 1u);
  EXPECT_EQ(h.http("POST", "/channel/delete?topic=t&channel=c").status, 200);
  EXPECT_EQ(h.http("POST", "/channel/create?topic=t&channel=c").status, 200);
  ASSERT_TRUE(h.run_until([&] { return heard(first, "REGISTER t c") == 3; }));
  EXPECT_TRUE(shows(first, {"t", "t c"}));
}

// The snapshot has to read the metadata of delayed messages and takes longer than the deletion. A consumer that is sent here for
// the name would make the Topic again.
TEST_F(Lookup, ATopicThatIsDeletedWhileASnapshotIsTakenStaysUnregistered) {
  h.config().queue.max_message_bytes = 1'000;
  h.config().limits.max_body_bytes = 4'000;
  h.config().storage.max_segment_bytes = 5'000;
  h.config().storage.message_index_cache_bytes = 65'536;
  first.start();
  ASSERT_TRUE(h.start());
  ASSERT_EQ(h.publish("a", "x"), "OK");
  Client& client = h.connect();
  for (int i = 0; i < 40; ++i) client.dpub("b", 600'000, std::string(500, 'x'));
  ASSERT_TRUE(client.wait_frames(40));
  ASSERT_TRUE(shows(first, {"a", "b"}));
  h.run_for(5'000);
  h.disk().faults.latency_ns_min = h.disk().faults.latency_ns_max = 20 * kMillisecond;
  EXPECT_EQ(h.http("POST", "/topic/create?topic=c").status, 200);
  h.run_for(200);
  EXPECT_EQ(h.http("POST", "/topic/delete?topic=a").status, 200);
  EXPECT_EQ(heard(first, "REGISTER c"), 0u);
  ASSERT_TRUE(shows(first, {"b", "c"}, 10'000));
  EXPECT_EQ(heard(first, "REGISTER a"), 1u);
}

TEST_F(Lookup, HundredsOfNamesArriveInBatchesThatAreAnswered) {
  ASSERT_TRUE(h.start());
  Names names;
  for (int i = 0; i < 150; ++i) {
    const std::string topic = fmt::format("topic-{:03}", i);
    ASSERT_EQ(h.publish(topic, "x"), "OK");
    names.insert(topic);
  }
  first.start();
  ASSERT_TRUE(shows(first, names, 20'000)) << first.names().size();
  for (int i = 0; i < 100; ++i) {
    const std::string topic = fmt::format("later-{:03}", i);
    ASSERT_EQ(h.publish(topic, "x"), "OK");
    names.insert(topic);
  }
  ASSERT_TRUE(shows(first, names)) << first.names().size();
}

TEST_F(Lookup, ANewNameIsRegisteredWithinTheTimeBetweenTwoLooks) {
  first.start();
  ASSERT_TRUE(h.start());
  h.run_for(10'000);
  for (const char* topic : {"a", "b", "c"}) {
    EXPECT_EQ(h.http("POST", std::string("/topic/create?topic=") + topic).status, 200);
    EXPECT_TRUE(h.run_until([&] { return first.names().contains(topic); }, 80)) << topic;
  }
}

TEST_F(Lookup, APingGoesOutEvery15Seconds) {
  first.start();
  ASSERT_TRUE(h.start());
  h.run_for(76'000);
  EXPECT_EQ(heard(first, "PING"), 5u);
  EXPECT_EQ(first.connections(), 1u);
  EXPECT_EQ(logged("nsqlookupd_lost"), 0u);
}

TEST_F(Lookup, AServerThatGoesAndComesBackHearsEverythingAgain) {
  first.start();
  ASSERT_TRUE(h.start());
  h.consumer("t", "a");
  ASSERT_TRUE(shows(first, {"t", "t a"}));
  first.stop();
  h.run_for(500);
  ASSERT_EQ(h.publish("meanwhile", "x"), "OK");
  EXPECT_EQ(h.http("POST", "/channel/delete?topic=t&channel=a").status, 200);
  h.run_for(120'000);
  const std::size_t tries = logged("nsqlookupd_lost");
  EXPECT_GE(tries, 8u);
  EXPECT_LE(tries, 14u) << "1 s, then twice as long up to 15 s";
  first.start();
  ASSERT_TRUE(shows(first, {"t", "meanwhile"}, 20'000));
  ASSERT_EQ(h.publish("after", "x"), "OK");
  EXPECT_TRUE(shows(first, {"t", "meanwhile", "after"}));
}

TEST_F(Lookup, ACutAtAnyCommandLosesNothing) {
  first.cut = [](std::size_t number) { return number % 5 == 4 && number < 40; };
  first.start();
  ASSERT_TRUE(h.start());
  Names names;
  for (int i = 0; i < 12; ++i) {
    const std::string topic = fmt::format("t{:02}", i);
    h.consumer(topic, "c");
    names.insert({topic, topic + " c"});
    h.run_for(300);
  }
  EXPECT_TRUE(shows(first, names, 200'000)) << first.names().size();
  EXPECT_GE(logged("nsqlookupd_lost"), 3u);
  EXPECT_EQ(h.publish("t00", "x"), "OK");
}

struct Misbehaviour {
  const char* name;
  std::string answer;
  const char* reason;
};

TEST_F(Lookup, EveryUnexpectedAnswerEndsTheConnectionAndIsTriedAgain) {
  std::string huge(4, '\x7f');
  const Misbehaviour all[] = {
      {"garbage", "HTTP/1.1 400 Bad Request\r\n\r\n", "an answer of 1213486160 bytes"},
      {"too large", LookupServer::framed(std::string(65'537, 'x')), "an answer of 65537 bytes"},
      {"error", LookupServer::framed("E_BAD_TOPIC REGISTER topic name 't' is not valid"),
       "answered E_BAD_TOPIC REGISTER topic name"},
      {"empty", LookupServer::framed(""), "answered "},
      {"binary", LookupServer::framed("\x01\"\xff"), "answered ???"},
      {"two for one", LookupServer::framed("OK") + LookupServer::framed("OK"), "an answer that was not asked for"},
      {"silence", "", "timed out"},
      {"half an answer", huge.assign("\0\0\0\2O", 5), "timed out"},
  };
  first.start();
  ASSERT_TRUE(h.start());
  h.run_for(500);
  Names names;
  int next = 0;
  for (const Misbehaviour& each : all) {
    SCOPED_TRACE(each.name);
    const std::size_t from = first.commands.size();
    first.answer = [&](std::size_t number, const std::string&, const std::string& good) {
      return number == from ? each.answer : good;
    };
    h.log.clear();
    const std::string topic = fmt::format("t{}", next++);
    ASSERT_EQ(h.publish(topic, "x"), "OK");
    names.insert(topic);
    ASSERT_TRUE(h.run_until([&] { return logged(each.reason) == 1; }, 3'000));
    ASSERT_TRUE(h.run_until([&] { return logged("nsqlookupd_registered") == 1; }, 30'000));
    ASSERT_TRUE(shows(first, names));
    EXPECT_EQ(logged("nsqlookupd_lost"), 1u);
  }
  first.answer = [](std::size_t, const std::string& command, const std::string& good) {
    return command.starts_with("IDENTIFY") ? LookupServer::framed("E_BAD_BODY IDENTIFY missing fields") : good;
  };
  first.stop();
  first.start();
  h.run_for(20'000);
  EXPECT_TRUE(first.names().empty()) << "nothing is registered without an identity";
  first.answer = {};
  EXPECT_TRUE(shows(first, names, 30'000));
}

TEST_F(Lookup, ABrokenServerDoesNotHoldUpAnotherOne) {
  h.config().network.nsqlookupd_tcp_addresses = {kFirst, kSecond, kFirst};
  first.answer = [](std::size_t, const std::string&, const std::string&) { return std::string(); };
  first.start();
  second.start();
  ASSERT_TRUE(h.start());
  ASSERT_EQ(h.publish("t", "x"), "OK");
  EXPECT_TRUE(shows(second, {"t"}));
  h.world().partition("broker", "lookup-2");
  h.run_for(30'000);
  h.world().heal();
  first.answer = {};
  EXPECT_TRUE(shows(first, {"t"}, 30'000));
  EXPECT_TRUE(shows(second, {"t"}, 30'000));
  h.run_for(1'000);
  EXPECT_EQ(first.connections(), 1u) << "an address that stands twice in the list is one server";
}

TEST_F(Lookup, TheListIsReadAndChangedWhileTheBrokerRuns) {
  first.start();
  second.start();
  ASSERT_TRUE(h.start());
  ASSERT_EQ(h.publish("t", "x"), "OK");
  ASSERT_TRUE(shows(first, {"t"}));
  EXPECT_EQ(h.http("GET", "/config/nsqlookupd_tcp_addresses").body, R"(["127.0.0.1:4160"])");
  EXPECT_NE(h.http("GET", "/info").body.find(R"("nsqlookupd":[{"address":"127.0.0.1:4160","registered":true}])"),
            std::string::npos);
  const auto put = [&](std::string_view value) { return h.http("PUT", "/config/nsqlookupd_tcp_addresses", value); };
  const sim::HttpReply changed = put(R"( ["127.0.0.1:4260", "127.0.0.1:4260"] )");
  EXPECT_EQ(changed.status, 200);
  EXPECT_EQ(changed.body, R"(["127.0.0.1:4260"])");
  EXPECT_EQ(h.http("GET", "/config/nsqlookupd_tcp_addresses").body, changed.body);
  EXPECT_TRUE(shows(second, {"t"}));
  EXPECT_EQ(first.connections(), 0u);
  for (const char* bad : {"x", "{}", R"("127.0.0.1:4160")", "[1]", "[\"\"]", R"(["host"])", R"(["host:0"])", R"(["host:65536"])",
                          R"(["a b:1"])", R"(["::1:1"])", "[]x"}) {
    const sim::HttpReply refused = put(bad);
    EXPECT_EQ(refused.status, 400) << bad;
    EXPECT_NE(refused.body.find(R"("message":"INVALID_VALUE")"), std::string::npos) << bad;
  }
  std::string many = "[";
  for (int i = 1; i <= 65; ++i) many += fmt::format("{}\"h:{}\"", i == 1 ? "" : ",", i);
  EXPECT_EQ(put(many + "]").status, 400);
  EXPECT_EQ(put(std::string(70'000, ' ')).status, 413);
  EXPECT_EQ(first.connections() + second.connections(), 1u);
  EXPECT_EQ(put("[]").body, "[]");
  EXPECT_TRUE(h.run_until([&] { return second.connections() == 0; }));
  EXPECT_EQ(h.http("GET", "/info").body.find("nsqlookupd"), std::string::npos);
  ASSERT_EQ(h.publish("later", "x"), "OK");
  EXPECT_EQ(put(R"(["127.0.0.1:4160"])").status, 200);
  EXPECT_TRUE(shows(first, {"t", "later"}));
}

TEST_F(Lookup, TheEndOfTheBrokerTakesItsNamesOffTheServers) {
  first.start();
  ASSERT_TRUE(h.start());
  Client& consumer = h.consumer("t", "c");
  ASSERT_TRUE(shows(first, {"t", "t c"}));
  ASSERT_EQ(h.publish("t", "x"), "OK");
  ASSERT_TRUE(consumer.message().has_value());
  EXPECT_TRUE(h.stop());
  EXPECT_EQ(first.connections(), 0u);
  EXPECT_EQ(heard(first, "UNREGISTER t"), 0u);
  ASSERT_TRUE(h.start());
  ASSERT_TRUE(shows(first, {"t", "t c"}));
  h.kill();
  EXPECT_TRUE(h.run_until([&] { return first.connections() == 0; }));
}

}  // namespace
}  // namespace rq::broker::test
