// Tokens of the HTTP routes (page 31 sections 5.1 and 5.2).
#include <gtest/gtest.h>

#include "core/broker/token_classes.h"
#include "tests/broker/http_test_support.h"

namespace rq::sim {
namespace {

using Headers = std::vector<std::pair<std::string, std::string>>;

Headers bearer(const std::string& token) { return {{"Authorization", "Bearer " + token}, {"Content-Type", "application/json"}}; }

// Every class has its own file.
struct Guarded {
  Guarded()
      : h(1, [](broker::Config& config) {
          config.security.publish_token_file = "tokens/publish";
          config.security.admin_token_file = "tokens/admin";
          config.security.registry_token_file = "tokens/registry";
          config.security.console_token_file = "tokens/console";
          config.security.console_management_enabled = true;
        }) {
    for (const char* name : {"publish", "admin", "registry", "console"}) h.disk().put(std::string("tokens/") + name, name);
    EXPECT_TRUE(h.start());
    EXPECT_EQ(h.http("POST", "/v1/manage/fences/sync", "{}", bearer("console")).status, 200);
  }
  BrokerHarness h;
};

TEST(HttpToken, B_54_EveryClassOpensItsRoutesAndNoOthers) {
  Guarded g;
  struct Row {
    const char* method;
    const char* target;
    const char* body;
    std::vector<std::string> opens;
  };
  const Row rows[] = {
      {"POST", "/pub?topic=t", "x", {"publish"}},
      {"POST", "/topic/create?topic=t", "", {"admin"}},
      {"PUT", "/config/nsqlookupd_tcp_addresses", "[]", {"admin"}},
      {"POST", "/v1/drain", R"({"enabled":false})", {"admin"}},
      {"GET", "/v1/drain", "", {"registry", "console"}},
      {"GET", "/v1/registry", "", {"registry", "console"}},
      {"GET", "/v1/registry/head", "", {"registry", "console"}},
      {"GET", "/v1/capabilities", "", {"registry", "console"}},
      {"POST", "/v1/manage/fences/sync", "{}", {"console"}},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(result_of(g.h.http(row.method, row.target, row.body)), "401 E_UNAUTHORIZED") << row.target;
    for (const std::string name : {"publish", "admin", "registry", "console"}) {
      const bool opens = std::find(row.opens.begin(), row.opens.end(), name) != row.opens.end();
      EXPECT_EQ(g.h.http(row.method, row.target, row.body, bearer(name)).status, opens ? 200 : 401) << row.target << " " << name;
    }
  }
  for (const char* open : {"/ping", "/info", "/stats", "/metrics", "/v1/health", "/v1/stats"})
    EXPECT_EQ(g.h.http("GET", open).status, 200) << open;
}

TEST(HttpToken, B_55_AWrongBearerCountsAloneAndTheHeaderWorksWithoutOne) {
  Guarded g;
  EXPECT_EQ(g.h.http("POST", "/pub?topic=t", "x", {{"Authorization", "Bearer wrong"}, {"X-RustQueue-Token", "publish"}}).status,
            401);
  EXPECT_EQ(g.h.http("POST", "/pub?topic=t", "x", {{"X-RustQueue-Token", "publish"}}).status, 200);
}

TEST(HttpToken, B_56_ARewrittenFileReplacesTheTokenWithinTwoSeconds) {
  Guarded g;
  g.h.disk().put("tokens/publish", "  new one\n");
  g.h.run_for(2'000);
  EXPECT_EQ(g.h.http("POST", "/pub?topic=t", "x", bearer("publish")).status, 401);
  EXPECT_EQ(g.h.http("POST", "/pub?topic=t", "x", bearer("new one")).status, 200);
}

TEST(HttpToken, B_57_AnEmptiedFileClosesItsClassUntilItIsRestored) {
  Guarded g;
  g.h.disk().put("tokens/publish", " \n");
  g.h.run_for(2'000);
  EXPECT_EQ(result_of(g.h.http("POST", "/pub?topic=t", "x", bearer("publish"))), "503 E_AUTH_UNAVAILABLE");
  EXPECT_EQ(g.h.http("POST", "/topic/create?topic=t", "", bearer("admin")).status, 200);
  g.h.disk().put("tokens/publish", "publish");
  g.h.run_for(2'000);
  EXPECT_EQ(g.h.http("POST", "/pub?topic=t", "x", bearer("publish")).status, 200);
}

TEST(HttpToken, B_58_AnUnreadableRegistryFileClosesTheRegistryToTheConsoleToo) {
  Guarded g;
  g.h.disk().put("tokens/registry", "");
  g.h.run_for(2'000);
  EXPECT_EQ(result_of(g.h.http("GET", "/v1/registry", "", bearer("console"))), "503 E_AUTH_UNAVAILABLE");
}

// D-33: said once at start.
TEST(HttpToken, ClassesWithoutAFileAreNamed) {
  broker::Config::Security security;
  EXPECT_EQ(broker::open_token_classes(security), "publish,admin,registry,console");
  security.console_token_file = "c";
  EXPECT_EQ(broker::open_token_classes(security), "publish,admin");
  security.admin_token_file = security.publish_token_file = "a";
  EXPECT_EQ(broker::open_token_classes(security), "");
}

// Between the opening of the directory and the first reading of the files nobody is let in and nobody is sent away.
TEST(HttpToken, ARequestWhileTheFilesAreStillUnreadWaitsForThem) {
  Guarded g;
  ASSERT_TRUE(g.h.stop());
  g.h.disk().faults.latency_ns_min = g.h.disk().faults.latency_ns_max = 20 * kMillisecond;
  g.h.boot();
  ASSERT_TRUE(g.h.run_until([&] { return g.h.broker().engine().state() == queue::EngineState::open; }, 60'000));
  ASSERT_FALSE(g.h.broker().serving());
  EXPECT_EQ(g.h.http("POST", "/v1/manage/fences/sync", "{}", bearer("console")).status, 200);
  EXPECT_TRUE(g.h.broker().serving());
}

TEST(HttpToken, AMissingFileRefusesTheStart) {
  BrokerHarness h(2, [](broker::Config& config) { config.security.admin_token_file = "tokens/absent"; });
  EXPECT_NE(h.start_expecting_refusal().find("tokens/absent"), std::string::npos);
}

}  // namespace
}  // namespace rq::sim
