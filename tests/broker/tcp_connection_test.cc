// Magic, lines, half-closed and broken connections (page 10 section 10, C-01 to C-12; page 31 section 10.2).
#include "tests/broker/tcp_support.h"

namespace rq::broker::test {
namespace {

const std::string kBadProtocol = int32(18) + int32(1) + "E_BAD_PROTOCOL";

TEST(TcpConnection, C_01_WrongMagicGetsABareErrorFrameAndIsClosed) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  Client& client = h.client();
  ASSERT_TRUE(client.connect(h.tcp_address(), "XXXX"));
  ASSERT_TRUE(client.wait_closed());
  EXPECT_TRUE(client.raw().ends_with(kBadProtocol));
  EXPECT_EQ(client.frames().size(), 1u);
}

TEST(TcpConnection, WithoutFileHandlesAcceptingPausesAndTheLogSaysSoOnce) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  const auto said = [&] {
    return std::count_if(h.log.begin(), h.log.end(), [](const std::string& line) {
      return line.find("accept_failed") != std::string::npos &&
             line.find(io::errc_name(io::Errc::no_handles)) != std::string::npos;
    });
  };
  for (int spell = 1; spell <= 2; ++spell) {
    h.world().net().no_handles = 1024;
    Client& client = h.connect();
    client.pub("t", "body");
    h.run_for(1'000);
    EXPECT_TRUE(client.frames().empty());
    EXPECT_EQ(said(), spell);
    h.world().net().no_handles = 0;
    EXPECT_EQ(client.answer().payload, "OK");
  }
}

TEST(TcpConnection, C_02_TheLookupMagicIsAWrongMagic) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  Client& client = h.client();
  ASSERT_TRUE(client.connect(h.tcp_address(), "  V1"));
  ASSERT_TRUE(client.wait_closed());
  EXPECT_TRUE(client.raw().ends_with(kBadProtocol));
  EXPECT_EQ(client.frames().size(), 1u);
}

TEST(TcpConnection, C_03_AClientWithoutAFirstCommandIsClosedAfterFiveSeconds) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  Client& client = h.connect();
  const Instant connected = h.now();
  h.run_for(4'900);
  EXPECT_EQ(client.raw(), "");
  EXPECT_FALSE(client.closed());
  ASSERT_TRUE(client.wait_closed());
  EXPECT_GE(h.now() - connected, 4'990 * kMillisecond);
  EXPECT_LE(h.now() - connected, 5'200 * kMillisecond);
  ASSERT_EQ(client.frames().size(), 1u);
  EXPECT_EQ(client.frames()[0].payload, "E_INVALID command timed out");
}

TEST(TcpConnection, B_16_NoMagicForFiveSecondsIsClosedWithoutAFrame) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  Client& silent = h.client();
  ASSERT_TRUE(silent.connect(h.tcp_address(), ""));
  Client& slow = h.client();
  ASSERT_TRUE(slow.connect(h.tcp_address(), "  V"));
  h.run_for(4'900);
  EXPECT_FALSE(silent.closed());
  EXPECT_TRUE(silent.wait_closed(300));
  EXPECT_TRUE(slow.wait_closed(300));
  EXPECT_EQ(silent.raw(), "");
  EXPECT_EQ(slow.raw(), "");
  Client& wrong = h.client();
  ASSERT_TRUE(wrong.connect(h.tcp_address(), "GET "));
  EXPECT_FATAL(wrong, "E_BAD_PROTOCOL");
}

TEST(TcpConnection, C_04_MagicAndCommandsMayArriveByteByByte) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  Client& client = h.client();
  ASSERT_TRUE(client.connect(h.tcp_address(), " "));
  for (const char c : std::string(" V2NOP\n")) {
    client.send(std::string(1, c));
    h.run_for(100);
  }
  EXPECT_TRUE(client.frames().empty());
  EXPECT_USABLE(client);
}

TEST(TcpConnection, C_05_AnEmptyLineIsAnUnknownCommandWithoutAName) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  expect_fatal(h, "\n", "E_INVALID invalid command ");
  expect_fatal(h, "\r\n", "E_INVALID invalid command ");
}

TEST(TcpConnection, C_06_ACarriageReturnBeforeTheLineFeedIsRemoved) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  expect_fatal(h, "NOP\r\nASDF\r\n", "E_INVALID invalid command ASDF");
}

TEST(TcpConnection, C_07_CommandNamesAreCaseSensitive) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  expect_fatal(h, "pub t\n", "E_INVALID invalid command pub");
}

TEST(TcpConnection, C_08_B_18_ALineOfMoreThan1024BytesIsRefused) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  const std::string longest(1'023, 'A');
  expect_fatal(h, longest + "\n", "E_INVALID invalid command " + longest);
  expect_fatal(h, std::string(1'025, 'A'), "E_INVALID command line too long");
  expect_fatal(h, longest + "A\nNOP\n", "E_INVALID command line too long");
}

TEST(TcpConnection, C_09_TwoSpacesMakeAnEmptyParameter) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  expect_fatal(h, "SUB  t c\n", "E_BAD_TOPIC SUB topic name \"\" is not valid");
}

TEST(TcpConnection, C_10_APublishBeforeTheHalfCloseIsStillAnswered) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  Client& client = h.connect();
  client.pub("t", "x");
  client.shutdown_write();
  EXPECT_RESPONSE(client, "OK");
  EXPECT_TRUE(client.wait_closed());
  EXPECT_FALSE(client.was_reset());
  EXPECT_TRUE(h.broker().engine().has_topic("t"));
}

TEST(TcpConnection, C_11_AHalfLineBeforeTheHalfCloseEndsWithoutAFrame) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  Client& client = h.connect();
  client.send("NOP\nASD");
  client.shutdown_write();
  ASSERT_TRUE(client.wait_closed());
  EXPECT_EQ(client.raw(), "");
}

TEST(TcpConnection, ABodyThatEndsEarlyIsNamed) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  const auto truncated = [&](const std::string& bytes, const std::string& text) {
    Client& client = h.connect();
    client.send(bytes);
    client.shutdown_write();
    EXPECT_FATAL(client, text);
  };
  truncated("PUB t\n", "E_BAD_MESSAGE PUB failed to read message body size");
  truncated("PUB t\n" + int32(5) + "abc", "E_BAD_MESSAGE PUB failed to read message body");
  truncated("MPUB t\n", "E_BAD_BODY MPUB failed to read body size");
  truncated("MPUB t\n" + int32(50) + int32(2) + int32(1) + "a", "E_BAD_MESSAGE MPUB failed to read message(1) body size");
  truncated("IDENTIFY\n" + int32(50) + "{", "E_BAD_BODY IDENTIFY failed to read body");
  EXPECT_EQ(h.broker().publish_bytes_in_flight(), 0u);
}

TEST(TcpConnection, C_12_APeerThatResetsWithFramesPendingHarmsNobody) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  for (int i = 0; i < 50; ++i) ASSERT_EQ(h.publish("t", std::string(10'000, 'x')), "OK");
  Client& consumer = h.connect();
  consumer.sub("t", "c");
  EXPECT_RESPONSE(consumer, "OK");
  consumer.stop_reading(true);
  consumer.rdy(50);
  h.run_for(5);
  consumer.process().kill();
  h.run_for(100);
  ASSERT_TRUE(h.running());
  Client& other = h.consumer("t", "c", 50);
  EXPECT_TRUE(other.wait_messages(50, 70'000));
  EXPECT_USABLE(other);
}

TEST(TcpConnection, B_15_AConnectionAboveTheLimitIsClosedWithoutAByte) {
  BrokerHarness h(1, [](Config& config) { config.limits.max_connections = 2; });
  ASSERT_TRUE(h.start());
  Client& first = h.connect();
  Client& second = h.connect();
  EXPECT_USABLE(first);
  EXPECT_USABLE(second);
  Client& third = h.connect();
  ASSERT_TRUE(third.wait_closed());
  EXPECT_EQ(third.raw(), "");
  first.close();
  h.run_for(100);
  Client& fourth = h.connect();
  EXPECT_USABLE(fourth);
  EXPECT_USABLE(second);
}

TEST(TcpConnection, B_25_ASilentClientIsClosedAfterTwoIntervalsAndOneThatAnswersStays) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  Client& silent = h.connect();
  Client& alive = h.connect();
  for (Client* client : {&silent, &alive}) {
    client->identify(R"({"heartbeat_interval":1000})");
    EXPECT_RESPONSE(*client, "OK");
  }
  silent.answer_heartbeats(false);
  const Instant quiet_since = h.now();
  ASSERT_TRUE(silent.wait_closed());
  EXPECT_GE(h.now() - quiet_since, 1'990 * kMillisecond);
  EXPECT_LE(h.now() - quiet_since, 3'100 * kMillisecond);
  EXPECT_GE(silent.heartbeats(), 1u);
  EXPECT_TRUE(silent.take_frames().empty());
  h.run_for(10'000);
  EXPECT_GE(alive.heartbeats(), 11u);
  EXPECT_USABLE(alive);
}

// D-15: it is the Broker that takes its time. A heartbeat that it could not send, or an answer that it could not read, is
// nobody's silence.
TEST(TcpConnection, AStandstillOfTheBrokerIsNotHeldAgainstItsClients) {
  for (const std::int64_t into_ms : {0, 990, 1'010}) {  // before the first heartbeat, and right behind it, while its answer comes
    BrokerHarness h;
    ASSERT_TRUE(h.start());
    Client& silent = h.connect();
    Client& alive = h.connect();
    for (Client* client : {&silent, &alive}) {
      client->identify(R"({"heartbeat_interval":1000})");
      EXPECT_RESPONSE(*client, "OK");
    }
    silent.answer_heartbeats(false);
    h.run_for(into_ms);
    h.process().stand_still(5 * kSecond);
    const Instant awake = h.now() + 5 * kSecond;
    ASSERT_TRUE(silent.wait_closed(10'000)) << into_ms;
    EXPECT_GE(h.now() - awake, 990 * kMillisecond) << into_ms;
    EXPECT_LE(h.now() - awake, 1'100 * kMillisecond) << into_ms << ": once, not again";
    h.run_for(5'000);
    EXPECT_FALSE(alive.closed()) << into_ms;
    EXPECT_USABLE(alive);
  }
}

// Two thousand negotiations are more than the network holds for a peer that does not read.
Client& with_blocked_answers(BrokerHarness& h) {
  Client& client = h.connect();
  client.identify(R"({"heartbeat_interval":1000})");
  EXPECT_EQ(client.answer().payload, "OK");
  client.stop_reading(true);
  for (int i = 0; i < 2'000; ++i) client.identify(R"({"feature_negotiation":true,"heartbeat_interval":1000})");
  return client;
}

TEST(TcpConnection, B_24_ABlockedAnswerIsWaitedForUpToTheProgressLimit) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  Client& patient = with_blocked_answers(h);
  h.run_for(3'500);
  patient.stop_reading(false);
  ASSERT_TRUE(patient.wait_frames(2'000));
  patient.take_frames();
  EXPECT_USABLE(patient);
  with_blocked_answers(h);
  h.run_for(4'500);
  EXPECT_EQ(h.broker().tcp_connections(), 2u);
  h.run_for(1'500);
  EXPECT_EQ(h.broker().tcp_connections(), 1u);
}

TEST(TcpConnection, AStalledLineOfALaterCommandIsTimedOut) {
  BrokerHarness h(1, [](Config& config) { config.limits.tcp_command_timeout_ms = 3'000; });
  ASSERT_TRUE(h.start());
  Client& client = h.connect();
  client.send("NOP\nPU");
  h.run_for(2'900);
  EXPECT_FALSE(client.closed());
  EXPECT_FATAL(client, "E_INVALID command timed out");
}

}  // namespace
}  // namespace rq::broker::test
