// Peers that misbehave in TLS, compression and AUTH, beside one that behaves and is not harmed.
#include <gtest/gtest.h>

#include "sim/auth_server.h"
#include "sim/harness.h"
#include "tests/sim/probe_scenarios.h"

namespace rq::sim::scenarios {

void misbehaving_transports() {
  BrokerHarness h(220, [](broker::Config& config) { config.security.tls.present = true; });
  ASSERT_TRUE(h.start());
  const auto ask = [&](std::string_view what) -> Client& {
    Client& client = h.connect();
    client.identify("{\"feature_negotiation\":true,\"" + std::string(what) + "\":true}");
    EXPECT_TRUE(client.answer().payload.starts_with("{"));
    return client;
  };
  Client& good = ask("tls_v1");
  good.start_tls("good");
  EXPECT_EQ(good.answer().payload, "OK");

  Client& clear = ask("tls_v1");
  clear.send("PUB t\n");
  Client& plain = ask("snappy");
  plain.compress(Client::Compression::snappy);
  EXPECT_EQ(plain.answer().payload, "OK");
  plain.send_plain("CLS\n not a chunk");
  Client& bomb = ask("deflate");
  bomb.compress(Client::Compression::deflate);
  EXPECT_EQ(bomb.answer().payload, "OK");
  std::string nops;
  for (int i = 0; i < 500'000; ++i) nops += "NOP\n";
  bomb.send(nops);

  for (int i = 0; i < 20; ++i) {
    good.pub("t", "body");
    EXPECT_EQ(good.answer().payload, "OK");
  }
  EXPECT_TRUE(clear.wait_closed(1'000));
  EXPECT_TRUE(plain.wait_closed(1'000));
  EXPECT_FALSE(bomb.closed());
  h.broker().check_invariants();
}

void auth_memory_used_up() {
  constexpr const char* kAddress = "127.0.0.1:4181";
  BrokerHarness h(221, [&](broker::Config& config) {
    config.security.auth_http_addresses = {kAddress};
    config.limits.auth_response_bytes = 4'096;
    config.limits.auth_memory_bytes = 16'384;  // one question at a time
  });
  AuthServer server(h.world(), h.world().make_disk("auth"), "auth", kAddress);
  server.answer = [](const std::string&) { return std::string(); };  // holds its question
  server.start();
  ASSERT_TRUE(h.start());
  const std::string secret("AUTH\n\0\0\0\x01s", 10);
  Client& first = h.connect();
  first.send(secret);
  h.run_for(200);
  Client& second = h.connect();
  second.send(secret);
  EXPECT_EQ(second.answer().payload, "E_AUTH_FAILED AUTH failed");
  EXPECT_FALSE(first.closed());
  EXPECT_EQ(first.answer().payload, "E_AUTH_FAILED AUTH failed") << "after its time";
}

}  // namespace rq::sim::scenarios
