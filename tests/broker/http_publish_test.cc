// POST /pub and /mpub (page 10 section 6.3).
#include "tests/broker/http_test_support.h"

namespace rq::sim {
namespace {

using Bodies = std::vector<std::string>;

TEST(HttpPublish, C_84_ChecksComeInOrderEmptyBodyFirst) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  EXPECT_EQ(result_of(h.http("POST", "/pub")), "400 MSG_EMPTY");
  EXPECT_EQ(result_of(h.http("POST", "/pub", "x")), "400 MISSING_ARG_TOPIC");
  EXPECT_EQ(result_of(h.http("POST", "/pub?topic=a%24", "x")), "400 INVALID_TOPIC");
  EXPECT_EQ(result_of(h.http("POST", "/pub?topic=a$", "x")), "400 INVALID_TOPIC");
  EXPECT_EQ(result_of(h.http("POST", "/pub?topic=%zz", "x")), "400 INVALID_REQUEST");
}

TEST(HttpPublish, C_85_AFormBodyIsPublishedAsItIs) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  const HttpReply reply = h.http("POST", "/pub?topic=t", "a=b", {{"Content-Type", "application/x-www-form-urlencoded"}});
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.body, "OK");
  EXPECT_EQ(drain(h, "t", "c"), (Bodies{"a=b"}));
}

TEST(HttpPublish, C_86_DeferIsADecimalOfMillisecondsUpToTheMaximum) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  for (const char* defer : {"", "abc", "-1", "3600001", "1.5", "99999999999999999999", "%2B-1"})
    EXPECT_EQ(result_of(h.http("POST", std::string("/pub?topic=t&defer=") + defer, "x")), "400 INVALID_DEFER") << defer;
  for (const char* defer : {"3600000", "0", "%2B5"})
    EXPECT_EQ(h.http("POST", std::string("/pub?topic=t&defer=") + defer, "x").body, "OK") << defer;
}

TEST(HttpPublish, ADeferredMessageComesNotBeforeItsTime) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  Client& consumer = h.consumer("t", "c");
  const Instant published = h.now();
  ASSERT_EQ(h.http("POST", "/pub?topic=t&defer=700", "later").body, "OK");
  ASSERT_TRUE(consumer.message().has_value());
  EXPECT_GE(h.now() - published, 700 * kMillisecond);
}

TEST(HttpPublish, C_87_ALongBodyIsRefusedInChunksAndBeforeContinue) {
  BrokerHarness h(1, [](broker::Config& c) { c.queue.max_message_bytes = 1'048'576; });
  ASSERT_TRUE(h.start());
  const std::string body(1'048'577, 'x');
  const std::string chunked =
      "POST /pub?topic=t HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n100001\r\n" + body + "\r\n0\r\n\r\n";
  const auto refused = parse_reply(h.http_raw(chunked), true);
  ASSERT_TRUE(refused);
  EXPECT_EQ(result_of(*refused), "413 MSG_TOO_BIG");

  const std::string announced =
      h.http_raw("POST /pub?topic=t HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3000000\r\n\r\n");
  EXPECT_EQ(announced.find("100 Continue"), std::string::npos);
  EXPECT_EQ(result_of(*parse_reply(announced, true)), "413 MSG_TOO_BIG");
  EXPECT_EQ(h.broker().publish_bytes_in_flight(), 0u);

  const std::string right =
      "POST /pub?topic=t HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n100000\r\n" +
      std::string(1'048'576, 'x') + "\r\n0\r\n\r\n";
  EXPECT_EQ(parse_reply(h.http_raw(right), true)->body, "OK");
}

TEST(HttpPublish, TheTopicOfABatchIsLookedAtBeforeItsBody) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  const std::string head = "POST /mpub?topic=a$ HTTP/1.1\r\nHost: a\r\n";
  for (const char* rest : {"Transfer-Encoding: chunked\r\n\r\nzz\r\n", "Expect: 100-continue\r\nContent-Length: 5\r\n\r\n",
                           "Content-Length: 5\r\n\r\n12345"}) {
    const std::string answer = h.http_raw(head + rest);
    EXPECT_EQ(answer.find("100 Continue"), std::string::npos) << rest;
    const auto refused = parse_reply(answer, true);
    ASSERT_TRUE(refused) << rest;
    EXPECT_EQ(result_of(*refused), "400 INVALID_TOPIC") << rest;
  }
  // A body that is whole leaves the connection as it was; one that is too long comes first.
  const std::string two =
      h.http_raw(head + "Content-Length: 5\r\n\r\n12345GET /ping HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  EXPECT_NE(two.find("\r\n\r\nOK"), std::string::npos) << two;
  const auto too_long = parse_reply(h.http_raw(head + "Content-Length: 999999999\r\n\r\n"), true);
  ASSERT_TRUE(too_long);
  EXPECT_EQ(result_of(*too_long), "413 BODY_TOO_BIG");
}

TEST(HttpPublish, ContinueIsSaidBeforeTheBodyIsRead) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  Client& client = h.client();
  ASSERT_TRUE(client.connect(h.http_address(), ""));
  client.send("POST /pub?topic=t HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n");
  ASSERT_TRUE(h.run_until([&] { return client.raw() == "HTTP/1.1 100 Continue\r\n\r\n"; }));
  client.send("hello");
  ASSERT_TRUE(h.run_until([&] { return client.raw().ends_with("\r\n\r\nOK"); }));
  EXPECT_EQ(drain(h, "t", "c"), (Bodies{"hello"}));
}

TEST(HttpPublish, C_88_TextBatchesAreSplitAtLineFeeds) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  EXPECT_EQ(h.http("POST", "/mpub?topic=t", "a\n\nb\r\nc").body, "OK");
  EXPECT_EQ(drain(h, "t", "c"), (Bodies{"a", "b\r", "c"}));
  const HttpReply empty = h.http("POST", "/mpub?topic=u");
  EXPECT_EQ(empty.status, 200);
  EXPECT_EQ(empty.body, "OK");
  EXPECT_EQ(h.http("POST", "/mpub?topic=u", "\n\n").body, "OK");
}

TEST(HttpPublish, C_89_AnyOtherValueOfBinaryMeansBinary) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  const std::string body("\0\0\0\2\0\0\0\1a\0\0\0\2bc", 15);
  for (const char* mode : {"TRUE", "", "1", "true"})
    EXPECT_EQ(h.http("POST", std::string("/mpub?topic=t&binary=") + mode, body + "trailing").body, "OK") << mode;
  EXPECT_EQ(drain(h, "t", "c"), (Bodies{"a", "bc", "a", "bc", "a", "bc", "a", "bc"}));
  for (const char* mode : {"0", "false"})
    EXPECT_EQ(h.http("POST", std::string("/mpub?topic=u&binary=") + mode, "x\ny").body, "OK") << mode;
  EXPECT_EQ(drain(h, "u", "c"), (Bodies{"x", "y", "x", "y"}));
  for (const std::string& bad :
       {std::string("\0\0\0", 3), std::string("\0\0\0\0", 4), std::string("\xff\xff\xff\xff", 4), std::string()})
    EXPECT_EQ(result_of(h.http("POST", "/mpub?topic=v&binary=true", bad)), "413 BAD_BODY");
  for (const std::string& bad :
       {std::string("\0\0\0\1\0\0\0\0", 8), std::string("\0\0\0\1\0\0\0\5a", 9), std::string("\0\0\0\1\0\0", 6),
        std::string("\0\0\0\1\xff\xff\xff\xff", 8), std::string("\0\0\0\2\0\0\0\1a", 9)})
    EXPECT_EQ(result_of(h.http("POST", "/mpub?topic=v&binary=true", bad)), "413 BAD_MESSAGE");
  EXPECT_FALSE(h.broker().engine().has_topic("v"));
}

TEST(HttpPublish, BatchLimitsAreThoseOfBodyMessageAndCount) {
  BrokerHarness h(1, [](broker::Config& c) {
    c.queue.max_message_bytes = 10;
    c.limits.max_body_bytes = 200'000;
  });
  ASSERT_TRUE(h.start());
  EXPECT_EQ(result_of(h.http("POST", "/mpub?topic=t", "0123456789a\n")), "413 MSG_TOO_BIG");
  EXPECT_EQ(result_of(h.http("POST", "/mpub?topic=t", std::string(200'001, '\n'))), "413 BODY_TOO_BIG");
  std::string lines;
  for (int i = 0; i < 65'537; ++i) lines += "x\n";
  EXPECT_EQ(result_of(h.http("POST", "/mpub?topic=t", lines)), "400 E_BAD_BODY");
  EXPECT_EQ(h.http("POST", "/mpub?topic=t", lines.substr(2)).body, "OK");
}

TEST(HttpPublish, B_45_AStalledOrLateBodyIsToldSoAndClosed) {
  BrokerHarness h(1, [](broker::Config& c) { c.limits.http_body_timeout_ms = 2'000; });
  ASSERT_TRUE(h.start());
  const std::string head = "POST /pub?topic=t HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n";
  const Instant begin = h.now();
  const std::string stalled = h.http_raw(head + "half");
  EXPECT_EQ(result_of(*parse_reply(stalled, true)), "408 E_BODY_TIMEOUT");
  EXPECT_GE(h.now() - begin, 2 * kSecond);
  EXPECT_LT(h.now() - begin, 4 * kSecond);

  Client& trickle = h.client();
  ASSERT_TRUE(trickle.connect(h.http_address(), ""));
  trickle.send(head);
  for (int i = 0; i < 9; ++i) {
    h.run_for(300);
    trickle.send("x");
  }
  ASSERT_TRUE(trickle.wait_closed());
  EXPECT_EQ(result_of(*parse_reply(trickle.raw(), true)), "408 E_BODY_TIMEOUT");
  EXPECT_EQ(h.broker().publish_bytes_in_flight(), 0u);
  EXPECT_FALSE(h.broker().engine().has_topic("t"));
}

TEST(HttpPublish, AFullPublishBudgetThrottlesBeforeTheBodyIsRead) {
  BrokerHarness h(1, [](broker::Config& c) {
    c.queue.max_message_bytes = 100'000;
    c.limits.max_body_bytes = 100'000;
    c.limits.connection_publish_inflight_bytes = 8'600'000;
    c.limits.node_publish_inflight_bytes = 8'600'000;
  });
  ASSERT_TRUE(h.start());
  Client& slow = h.client();
  ASSERT_TRUE(slow.connect(h.http_address(), ""));
  slow.send("POST /mpub?topic=t HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n");
  ASSERT_TRUE(h.run_until([&] { return h.broker().publish_bytes_in_flight() > 0; }));
  HttpReply reply;
  int taken = 0;
  for (; taken < 40 && reply.status != 429; ++taken) {
    Client& more = h.client();
    ASSERT_TRUE(more.connect(h.http_address(), ""));
    more.send("POST /pub?topic=t HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n");
    h.run_for(20);
    if (auto answer = parse_reply(more.raw(), more.closed())) reply = *answer;
  }
  EXPECT_EQ(result_of(reply), "429 E_THROTTLED");
  EXPECT_EQ(reply.header("retry-after"), "1");
  EXPECT_EQ(h.broker().counters().publish_throttled_requests, 1u);
  EXPECT_GE(h.broker().counters().publish_throttled_bytes, 100'000u);
}

// Forty clients without a length, each charged for the largest body, would be five times the node's budget.
TEST(HttpPublish, ABodyWithoutALengthIsChargedAsItArrives) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  std::vector<Client*> clients;
  for (int i = 0; i < 40; ++i) {
    clients.push_back(&h.client());
    ASSERT_TRUE(clients.back()->connect(h.http_address(), ""));
    clients.back()->send("POST /mpub?topic=t HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n6\r\none\ntw\r\n");
  }
  h.run_for(100);
  EXPECT_GT(h.broker().publish_bytes_in_flight(), 40u * 4'096);
  for (Client* client : clients) client->send("3\r\no\n3\r\n0\r\n\r\n");
  for (Client* client : clients) EXPECT_TRUE(h.run_until([&] { return client->raw().ends_with("\r\n\r\nOK"); })) << client->raw();
  EXPECT_EQ(h.broker().publish_bytes_in_flight(), 0u);
  EXPECT_EQ(h.broker().counters().publish_messages, 40u * 3);
}

TEST(HttpPublish, ABodyWithoutALengthThatOutgrowsTheBudgetIsRefusedThereAndGivesBackWhatItHeld) {
  BrokerHarness h(1, [](broker::Config& c) {
    c.queue.max_message_bytes = 200'000;
    c.limits.max_body_bytes = 200'000;
    c.limits.connection_publish_inflight_bytes = 300'000;
    c.limits.node_publish_inflight_bytes = 300'000;
  });
  ASSERT_TRUE(h.start());
  const std::string head = "POST /pub?topic=t HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
  const std::string part = "19000\r\n" + std::string(0x19000, 'x') + "\r\n";  // 102,400 bytes
  Client& first = h.client();
  Client& second = h.client();
  for (Client* client : {&first, &second}) {
    ASSERT_TRUE(client->connect(h.http_address(), ""));
    client->send(head + part);
    h.run_for(1'000);
  }
  // What does not fit is answered at once, so that two half bodies do not wait for each other.
  second.send("10000\r\n" + std::string(0x10000, 'x') + "\r\n");
  ASSERT_TRUE(second.wait_closed());
  EXPECT_EQ(result_of(*parse_reply(second.raw(), true)), "429 E_THROTTLED");
  first.send("10000\r\n" + std::string(0x10000, 'x') + "\r\n0\r\n\r\n");
  EXPECT_TRUE(h.run_until([&] { return first.raw().ends_with("\r\n\r\nOK"); })) << first.raw();
  EXPECT_EQ(h.broker().publish_bytes_in_flight(), 0u);
  EXPECT_EQ(h.broker().counters().publish_throttled_requests, 1u);
}

TEST(HttpPublish, ABodyWithoutALengthIsChargedForWhatItsBufferTakes) {
  BrokerHarness h(1, [](broker::Config& c) { c.queue.max_message_bytes = 1'000'000; });
  ASSERT_TRUE(h.start());
  Client& client = h.client();
  ASSERT_TRUE(client.connect(h.http_address(), ""));
  client.send("POST /pub?topic=t HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
  std::uint64_t sent = 0;
  for (int i = 0; i < 20; ++i) {
    client.send("c000\r\n" + std::string(0xc000, 'x') + "\r\n");
    sent += 0xc000;
    h.run_for(100);
    EXPECT_GE(h.broker().publish_bytes_in_flight(), sent);
    EXPECT_LE(h.broker().publish_bytes_in_flight(), std::min<std::uint64_t>(2 * sent + 64 * 1'024, 1'004'096));
  }
  client.close();
  h.run_for(100);
  EXPECT_EQ(h.broker().publish_bytes_in_flight(), 0u);
}

TEST(HttpPublish, ADrainingBrokerRefusesAndStaysAlive) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  h.broker().set_drain(true, false);
  EXPECT_EQ(result_of(h.http("POST", "/pub?topic=t", "x")), "503 E_DRAINING");
  EXPECT_EQ(h.http("GET", "/ping").body, "OK");
  EXPECT_EQ(json_of(h.http("GET", "/v1/health")).at("reason").as_string(), "draining");
  h.broker().set_drain(false, false);
  EXPECT_EQ(h.http("POST", "/pub?topic=t", "x").body, "OK");
}

TEST(HttpPublish, AnAnswerForAConnectionThatIsGoneIsDroppedAndItsBudgetGivenBack) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  h.disk().faults.latency_ns_min = h.disk().faults.latency_ns_max = 500 * kMillisecond;
  Client& client = h.client();
  ASSERT_TRUE(client.connect(h.http_address(), ""));
  client.send("POST /pub?topic=t HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx");
  ASSERT_TRUE(h.run_until([&] { return h.broker().publish_bytes_in_flight() > 0; }));
  client.close();
  EXPECT_TRUE(h.run_until([&] { return h.broker().publish_bytes_in_flight() == 0; }, 120'000));
  h.disk().faults = {};
  EXPECT_EQ(drain(h, "t", "c"), (Bodies{"x"}));
}

TEST(HttpPublish, PublishedMessagesAreCounted) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  h.http("POST", "/mpub?topic=t", "ab\ncde\n");
  EXPECT_EQ(h.broker().counters().publish_messages, 2u);
  EXPECT_EQ(h.broker().counters().publish_bytes, 5u);
}

}  // namespace
}  // namespace rq::sim
