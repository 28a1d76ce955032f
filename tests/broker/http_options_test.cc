// Options of /config in nsqd's words (page 10 section 6.8).
#include "core/broker/http_options.h"

#include <gtest/gtest.h>

namespace rq::broker {
namespace {

std::string option(const Config& config, std::string_view name) {
  const auto response = further_option(config, name);
  return response ? response->body : "none";
}

TEST(HttpOptions, ALogLevelIsOneOfFiveWordsInAnyCase) {
  int number = 0;
  for (const char* word : {"debug", "INFO", "Warn", "eRROR", "fatal"}) {
    const auto level = parse_log_level(word);
    ASSERT_TRUE(level) << word;
    EXPECT_EQ(log_level_number(*level), ++number) << word;
  }
  for (const char* word : {"", "warning", "debug ", " info", "\"info\"", "6"}) EXPECT_FALSE(parse_log_level(word)) << word;
}

TEST(HttpOptions, DurationsAreNanosecondsAndConnectingHasTwoSecondsAtTheMost) {
  Config config;
  config.queue.relaxed_sync_interval_ms = 10;
  config.limits.auth_timeout_ms = 500;
  EXPECT_EQ(option(config, "sync_timeout"), "10000000");
  EXPECT_EQ(option(config, "http_client_connect_timeout"), "500000000");
  EXPECT_EQ(option(config, "http_client_request_timeout"), "500000000");
  config.limits.auth_timeout_ms = 30'000;
  EXPECT_EQ(option(config, "http_client_connect_timeout"), "2000000000");
  EXPECT_EQ(option(config, "http_client_request_timeout"), "30000000000");
}

TEST(HttpOptions, TlsIsToldInNumbersAndPolicies) {
  Config config;
  EXPECT_EQ(option(config, "tls_required"), "0");
  EXPECT_EQ(option(config, "tls_min_version"), "771");
  EXPECT_EQ(option(config, "tls_client_auth_policy"), "");
  EXPECT_EQ(option(config, "tls_root_ca_file"), "");
  config.security.tls.required = true;
  config.security.tls.min_version = TlsVersion::tls1_3;
  config.security.tls.require_client_certificate = true;
  config.security.tls.client_ca_file = "ca.pem";
  EXPECT_EQ(option(config, "tls_required"), "1");
  EXPECT_EQ(option(config, "tls_min_version"), "772");
  EXPECT_EQ(option(config, "tls_client_auth_policy"), "require-verify");
  EXPECT_EQ(option(config, "tls_root_ca_file"), "ca.pem");
  EXPECT_EQ(option(config, "no_such_option"), "none");
}

}  // namespace
}  // namespace rq::broker
