// TLS and compression over a connection (page 10 sections 3.3 and 3.4). TLS is the simulator's model of it (io/sim/sim_tls.cc);
// OpenSSL itself is tried in tests/process/tls_test.cc.
#include "core/broker/admission.h"
#include "core/codec/codec.h"
#include "tests/broker/tcp_support.h"

namespace rq::broker::test {
namespace {

class TcpUpgrade : public testing::Test {
 protected:
  TcpUpgrade() { h.config().security.tls.present = true; }
  void SetUp() override { ASSERT_TRUE(h.start()); }

  // A connection with what those fields of IDENTIFY ask for, every OK taken.
  Client& upgraded(const std::string& fields) {
    Client& client = h.connect();
    client.identify(R"({"feature_negotiation":true,)" + fields + "}");
    const Frame reply = client.answer();
    EXPECT_EQ(reply.type, 0) << reply.payload;
    if (fields.find("tls_v1") != std::string::npos) {
      EXPECT_NE(reply.payload.find(R"("tls_v1":true)"), std::string::npos) << reply.payload;
      client.start_tls("someone");
      EXPECT_RESPONSE(client, "OK");
    }
    for (const auto& [name, kind] :
         {std::pair{"snappy", Client::Compression::snappy}, std::pair{"deflate", Client::Compression::deflate}}) {
      if (fields.find(name) == std::string::npos) continue;
      EXPECT_NE(reply.payload.find("\"" + std::string(name) + "\":true"), std::string::npos) << reply.payload;
      client.compress(kind);
      EXPECT_RESPONSE(client, "OK");
    }
    return client;
  }
  // Publishes and consumes through it, small and large bodies and batches.
  void works(Client& client, const std::string& topic) {
    SCOPED_TRACE(topic);
    const std::string large(300'000, 'l');
    client.pub(topic, "small");
    EXPECT_RESPONSE(client, "OK");
    client.pub(topic, large);
    EXPECT_RESPONSE(client, "OK");
    client.mpub(topic, {"one", "two", std::string(70'000, 'z')});
    EXPECT_RESPONSE(client, "OK");
    client.sub(topic, "c");
    EXPECT_RESPONSE(client, "OK");
    client.rdy(10);
    ASSERT_TRUE(client.wait_messages(5));
    std::size_t bytes = 0;
    for (const sim::Message& message : client.messages()) {
      bytes += message.body.size();
      client.fin(message.id);
    }
    EXPECT_EQ(bytes, 5 + large.size() + 3 + 3 + 70'000);
    h.run_for(100);
    EXPECT_EQ(channel_stat(h, topic, "c", "in_flight_count"), 0);
  }
  BrokerHarness h;
};

TEST_F(TcpUpgrade, C_28_EveryCombinationAnswersOnceALayerAndThenWorks) {
  works(upgraded(R"("tls_v1":true)"), "tls");
  works(upgraded(R"("snappy":true)"), "snappy");
  works(upgraded(R"("deflate":true,"deflate_level":1)"), "deflate");
  works(upgraded(R"("tls_v1":true,"snappy":true)"), "tls-snappy");
  works(upgraded(R"("tls_v1":true,"deflate":true)"), "tls-deflate");
}

// A port may let the pieces of a compressed command gather (io::ReadOp::midway); it is told so only while there is one.
TEST_F(TcpUpgrade, AReadIsMidwayInsideACompressedCommandAndNotBetweenTwo) {
  h.world().net().fragment = false;
  const auto reads = [&](const std::string& fields, std::unique_ptr<codec::Encoder> encoder, std::size_t piece) {
    std::string bytes("PUB t\n\0\0\0\4body", 14);
    if (encoder != nullptr) {
      const ConstBuf plain = bytes_of(bytes);
      std::string out;
      encoder->encode(std::span(&plain, 1), out);
      bytes = out;
    }
    Client& client = upgraded(fields);
    const std::uint64_t before = h.world().counts().midway_reads;
    client.send_split(bytes, piece);
    EXPECT_RESPONSE(client, "OK");
    return h.world().counts().midway_reads - before;
  };
  EXPECT_EQ(reads(R"("snappy":true)", codec::snappy_encoder(), 1'000), 0u);
  EXPECT_GT(reads(R"("snappy":true)", codec::snappy_encoder(), 3), 0u);
  EXPECT_EQ(reads(R"("deflate":true)", codec::deflate_encoder(6), 1'000), 0u);
  EXPECT_GT(reads(R"("deflate":true)", codec::deflate_encoder(6), 3), 0u);
  EXPECT_EQ(reads(R"("client_id":"plain")", nullptr, 3), 0u) << "without compression";
}

TEST_F(TcpUpgrade, StatsShowWhatAConnectionUses) {
  Client& client = upgraded(R"("tls_v1":true,"snappy":true)");
  client.sub("t", "c");
  EXPECT_RESPONSE(client, "OK");
  const std::string body = stats(h, "t");
  EXPECT_NE(body.find(R"("deflate":false,"snappy":true)"), std::string::npos) << body;
  EXPECT_NE(body.find(R"("tls":true,"tls_cipher_suite":"Unknown 4865","tls_version":"TLS1.3")"), std::string::npos) << body;
}

TEST_F(TcpUpgrade, InputBehindIdentifyBelongsToTheNewLayer) {
  Client& client = h.client();
  ASSERT_TRUE(client.connect(h.tcp_address(), ""));  // the model's line is no frame
  client.send("  V2" + identify(R"({"feature_negotiation":true,"tls_v1":true})") + "TLS hello \nNOP\nASDF\n");
  ASSERT_TRUE(client.wait_closed());
  const std::string& raw = client.raw();
  const std::size_t ready = raw.find("TLS ready\n");
  ASSERT_NE(ready, std::string::npos);
  EXPECT_EQ(raw.find("\"tls_v1\":true") < ready, true);
  EXPECT_NE(raw.find("E_INVALID invalid command ASDF", ready), std::string::npos);
}

TEST_F(TcpUpgrade, AFurtherUpgradeIsNotGranted) {
  Client& client = upgraded(R"("snappy":true)");
  client.identify(R"({"feature_negotiation":true,"snappy":true,"tls_v1":true})");
  const Frame reply = client.answer();
  EXPECT_NE(reply.payload.find(R"("tls_v1":false,"deflate":false)"), std::string::npos) << reply.payload;
  EXPECT_NE(reply.payload.find(R"("snappy":false)"), std::string::npos) << reply.payload;
  EXPECT_USABLE(client);
}

TEST_F(TcpUpgrade, C_29_AHandshakeThatDoesNotComeClosesAfterFiveSecondsWithoutAFrameInClear) {
  Client& client = h.connect();
  client.identify(R"({"feature_negotiation":true,"tls_v1":true})");
  EXPECT_EQ(client.answer().type, 0);
  const std::size_t bytes = client.raw().size();
  h.run_for(4'900);
  EXPECT_FALSE(client.closed());
  ASSERT_TRUE(client.wait_closed(200));
  EXPECT_EQ(client.raw().size(), bytes) << "D-04";
}

TEST_F(TcpUpgrade, AHandshakeThatFailsClosesWithoutAFrameAndOthersGoOn) {
  Client& good = upgraded(R"("tls_v1":true)");
  Client& bad = h.connect();
  bad.identify(R"({"feature_negotiation":true,"tls_v1":true})");
  EXPECT_EQ(bad.answer().type, 0);
  bad.send("PUB t\n no handshake at all\n");
  ASSERT_TRUE(bad.wait_closed(1'000));
  EXPECT_EQ(bad.raw().find("E_"), std::string::npos);
  EXPECT_USABLE(good);
}

TEST_F(TcpUpgrade, C_30_NoHeartbeatComesBetweenTheAnswerAndTheOkOfTls) {
  Client& client = h.connect();
  client.keep_heartbeats(true);
  client.identify(R"({"feature_negotiation":true,"tls_v1":true,"heartbeat_interval":1000})");
  EXPECT_EQ(client.answer().type, 0);
  const std::size_t bytes = client.raw().size();
  h.run_for(3'500);
  EXPECT_EQ(client.raw().size(), bytes);
  EXPECT_FALSE(client.closed());
  client.start_tls();
  EXPECT_RESPONSE(client, "OK");
  EXPECT_RESPONSE(client, "_heartbeat_");
}

TEST_F(TcpUpgrade, C_31_ASnappyClientMayRepeatTheIdentifierBeforeEachCommand) {
  Client& client = upgraded(R"("snappy":true)");
  for (int i = 0; i < 3; ++i) {
    client.send_plain(std::string_view("\xff\x06\x00\x00sNaPpY", 10));
    client.pub("t", "x");
    EXPECT_RESPONSE(client, "OK");
  }
}

TEST_F(TcpUpgrade, C_32_PlaintextInACompressedConnectionClosesItAndNothingElse) {
  for (const char* kind : {R"("snappy":true)", R"("deflate":true)"}) {
    SCOPED_TRACE(kind);
    Client& other = upgraded(kind);
    Client& client = upgraded(kind);
    client.send_plain("CLS\nCLS\nCLS\n");
    ASSERT_TRUE(client.wait_closed(1'000));
    EXPECT_TRUE(client.take_frames().empty());
    EXPECT_USABLE(other);
  }
}

TEST_F(TcpUpgrade, C_33_AnIdleDeflateConnectionGetsHeartbeatsOnly) {
  Client& client = upgraded(R"("deflate":true,"heartbeat_interval":1000)");
  client.sub("t", "c");
  EXPECT_RESPONSE(client, "OK");
  client.rdy(1);
  h.run_for(1'100);
  const std::uint64_t heartbeats = client.heartbeats();
  const std::size_t bytes = client.raw().size();
  h.run_for(4'000);
  const std::uint64_t more = client.heartbeats() - heartbeats;
  EXPECT_EQ(more, 4u);
  EXPECT_LE(client.raw().size() - bytes, more * 30) << "nothing but four small blocks";
  EXPECT_GE(client.raw().size() - bytes, more * 5);
}

TEST_F(TcpUpgrade, B_33_BothCompressionsAreRefusedAndTheLevelIsClamped) {
  expect_fatal(h, identify(R"({"feature_negotiation":true,"snappy":true,"deflate":true})"),
               "E_IDENTIFY_FAILED cannot enable both deflate and snappy compression");
  Client& client = h.connect();
  client.identify(R"({"feature_negotiation":true,"deflate":true,"deflate_level":9})");
  const Frame reply = client.answer();
  EXPECT_NE(reply.payload.find(R"("deflate":true,"deflate_level":6,"max_deflate_level":6)"), std::string::npos) << reply.payload;
}

TEST_F(TcpUpgrade, ADisabledCodecIsNotNegotiatedAndNoConflict) {
  h.config().network.snappy_enabled = false;
  ASSERT_TRUE(h.restart());
  Client& client = h.connect();
  client.identify(R"({"feature_negotiation":true,"snappy":true,"deflate":true})");
  const Frame reply = client.answer();
  EXPECT_NE(reply.payload.find(R"("deflate":true)"), std::string::npos) << reply.payload;
  EXPECT_NE(reply.payload.find(R"("snappy":false)"), std::string::npos) << reply.payload;
  client.compress(Client::Compression::deflate);
  EXPECT_RESPONSE(client, "OK");
}

// 30 MB of one publish in 30 KB: it is refused at its size, after nothing was made of it; then 8 MB of commands in 8 KB, which
// are taken a few hundred KiB a turn while others are served.
TEST_F(TcpUpgrade, ABombIsTakenPieceByPieceWhileOthersAreServed) {
  Client& other = h.connect();
  Client& large = upgraded(R"("deflate":true)");
  large.send("PUB t\n" + int32(30'000'000) + std::string(3'000'000, '\0'));
  EXPECT_FATAL(large, "E_BAD_MESSAGE PUB message too big 30000000 > 20971520");
  Client& many = upgraded(R"("deflate":true)");
  std::string nops;
  for (int i = 0; i < 2'000'000; ++i) nops += "NOP\n";
  many.send(nops + "ASDF\n");
  EXPECT_USABLE(other);
  EXPECT_FATAL(many, "E_INVALID invalid command ASDF");
}

// What the node holds while bombs go off: charged bodies within the node's budget, and beside them no more than the chunks that
// each connection reads from and decodes into.
TEST_F(TcpUpgrade, ABombCostsNoMoreThanItsCommands) {
  constexpr std::uint64_t kBody = 4u << 20, kConnections = 8, kChunks = 3 * (128u << 10);
  const std::uint64_t charge = publish_charge(kBody, 65'536);
  h.config().queue.max_message_bytes = 1u << 20;
  h.config().limits.max_body_bytes = kBody;
  h.config().limits.connection_publish_inflight_bytes = charge;
  h.config().limits.node_publish_inflight_bytes = 3 * charge;
  ASSERT_TRUE(h.restart());
  std::uint64_t charged = 0, received = 0;  // at most
  const auto watch = [&](const auto& done, std::int64_t limit_ms) {
    return h.run_until(
        [&] {
          charged = std::max(charged, h.broker().publish_bytes_in_flight());
          received = std::max(received, h.broker().receive_bytes_held());
          return done();
        },
        limit_ms);
  };
  for (const char* layer : {R"("snappy":true)", R"("deflate":true)"}) {
    SCOPED_TRACE(layer);
    // A line without an end: 8 MiB.
    Client& endless = upgraded(layer);
    charged = received = 0;
    endless.send(std::string(8u << 20, 'A'));
    EXPECT_TRUE(watch([&] { return endless.closed(); }, 10'000));
    EXPECT_ERROR(endless, "E_INVALID command line too long");
    EXPECT_EQ(charged, 0u);
    EXPECT_LE(received, 2 * kChunks);
    // A batch of zeros in the sizes that are allowed.
    Client& zeros = upgraded(layer);
    charged = received = 0;
    const std::string message = int32(1u << 20) + std::string(1u << 20, '\0');
    const std::string batch = int32(3) + message + message + message;
    zeros.send("MPUB t\n" + int32(static_cast<std::uint32_t>(batch.size())) + batch);
    EXPECT_TRUE(watch([&] { return !zeros.frames().empty(); }, 10'000));
    EXPECT_RESPONSE(zeros, "OK");
    EXPECT_EQ(charged, publish_charge(batch.size(), 65'536));
    EXPECT_LE(received, charged + 2 * kChunks);
    zeros.close();
    // As many as there are: three fit into the node's budget, the others are let through and told.
    h.run_for(100);
    const std::uint64_t before = h.broker().receive_bytes_held();
    std::vector<Client*> many;
    for (std::uint64_t i = 0; i < kConnections; ++i) many.push_back(&upgraded(layer));
    charged = received = 0;
    constexpr std::uint32_t kMessage = (kBody - 4) / 4 - 4;
    const std::string zero = int32(kMessage) + std::string(kMessage, '\0');
    const std::string body = int32(4) + zero + zero + zero + zero;
    ASSERT_EQ(body.size(), kBody);
    for (Client* each : many) each->send("MPUB t\n" + int32(kBody) + body.substr(0, kBody - 1));
    EXPECT_FALSE(watch([] { return false; }, 3'000));
    EXPECT_EQ(charged, 3 * charge);
    EXPECT_LE(received, before + charged + kConnections * kChunks);
    std::size_t throttled = 0, stored = 0;
    for (Client* each : many) each->send(std::string(1, '\0'));
    EXPECT_FALSE(watch([] { return false; }, 1'000));
    for (Client* each : many) {
      const Frame answer = each->answer();
      throttled += answer.is_error("E_THROTTLED MPUB publish budget") ? 1 : 0;
      stored += answer.type == 0 && answer.payload == "OK" ? 1 : 0;
    }
    EXPECT_EQ(throttled, kConnections - 3);
    EXPECT_EQ(stored, 3u);
    EXPECT_LE(charged, 3 * charge);
    for (Client* each : many) each->close();
    h.run_for(100);
    EXPECT_EQ(h.broker().publish_bytes_in_flight(), 0u);
    EXPECT_LE(h.broker().receive_bytes_held(), before + kChunks);
  }
}

// Page 31 section 8: limits and times are those of the commands, whatever layer carries them.
TEST_F(TcpUpgrade, LimitsHoldForWhatIsDecoded) {
  for (const char* layer : {R"("snappy":true)", R"("deflate":true)", R"("tls_v1":true)", R"("tls_v1":true,"snappy":true)"}) {
    SCOPED_TRACE(layer);
    Client& line = upgraded(layer);
    line.send(std::string(2'000, 'A'));
    EXPECT_FATAL(line, "E_INVALID command line too long");
    Client& batch = upgraded(layer);
    batch.send("MPUB t\n" + int32(67'108'865));
    EXPECT_FATAL(batch, "E_BAD_BODY MPUB body too big 67108865 > 67108864");
    Client& stalled = upgraded(layer);
    stalled.send("PUB t\n" + int32(100) + "half");
    h.run_for(29'000);
    EXPECT_FALSE(stalled.closed());
    EXPECT_FATAL(stalled, "E_INVALID PUB timed out");
  }
  EXPECT_EQ(h.broker().publish_bytes_in_flight(), 0u);
}

// A layer does not hide that a peer takes nothing: it costs its own connection only.
TEST_F(TcpUpgrade, AClientThatStopsReadingALayerIsCutAndOthersAreServed) {
  for (int i = 0; i < 40; ++i) ASSERT_EQ(h.publish("t", std::string(100'000, static_cast<char>('a' + i % 26))), "OK");
  Client& slow = upgraded(R"("tls_v1":true,"heartbeat_interval":1000)");
  slow.sub("t", "slow");
  EXPECT_RESPONSE(slow, "OK");
  slow.stop_reading(true);
  slow.rdy(40);
  Client& good = upgraded(R"("snappy":true)");
  good.sub("t", "good");
  EXPECT_RESPONSE(good, "OK");
  good.rdy(40);
  EXPECT_TRUE(good.wait_messages(40, 2'000));
  h.run_for(5'000);
  EXPECT_EQ(channel_stat(h, "t", "slow", "client_count"), 0);
  EXPECT_EQ(channel_stat(h, "t", "good", "client_count"), 1);
}

TEST_F(TcpUpgrade, C_83_TlsRequiredRefusesEveryCommandBeforeTlsButIdentify) {
  h.config().security.tls.required = true;
  ASSERT_TRUE(h.restart());
  expect_fatal(h, "NOP\n", "E_INVALID cannot NOP in current state (TLS required)");
  expect_fatal(h, "\n", "E_INVALID cannot  in current state (TLS required)");
  EXPECT_EQ(h.http("GET", "/ping").body, "OK") << "D-04: HTTP goes on";
  works(upgraded(R"("tls_v1":true)"), "required");
}

// B-31 in the form of D-04: the text of nsqd.
TEST_F(TcpUpgrade, B_31_WithTlsRequiredAPlainIdentifyIsAnsweredAndAPublishStoresNothing) {
  h.config().security.tls.required = true;
  ASSERT_TRUE(h.restart());
  Client& client = h.connect();
  client.identify("{}");
  EXPECT_RESPONSE(client, "OK");
  client.pub("t", "x");
  EXPECT_FATAL(client, "E_INVALID cannot PUB in current state (TLS required)");
  EXPECT_NE(stats(h, "t").find(R"("topics":[])"), std::string::npos);
}

TEST_F(TcpUpgrade, AClientWithoutACertificateIsRefusedWhereOneIsNeeded) {
  h.world().net().tls_name_needed = true;
  Client& client = h.connect();
  client.identify(R"({"feature_negotiation":true,"tls_v1":true})");
  EXPECT_EQ(client.answer().type, 0);
  client.start_tls();
  ASSERT_TRUE(client.wait_closed(1'000));
  EXPECT_TRUE(client.frames().empty());
  upgraded(R"("tls_v1":true)");
}

TEST_F(TcpUpgrade, B_39_SamplingHoldsWithCompression) {
  for (int i = 0; i < 100; ++i) EXPECT_EQ(h.publish("sampled", "x"), "OK");
  Client& client = upgraded(R"("snappy":true,"sample_rate":50)");
  client.sub("sampled", "c");
  EXPECT_RESPONSE(client, "OK");
  client.rdy(100);
  h.run_for(1'000);
  EXPECT_EQ(client.messages().size(), 50u);
  for (const sim::Message& message : client.messages()) client.fin(message.id);
  h.run_for(500);
  EXPECT_EQ(channel_stat(h, "sampled", "c", "depth"), 0);
}

}  // namespace
}  // namespace rq::broker::test
