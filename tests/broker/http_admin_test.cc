// /topic/..., /channel/..., /config, and the common rules of page 10 section 6.1.
#include "tests/broker/http_test_support.h"

namespace rq::sim {
namespace {

TEST(HttpAdmin, TopicsAndChannelsAreMadePausedEmptiedAndDeleted) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  for (int twice = 0; twice < 2; ++twice) {
    const HttpReply made = h.http("POST", "/topic/create?topic=t");
    EXPECT_EQ(made.status, 200);
    EXPECT_EQ(made.body, "");
    EXPECT_EQ(made.header("content-length"), "0");
    EXPECT_EQ(made.header("content-type"), "");
    EXPECT_EQ(made.header("x-nsq-content-type"), "nsq; version=1.0");
    EXPECT_EQ(h.http("POST", "/channel/create?topic=t&channel=c").status, 200);
  }
  EXPECT_EQ(h.http("POST", "/pub?topic=t", "x").status, 200);
  for (const char* what : {"pause", "pause", "unpause", "unpause"}) {
    EXPECT_EQ(h.http("POST", std::string("/topic/") + what + "?topic=t").status, 200) << what;
    EXPECT_EQ(h.http("POST", std::string("/channel/") + what + "?topic=t&channel=c").status, 200) << what;
  }
  EXPECT_EQ(h.http("POST", "/channel/empty?topic=t&channel=c").status, 200);
  EXPECT_EQ(first_channel(json_of(h.http("GET", "/stats?format=json"))).at("depth").to_number<int>(), 0);
  EXPECT_EQ(h.http("POST", "/topic/empty?topic=t").status, 200);
  EXPECT_EQ(h.http("POST", "/channel/delete?topic=t&channel=c").status, 200);
  EXPECT_EQ(result_of(h.http("POST", "/channel/delete?topic=t&channel=c")), "404 CHANNEL_NOT_FOUND");
  EXPECT_EQ(h.http("POST", "/topic/delete?topic=t").status, 200);
  EXPECT_EQ(result_of(h.http("POST", "/topic/delete?topic=t")), "404 TOPIC_NOT_FOUND");
}

TEST(HttpAdmin, C_90_TopicAndChannelRoutesNameTheirErrorsAsNsqdDoes) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  EXPECT_EQ(result_of(h.http("POST", "/topic/pause?topic=a%24")), "404 TOPIC_NOT_FOUND");
  EXPECT_EQ(result_of(h.http("POST", "/channel/create?topic=missing&channel=c")), "404 TOPIC_NOT_FOUND");
  EXPECT_EQ(result_of(h.http("POST", "/channel/create?topic=c%24&channel=c")), "400 INVALID_ARG_TOPIC");
}

TEST(HttpAdmin, EveryParameterErrorHasItsCode) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  ASSERT_EQ(h.http("POST", "/topic/create?topic=t").status, 200);
  const std::pair<const char*, const char*> cases[] = {
      {"/topic/create", "400 MISSING_ARG_TOPIC"},
      {"/topic/create?topic=a%24", "400 INVALID_TOPIC"},
      {"/topic/create?topic=", "400 INVALID_TOPIC"},
      {"/topic/create?topic=%zz", "400 INVALID_REQUEST"},
      {"/topic/create?topic=a;b", "400 INVALID_REQUEST"},
      {"/topic/delete", "400 MISSING_ARG_TOPIC"},
      {"/topic/delete?topic=a%24", "404 TOPIC_NOT_FOUND"},
      {"/topic/empty", "400 MISSING_ARG_TOPIC"},
      {"/topic/empty?topic=a%24", "400 INVALID_TOPIC"},
      {"/topic/empty?topic=none", "404 TOPIC_NOT_FOUND"},
      {"/topic/unpause?topic=none", "404 TOPIC_NOT_FOUND"},
      {"/channel/create", "400 MISSING_ARG_TOPIC"},
      {"/channel/create?topic=t", "400 MISSING_ARG_CHANNEL"},
      {"/channel/create?topic=t&channel=a%24", "400 INVALID_ARG_CHANNEL"},
      {"/channel/create?topic=a%24", "400 INVALID_ARG_TOPIC"},
      {"/channel/empty?topic=none&channel=c", "404 TOPIC_NOT_FOUND"},
      {"/channel/empty?topic=t&channel=c", "404 CHANNEL_NOT_FOUND"},
      {"/channel/pause?topic=t&channel=c", "404 CHANNEL_NOT_FOUND"},
      {"/channel/unpause?%", "400 INVALID_REQUEST"},
  };
  for (const auto& [target, expected] : cases) EXPECT_EQ(result_of(h.http("POST", target)), expected) << target;
  // Parameters come from the query only.
  EXPECT_EQ(result_of(h.http("POST", "/topic/create", "topic=t", {{"Content-Type", "application/x-www-form-urlencoded"}})),
            "400 MISSING_ARG_TOPIC");
}

TEST(HttpAdmin, C_91_MethodsPathsAndTheNsqHeader) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  const HttpReply wrong = h.http("GET", "/pub");
  EXPECT_EQ(result_of(wrong), "405 METHOD_NOT_ALLOWED");
  EXPECT_EQ(wrong.header("allow"), "OPTIONS, POST");
  EXPECT_EQ(result_of(h.http("GET", "/put")), "404 NOT_FOUND");
  const HttpReply ping = h.http("GET", "/ping");
  EXPECT_EQ(ping.body, "OK");
  EXPECT_EQ(ping.header("x-nsq-content-type"), "");
  EXPECT_EQ(h.http("GET", "/info").header("x-nsq-content-type"), "nsq; version=1.0");
}

TEST(HttpAdmin, HeadIsRefusedOptionsAnsweredAndMisspeltPathsRedirected) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  EXPECT_EQ(h.http("HEAD", "/ping").status, 405);
  EXPECT_EQ(h.http("POST", "/stats").header("allow"), "GET, OPTIONS");
  const HttpReply options = h.http("OPTIONS", "/pub");
  EXPECT_EQ(options.status, 200);
  EXPECT_EQ(options.header("allow"), "OPTIONS, POST");
  EXPECT_EQ(options.body, "");
  EXPECT_EQ(options.header("x-nsq-content-type"), "");
  const HttpReply slash = h.http("GET", "/stats/?format=json");
  EXPECT_EQ(slash.status, 301);
  EXPECT_EQ(slash.header("location"), "/stats?format=json");
  EXPECT_EQ(slash.body, "<a href=\"/stats?format=json\">Moved Permanently</a>.\n\n");
  EXPECT_EQ(h.http("GET", "/topic/..//./PING").header("location"), "/ping");
  EXPECT_EQ(h.http("GET", "/ping/?a=<\"'&>").body, "<a href=\"/ping?a=&lt;&#34;&#39;&amp;&gt;\">Moved Permanently</a>.\n\n");
  EXPECT_EQ(h.http("POST", "/PUB?topic=t", "x").status, 307);
  EXPECT_EQ(result_of(h.http("GET", "/config")), "404 NOT_FOUND");
  EXPECT_EQ(result_of(h.http("GET", "/config/")), "404 NOT_FOUND");
}

TEST(HttpAdmin, C_94_InfoDurationsAreNanosecondsAndOptionsCanBeRead) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  const boost::json::value value = json_of(h.http("GET", "/info"));
  const auto& info = value.as_object();
  EXPECT_EQ(info.at("max_heartbeat_interval").as_int64(), 60'000'000'000);
  EXPECT_EQ(info.at("max_output_buffer_timeout").as_int64(), 30'000'000'000);
  EXPECT_EQ(info.at("max_output_buffer_size").as_int64(), 65'536);
  EXPECT_EQ(info.at("max_deflate_level").as_int64(), 6);
  EXPECT_TRUE(info.at("version").as_string().starts_with("1.3.0+rustqueue."));
  EXPECT_EQ(info.at("tcp_port").as_int64(), 4'150);
  EXPECT_EQ(info.at("http_port").as_int64(), 4'151);
  EXPECT_EQ(info.begin()->key(), "version");
  EXPECT_EQ(h.http("GET", "/config/msg_timeout").body, "60000000000");
  EXPECT_EQ(h.http("GET", "/config/tcp_address").body, "127.0.0.1:4150");
  EXPECT_EQ(h.http("GET", "/config/max_rdy_count").body, "2500");
  EXPECT_EQ(h.http("GET", "/config/nsqlookupd_tcp_addresses").body, "[]");
  EXPECT_EQ(h.http("GET", "/config/snappy").body, "true");
}

TEST(HttpAdmin, OptionsOfTlsAndOfTheQueuesAreNamedAsNsqdNamesThem) {
  BrokerHarness h(1, [](broker::Config& c) {
    c.security.tls.present = c.security.tls.required = c.security.tls.require_client_certificate = true;
    c.security.tls.certificate_file = "node.pem";
    c.security.tls.min_version = broker::TlsVersion::tls1_3;
  });
  ASSERT_TRUE(h.start());
  const std::pair<const char*, const char*> options[] = {
      {"tls_cert", "node.pem"},
      {"tls_key", ""},
      {"tls_required", "1"},
      {"tls_min_version", "772"},
      {"tls_root_ca_file", ""},
      {"tls_client_auth_policy", "require-verify"},
      {"mem_queue_size", "10000"},
      {"sync_every", "2500"},
      {"sync_timeout", "10000000"},
      {"e2e_processing_latency_percentiles", "[]"},
      {"log_level", "2"},
      {"http_client_connect_timeout", "2000000000"},
      {"max_channel_consumers", "0"},
      {"http_client_request_timeout", "5000000000"},
  };
  for (const auto& [option, value] : options) EXPECT_EQ(h.http("GET", std::string("/config/") + option).body, value) << option;
}

TEST(HttpAdmin, TheLogLevelIsABareWordAndReadAsANumber) {
  BrokerHarness h;
  ASSERT_TRUE(h.start());
  const std::pair<const char*, const char*> levels[] = {
      {"debug", "1"}, {"Info", "2"}, {"WARN", "3"}, {"error", "4"}, {"fatal", "5"}};
  for (const auto& [word, number] : levels) {
    EXPECT_EQ(h.http("PUT", "/config/log_level", word).body, number);
    EXPECT_EQ(h.http("GET", "/config/log_level").body, number);
  }
  EXPECT_EQ(h.broker().log_level().least, std::nullopt);
  EXPECT_EQ(result_of(h.http("PUT", "/config/log_level", "\"info\"")), "400 INVALID_VALUE");
  EXPECT_EQ(result_of(h.http("PUT", "/config/log_level", "loud")), "400 INVALID_VALUE");
  EXPECT_EQ(result_of(h.http("PUT", "/config/log_level", "")), "413 INVALID_VALUE");
  EXPECT_EQ(h.http("GET", "/config/log_level").body, "5");
}

TEST(HttpAdmin, UnknownOptionsAndEmptyValuesAreRefused) {
  BrokerHarness h(1, [](broker::Config& c) { c.queue.max_message_bytes = 100; });
  ASSERT_TRUE(h.start());
  EXPECT_EQ(result_of(h.http("GET", "/config/x")), "400 INVALID_OPTION");
  EXPECT_EQ(result_of(h.http("PUT", "/config/max_rdy_count", "1")), "400 INVALID_OPTION");
  EXPECT_EQ(result_of(h.http("PUT", "/config/x")), "413 INVALID_VALUE");
  EXPECT_EQ(result_of(h.http("PUT", "/config/x", std::string(101, 'x'))), "413 INVALID_VALUE");
  EXPECT_EQ(h.http("POST", "/config/x", "1").header("allow"), "GET, OPTIONS, PUT");
}

}  // namespace
}  // namespace rq::sim
