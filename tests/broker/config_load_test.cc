// Loading rules of page 31 sections 2.1 and 2.3.
#include <gtest/gtest.h>

#include <set>

#include "core/broker/config.h"

namespace rq::broker {
namespace {

using std::string;

std::string load_error(const ConfigFile& file, const Environment& environment = {}) {
  auto config = load_config(file, environment);
  return config ? "" : config.error();
}
Config loaded(const ConfigFile& file, const Environment& environment = {}) {
  auto config = load_config(file, environment);
  EXPECT_TRUE(config.has_value()) << config.error();
  return config.value_or(Config{});
}
bool mentions(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

TEST(ConfigLoad, DefaultsAloneAreValid) {
  EXPECT_EQ(validate(loaded({})), std::nullopt);
  EXPECT_TRUE(without_effect(Config{}).empty());
}

TEST(ConfigLoad, B_03_UnknownKeysAndSectionsAreRefusedByName) {
  EXPECT_TRUE(mentions(load_error({{"limits.max_bodies", std::int64_t{1}}}), "limits.max_bodies"));
  EXPECT_TRUE(mentions(load_error({{"bogus", std::monostate{}}}), "bogus"));
  EXPECT_TRUE(mentions(load_error({{"bogus.key", true}}), "bogus.key"));
  EXPECT_TRUE(mentions(load_error({{"security.tls.cipher", string("x")}}), "security.tls.cipher"));
  for (const char* section : {"tls", "auth", "tokens", "console", "kodo"})
    EXPECT_TRUE(mentions(load_error({{section, std::monostate{}}}), section));
  EXPECT_EQ(load_error({{"limits", std::monostate{}}, {"security", std::monostate{}}, {"security.tls", std::monostate{}}}), "");
}

TEST(ConfigLoad, EveryKeyRefusesAnotherTypeByName) {
  for (std::string_view key : config_keys()) {
    const string name(key);
    EXPECT_TRUE(mentions(load_error({{name, std::monostate{}}}), name)) << name;
    int accepted = 0;
    for (const ConfigValue& value : {ConfigValue(std::int64_t{1}), ConfigValue(true), ConfigValue(string("no such")),
                                     ConfigValue(std::vector<string>{"a"})}) {
      const string error = load_error({{name, value}});
      accepted += error.empty();
      if (!error.empty()) {
        EXPECT_TRUE(mentions(error, name)) << error;
      }
    }
    EXPECT_LE(accepted, 1) << name;
  }
}

TEST(ConfigLoad, IntegersOutsideTheRangeOfTheirTypeAreRefused) {
  const std::pair<const char*, std::int64_t> outside[] = {
      {"node.id", -1},
      {"network.advertised_tcp_port", 65'536},
      {"network.max_deflate_level", 2'147'483'648},
      {"storage.feature_level", 4'294'967'296},
      {"storage.disk_high_watermark_percent", 256},
      {"queue.max_delivery_attempts", 65'536},
  };
  for (const auto& [key, value] : outside) EXPECT_TRUE(mentions(load_error({{key, value}}), key)) << key;
}

TEST(ConfigLoad, EnvironmentWinsOverTheFile) {
  const Config config = loaded({{"queue.max_topics", std::int64_t{5}}, {"node.broadcast_address", string("file")}},
                               {{"RUSTQUEUE_MAX_TOPICS", "7"}});
  EXPECT_EQ(config.queue.max_topics, 7u);
  EXPECT_EQ(config.node.broadcast_address, "file");
}

TEST(ConfigLoad, B_05_NodeIdComesFromThePodNameUnlessItIsGiven) {
  const ConfigFile file = {{"node.id", std::int64_t{3}}};
  EXPECT_EQ(loaded(file, {{"POD_NAME", "queue-7"}}).node.id, 8u);
  EXPECT_EQ(loaded(file, {{"POD_NAME", "queue-7"}, {"RUSTQUEUE_NODE_ID", "5"}}).node.id, 5u);
  EXPECT_EQ(loaded(file, {{"POD_NAME", "queue"}, {"RUSTQUEUE_NODE_ID", "5"}}).node.id, 5u);
  for (const char* pod : {"queue", "queue-", "queue-x", "queue-1x", "queue-18446744073709551615", "7"})
    EXPECT_TRUE(mentions(load_error(file, {{"POD_NAME", pod}}), "POD_NAME")) << pod;
}

TEST(ConfigLoad, B_06_EnvironmentValuesAreParsedStrictly) {
  for (const char* text : {"yes", "True", "1", "", " true"})
    EXPECT_TRUE(mentions(load_error({}, {{"RUSTQUEUE_WEBSOCKET_ENABLED", text}}), "RUSTQUEUE_WEBSOCKET_ENABLED")) << text;
  for (const char* text : {"", " 1", "1 ", "+1", "-1", "0x10", "1.0", "18446744073709551616"})
    EXPECT_TRUE(mentions(load_error({}, {{"RUSTQUEUE_MAX_TOPICS", text}}), "RUSTQUEUE_MAX_TOPICS")) << text;
  EXPECT_TRUE(mentions(load_error({}, {{"RUSTQUEUE_PUBLISH_ACK_MODE", ""}}), "RUSTQUEUE_PUBLISH_ACK_MODE"));
  EXPECT_TRUE(mentions(load_error({}, {{"RUSTQUEUE_TCP_ADDRESS", "localhost:4150"}}), "RUSTQUEUE_TCP_ADDRESS"));
  EXPECT_EQ(loaded({}, {{"RUSTQUEUE_WEBSOCKET_ENABLED", "true"}}).websocket.enabled, true);
}

TEST(ConfigLoad, OriginListsAreTrimmedAndBlanksDropped) {
  const Config config = loaded({}, {{"RUSTQUEUE_WEBSOCKET_ALLOWED_ORIGINS", " http://a , ,https://b:1,"}});
  EXPECT_EQ(config.websocket.allowed_origins, (std::vector<string>{"http://a", "https://b:1"}));
  EXPECT_TRUE(loaded({}, {{"RUSTQUEUE_WEBSOCKET_ALLOWED_ORIGINS", ""}}).websocket.allowed_origins.empty());
}

TEST(ConfigLoad, AddressesAreLiteralsWithAPort) {
  for (const char* good :
       {"0.0.0.0:0", "1.2.3.4:65535", "[::]:4150", "[::1]:1", "[fe80::1:2]:80", "[1:2:3:4:5:6:7:8]:9", "[::ffff:10.0.0.1]:80"})
    EXPECT_TRUE(is_socket_address(good)) << good;
  for (const char* bad :
       {"", ":80", "localhost:80", "1.2.3:80", "1.2.3.4", "1.2.3.4:", "1.2.3.4:65536", "256.1.1.1:1", "01.2.3.4:1", "::1:80",
        "[::1]", "[1:2]:80", "[1::2::3]:80", "[]:80", "1.2.3.4:+1", "[1:2:3:4:5:6:7:8:9]:1"})
    EXPECT_FALSE(is_socket_address(bad)) << bad;
}

TEST(ConfigLoad, TlsIsOnWhenItsSectionStandsInTheFile) {
  EXPECT_FALSE(loaded({}).security.tls.present);
  EXPECT_TRUE(loaded({{"security.tls", std::monostate{}}}).security.tls.present);
  const Config config = loaded({{"security.tls.require_client_certificate", true}});
  EXPECT_TRUE(config.security.tls.present);
  EXPECT_EQ(config.security.tls.effective_client_auth(), ClientAuth::require_verify);
}

TEST(ConfigLoad, KeysOfPage05AreKnown) {
  const Config config = loaded({{"limits.max_channel_consumers", std::int64_t{3}},
                                {"network.nsqlookupd_tcp_addresses", std::vector<string>{"a:4160"}},
                                {"queue.ephemeral_queue_messages", std::int64_t{4}},
                                {"limits.node_ephemeral_bytes", std::int64_t{5}},
                                {"limits.max_http_connections", std::int64_t{6}},
                                {"security.tls.min_version", string("tls1.3")},
                                {"security.tls.client_auth", string("require-verify")},
                                {"storage.barrier", string("syncfs")}});
  EXPECT_EQ(config.limits.max_channel_consumers, 3u);
  EXPECT_EQ(config.network.nsqlookupd_tcp_addresses.size(), 1u);
  EXPECT_EQ(config.limits.max_http_connections, 6u);
  EXPECT_EQ(config.security.tls.min_version, TlsVersion::tls1_3);
  EXPECT_EQ(config.storage.barrier, BarrierStrategy::syncfs);
  EXPECT_TRUE(mentions(load_error({{"storage.barrier", string("fsync")}}), "auto, fdatasync, syncfs"));
  EXPECT_TRUE(
      mentions(load_error({{"network.nsqlookupd_tcp_addresses", std::vector<string>{"a:4160", "b"}}}), "must be host:port"));
  EXPECT_TRUE(mentions(load_error({{"network.nsqlookupd_tcp_addresses", std::vector<string>(65, "a:1")}}), "at most 64"));
}

TEST(ConfigLoad, AnAuthServerIsAHostAndPortOrAUrl) {
  const auto load = [](const char* address) {
    return load_config({{"security.auth_http_addresses", std::vector<string>{"127.0.0.1:4181", address}}}, {});
  };
  for (const char* good : {"auth:80", "http://auth", "HTTP://u:p@auth/x", "https://auth.local:4443/auth?realm=a",
                           "http://[::1]:4181/", "[::1]:4181"})
    EXPECT_TRUE(load(good)) << good;
  for (const char* bad :
       {"http://", "ftp://auth:80", "auth:0", "auth:65536", "auth:port", "a b:80", "http://auth/a b", "::1:80"}) {
    const auto config = load(bad);
    ASSERT_FALSE(config) << bad;
    EXPECT_TRUE(mentions(config.error(), "security.auth_http_addresses: must be host:port or an http:// or https:// URL")) << bad;
  }
}

TEST(ConfigLoad, KeysWithoutAFeatureInThisBuildAreNamed) {
  const Config config = loaded({{"security.kodo_cleanup_token_file", string("t")}, {"queue.max_topics", std::int64_t{9}}});
  EXPECT_EQ(without_effect(config), (std::vector<string>{"security.kodo_cleanup_token_file"}));
}

TEST(ConfigLoad, KeyNamesAndVariablesAreUnique) {
  std::set<std::string_view> names;
  for (std::string_view key : config_keys()) EXPECT_TRUE(names.insert(key).second) << key;
  EXPECT_EQ(config_value_text(Config{}, "storage.barrier"), "auto");
  EXPECT_EQ(config_value_text(Config{}, "queue.max_defer_ms"), "3600000");
}

}  // namespace
}  // namespace rq::broker
