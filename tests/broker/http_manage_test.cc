// Native HTTP: management, fences, registry, drain (page 31 sections 5.5, 5.6 and 5.9; page 30 sections 12 and 13).
#include <gtest/gtest.h>

#include "sim/lookup_server.h"
#include "tests/broker/http_test_support.h"

namespace rq::sim {
namespace {

using Headers = std::vector<std::pair<std::string, std::string>>;
const Headers kJson = {{"Content-Type", "application/json"}};
const Headers kConsole = {{"Content-Type", "application/json"}, {"Authorization", "Bearer console-secret"}};
constexpr std::int64_t kHourMs = 3'600'000;

BrokerHarness::Tweak managed() {
  return [](broker::Config& config) {
    config.security.console_management_enabled = true;
    config.security.console_token_file = "tokens/console";
  };
}

// A Broker with management whose token file is there; its fences are synchronised unless asked otherwise.
struct Managed {
  explicit Managed(std::uint64_t seed, bool synchronised = true) : h(seed, managed()) {
    h.disk().put("tokens/console", " console-secret\n");
    EXPECT_TRUE(h.start());
    if (synchronised) sync();
  }
  void sync() { EXPECT_EQ(h.http("POST", "/v1/manage/fences/sync", "{}", kConsole).status, 200); }
  std::uint64_t revision() {
    return json_of(h.http("GET", "/v1/registry/head", "", kConsole)).at("revision").to_number<std::uint64_t>();
  }
  HttpReply manage(const std::string& path, int id, const std::string& fields, std::uint64_t revision_now) {
    const std::string body = R"({"operation_id":"operation-)" + std::to_string(10'000'000 + id) + R"(","expected_revision":)" +
                             std::to_string(revision_now) + "," + fields + "}";
    return h.http("POST", "/v1/manage/" + path, body, kConsole);
  }
  HttpReply manage(const std::string& path, int id, const std::string& fields) { return manage(path, id, fields, revision()); }
  std::string deadline(std::int64_t in) { return std::to_string(h.process().host()->clock.wall().ms() + in); }
  BrokerHarness h;
};

TEST(HttpManage, B_61_WithoutASynchronisationNothingMayBeTouched) {
  Managed m(61, false);
  const HttpReply health = m.h.http("GET", "/v1/health");
  EXPECT_EQ(health.status, 503);
  EXPECT_EQ(json_of(health).at("reason").as_string(), "management_fences_stale");
  EXPECT_EQ(result_of(m.h.http("POST", "/pub?topic=t", "x")), "503 E_MANAGEMENT_UNAVAILABLE");
  EXPECT_EQ(m.h.publish("t", "x").substr(0, 15), "E_PUB_RETRY PUB");
  Client& client = m.h.connect();
  client.sub("t", "c");
  EXPECT_EQ(client.answer().payload.substr(0, 16), "E_SUB_FAILED SUB");
  m.sync();
  EXPECT_EQ(m.h.http("GET", "/v1/health").status, 200);
  EXPECT_EQ(m.h.http("POST", "/pub?topic=t", "x").status, 200);
  ASSERT_TRUE(m.h.restart());
  EXPECT_EQ(m.h.http("GET", "/v1/health").status, 503);
}

TEST(HttpManage, B_62_ARepeatedOperationHasOneAnswerAndAForeignOneConflicts) {
  Managed m(62);
  const std::uint64_t before = m.revision();
  const HttpReply first = m.manage("topics/create", 1, R"("topic":"t")", before);
  EXPECT_EQ(first.status, 200);
  EXPECT_EQ(first.body, R"({"revision":)" + std::to_string(before + 2) + R"(,"changed":true})");
  EXPECT_EQ(m.manage("topics/create", 1, R"("topic":"t")", before).body, first.body);
  EXPECT_EQ(m.revision(), before + 2);
  EXPECT_EQ(result_of(m.manage("topics/pause", 1, R"("topic":"t")")), "409 E_OPERATION_CONFLICT");
  EXPECT_EQ(result_of(m.h.http("POST", "/v1/manage/topics/pause",
                               R"({"operation_id":"fifteen-letters","topic":"t","expected_revision":1})", kConsole)),
            "409 E_OPERATION_CONFLICT");
}

TEST(HttpManage, B_63_AStaleRevisionChangesNothing) {
  Managed m(63);
  const std::uint64_t before = m.revision();
  EXPECT_EQ(result_of(m.manage("topics/create", 1, R"("topic":"t")", before - 1)), "409 E_REVISION_CONFLICT");
  EXPECT_EQ(m.revision(), before);
  EXPECT_EQ(m.h.http("GET", "/v1/registry", "", kConsole).body.find("\"t\""), std::string::npos);
}

TEST(HttpManage, B_64_ACrashBeforeTheCompletionBlocksTheTopicUntilTheRequestIsRetriedWithAnyId) {
  Managed m(64);
  ASSERT_EQ(m.h.publish("t", "x"), "OK");
  const std::string fields = R"("topic":"t","tombstone_until_ms":)" + m.deadline(kHourMs);
  const std::uint64_t before = m.revision();
  bool killed = false;
  m.h.disk().on_step = [&] {  // the Topic's directory is gone, the result is not recorded
    if (killed || m.h.disk().exists("data/topics/74/manifest")) return;
    killed = true;
    m.h.world().at(0, [&] { m.h.kill(); });
  };
  EXPECT_EQ(m.manage("topics/delete", 1, fields, before).status, 0);
  ASSERT_TRUE(killed);
  ASSERT_TRUE(m.h.start());
  m.sync();
  EXPECT_EQ(result_of(m.h.http("POST", "/pub?topic=t", "x")), "503 E_MANAGEMENT_UNAVAILABLE");
  EXPECT_EQ(result_of(m.manage("topics/create", 3, R"("topic":"t")")), "409 E_OPERATION_CONFLICT");
  const HttpReply retried = m.manage("topics/delete", 2, fields, before);
  EXPECT_EQ(retried.status, 200);
  EXPECT_EQ(m.manage("topics/delete", 1, fields, before).body, retried.body);
  EXPECT_EQ(m.manage("topics/create", 4, R"("topic":"t")").status, 200);
  EXPECT_EQ(m.h.publish("t", "x"), "OK");
}

TEST(HttpManage, B_65_ADeleteNeedsADeadlineAndFencesItsName) {
  Managed m(65);
  ASSERT_EQ(m.h.publish("t", "x"), "OK");
  EXPECT_EQ(result_of(m.manage("topics/delete", 1, R"("topic":"t")")), "400 E_BAD_TOMBSTONE");
  EXPECT_EQ(m.manage("topics/delete", 1, R"("topic":"t","tombstone_until_ms":)" + m.deadline(kHourMs)).status, 200);
  EXPECT_EQ(result_of(m.h.http("POST", "/pub?topic=t", "x")), "409 E_TOPIC_TOMBSTONED");
  EXPECT_EQ(m.h.publish("t", "x").substr(0, 12), "E_PUB_FAILED");
  EXPECT_EQ(result_of(m.h.http("POST", "/topic/create?topic=t")), "409 E_TOPIC_TOMBSTONED");
  EXPECT_EQ(m.manage("topics/create", 2, R"("topic":"t")").status, 200);
  EXPECT_EQ(m.h.publish("t", "x"), "OK");
  EXPECT_EQ(m.manage("topics/tombstone", 3, R"("topic":"t","tombstone_until_ms":)" + m.deadline(5'000)).status, 200);
  EXPECT_EQ(result_of(m.h.http("POST", "/pub?topic=t", "x")), "409 E_TOPIC_TOMBSTONED");
  m.h.run_for(6'000);
  EXPECT_EQ(m.h.http("POST", "/pub?topic=t", "x").status, 200);
}

TEST(HttpManage, B_66_APolicyIsCompleteAndOnlyWhereItBelongs) {
  Managed m(66);
  ASSERT_EQ(m.manage("topics/create", 1, R"("topic":"t")").status, 200);
  const auto result = [&](const std::string& action, const std::string& fields) {
    return result_of(m.manage("topics/" + action, 2, R"("topic":"t",)" + fields));
  };
  EXPECT_EQ(result("configure", R"("delivery_mode":"TTL_DISCARD")"), "400 E_BAD_TOPIC_POLICY");
  EXPECT_EQ(result("configure", R"("delivery_mode":"RELIABLE","message_ttl_seconds":5)"), "400 E_BAD_TOPIC_POLICY");
  EXPECT_EQ(result("configure", R"("message_ttl_seconds":5)"), "400 E_BAD_TOPIC_POLICY");
  EXPECT_EQ(result("pause", R"("delivery_mode":"RELIABLE")"), "400 E_BAD_TOPIC_POLICY");
  EXPECT_EQ(result("configure", R"("deliveryMode":"TTL_DISCARD","messageTtlSeconds":5)"), "200");
  EXPECT_EQ(result_of(m.manage("topics/configure", 3, R"("topic":"missing","delivery_mode":"RELIABLE")")), "404 E_BAD_TOPIC");
}

TEST(HttpManage, B_67_ATtlTopicDeletedAndCreatedWithoutAPolicyIsReliable) {
  Managed m(67);
  ASSERT_EQ(m.manage("topics/create", 1, R"("topic":"t","delivery_mode":"TTL_DISCARD","message_ttl_seconds":5)").status, 200);
  ASSERT_EQ(m.manage("topics/delete", 2, R"("topic":"t","tombstone_until_ms":)" + m.deadline(kHourMs)).status, 200);
  ASSERT_EQ(m.manage("topics/create", 3, R"("topic":"t")").status, 200);
  const boost::json::value stats = json_of(m.h.http("GET", "/v1/stats"));
  EXPECT_EQ(first_topic(stats).at("delivery_mode").as_string(), "RELIABLE");
  EXPECT_TRUE(first_topic(stats).at("message_ttl_seconds").is_null());
}

TEST(HttpManage, B_68_WithoutManagementItsRoutesDoNotExist) {
  BrokerHarness h(68);
  ASSERT_TRUE(h.start());
  EXPECT_EQ(h.http("POST", "/v1/manage/topics/create", "{}", kJson).status, 404);
  EXPECT_EQ(h.http("POST", "/v1/manage/fences/sync", "{}", kJson).status, 404);
}

TEST(HttpManage, BodiesAreJsonOfAtMostTwoMebibytesAndActionsAreKnown) {
  Managed m(1);
  const auto post = [&](const std::string& path, std::string_view body, const Headers& headers) {
    return m.h.http("POST", "/v1/manage/" + path, body, headers).status;
  };
  Headers plain = kConsole;
  plain[0].second = "text/plain";
  EXPECT_EQ(post("fences/sync", "{}", plain), 415);
  plain[0].second = "application/vnd.rq+json; charset=utf-8";
  EXPECT_EQ(post("fences/sync", "{}", plain), 200);
  EXPECT_EQ(post("fences/sync", "{", kConsole), 400);
  EXPECT_EQ(post("fences/sync", R"({"topics":[]})", kConsole), 422);
  EXPECT_EQ(post("fences/sync", R"({"channels":[{"topic":"t","channel":"c"}]})", kConsole), 422);
  EXPECT_EQ(post("fences/sync", R"({"topics":null,"revision":null,"unknown":1,"channels":null})", kConsole), 200);
  EXPECT_EQ(post("topics/create", R"({"topic":"t"})", kConsole), 422);
  EXPECT_EQ(post("fences/sync", std::string((2u << 20) + 1, ' '), kConsole), 413);
  EXPECT_EQ(result_of(m.manage("channels/configure", 1, R"("topic":"t","channel":"c")")), "400 E_BAD_ACTION");
  EXPECT_EQ(result_of(m.manage("channels/delete-if-idle", 1, R"("topic":"t","channel":"c")")), "400 E_BAD_ACTION");
  EXPECT_EQ(result_of(m.manage("topics/create", 1, R"("topic":"no topic")")), "400 E_BAD_TOPIC");
  EXPECT_EQ(result_of(m.manage("channels/create", 1, R"("topic":"t","channel":"no channel")")), "400 E_BAD_CHANNEL");
}

TEST(HttpManage, TheRegistryListsTopicsAndSaysWhatTheBrokerIsReadyFor) {
  BrokerHarness h(2);
  ASSERT_TRUE(h.start());
  ASSERT_EQ(h.publish("t", "x"), "OK");
  ASSERT_EQ(h.http("POST", "/channel/create?topic=t&channel=c").status, 200);
  const boost::json::value registry = json_of(h.http("GET", "/v1/registry"));
  EXPECT_EQ(registry.at("format").to_number<int>(), 7);
  EXPECT_EQ(registry.at("revision").to_number<int>(), 4);  // the start, the Topic, the Channel
  EXPECT_EQ(registry.at("stored_messages").to_number<int>(), 1);
  EXPECT_EQ(registry.at("depth").to_number<int>(), 1);
  EXPECT_TRUE(registry.at("publish_ready").as_bool());
  EXPECT_TRUE(registry.at("ready").as_bool());
  EXPECT_EQ(boost::json::serialize(registry.at("topics")),
            R"([{"name":"t","paused":false,"channels":["c"],"stored_messages":1}])");
  EXPECT_EQ(registry.at("compatibility").at("binary").at("data_format").to_number<int>(), 7);
  const boost::json::value capabilities = json_of(h.http("GET", "/v1/capabilities"));
  EXPECT_EQ(capabilities.at("storage").at("active_writer_feature_level").to_number<int>(), 1);
  ASSERT_EQ(h.http("POST", "/v1/drain", R"({"freeze_deliveries":true})", kJson).status, 200);
  const boost::json::value head = json_of(h.http("GET", "/v1/registry/head"));
  EXPECT_EQ(head.at("revision").to_number<int>(), 4);  // draining is no change
  EXPECT_FALSE(head.at("publish_ready").as_bool());
  EXPECT_FALSE(head.at("consume_ready").as_bool());
}

TEST(HttpDrain, B_59_DrainAndFreezeFollowTheLastRequestAndARestartOpensBoth) {
  BrokerHarness h(59);
  ASSERT_TRUE(h.start());
  const auto state = [](const HttpReply& reply) {
    const boost::json::value drain = json_of(reply);
    return std::string(drain.at("draining").as_bool() ? "d" : "-") + (drain.at("delivery_frozen").as_bool() ? "f" : "-");
  };
  const auto post = [&](std::string_view body) { return state(h.http("POST", "/v1/drain", body, kJson)); };
  EXPECT_EQ(post("{}"), "d-");
  EXPECT_EQ(result_of(h.http("POST", "/pub?topic=t", "x")), "503 E_DRAINING");
  EXPECT_EQ(json_of(h.http("GET", "/v1/health")).at("reason").as_string(), "draining");
  EXPECT_EQ(post(R"({"freeze_deliveries":true})"), "df");
  EXPECT_EQ(post("{}"), "d-");
  EXPECT_EQ(post(R"({"enabled":false})"), "--");
  EXPECT_EQ(post(R"({"enabled":true,"freeze_deliveries":true})"), "df");
  ASSERT_TRUE(h.restart());
  EXPECT_EQ(state(h.http("GET", "/v1/drain")), "--");
}

TEST(HttpDrain, B_60_QuiescedComesWithTheLastFinishAndEmptyNotWhileAnythingIsStored) {
  BrokerHarness h(60);
  ASSERT_TRUE(h.start());
  Client& consumer = h.consumer("t", "c", 1);
  ASSERT_EQ(h.publish("t", "x"), "OK");
  const auto message = consumer.message();
  ASSERT_TRUE(message);
  EXPECT_FALSE(json_of(h.http("POST", "/v1/drain", R"({"freeze_deliveries":true})", kJson)).at("quiesced").as_bool());
  consumer.fin(message->id);
  h.run_for(100);
  const boost::json::value drain = json_of(h.http("GET", "/v1/drain"));
  EXPECT_TRUE(drain.at("quiesced").as_bool());
  EXPECT_FALSE(drain.at("empty").as_bool());
  EXPECT_FALSE(drain.at("drained").as_bool());
}

TEST(HttpDrain, Q_90_AFrozenBrokerWritesNothingOfWhatIsBeingReadAndGoesOnWhenLifted) {
  BrokerHarness h(90);
  ASSERT_TRUE(h.start());
  ASSERT_EQ(h.publish("t", "cold"), "OK");
  h.consumer("t", "c", 0).close();
  ASSERT_TRUE(h.stop());
  ASSERT_TRUE(h.start());
  Client& consumer = h.consumer("t", "c", 0);
  h.disk().faults.latency_ns_min = h.disk().faults.latency_ns_max = 300 * kMillisecond;
  consumer.rdy(1);
  h.run_for(50);  // its body is on the way
  ASSERT_EQ(h.http("POST", "/v1/drain", R"({"freeze_deliveries":true})", kJson).status, 200);
  h.run_for(2'000);
  EXPECT_TRUE(consumer.messages().empty());
  EXPECT_TRUE(json_of(h.http("GET", "/v1/drain")).at("quiesced").as_bool());
  ASSERT_EQ(h.http("POST", "/v1/drain", R"({"enabled":false})", kJson).status, 200);
  const auto message = consumer.message();
  ASSERT_TRUE(message);
  EXPECT_EQ(message->attempts, 1);  // the discarded batch did not count
}

TEST(HttpDrain, Q_91_DrainedIsTrueOnlyAfterCollectionRemovedTheLog) {
  BrokerHarness h(91, [](broker::Config& config) {
    config.storage.maintenance_startup_delay_seconds = 1;
    config.queue.bootstrap_retention_seconds = 5;
  });
  ASSERT_TRUE(h.start());
  Client& consumer = h.consumer("t", "c", 10);
  ASSERT_EQ(h.publish("t", "x"), "OK");
  ASSERT_EQ(h.http("POST", "/v1/drain", "{}", kJson).status, 200);
  const auto message = consumer.message();
  ASSERT_TRUE(message);
  consumer.fin(message->id);
  h.run_for(100);
  const boost::json::value early = json_of(h.http("GET", "/v1/drain"));
  EXPECT_FALSE(early.at("drained").as_bool());
  EXPECT_EQ(early.at("depth").to_number<int>(), 0);
  h.run_for(30'000);
  EXPECT_TRUE(json_of(h.http("GET", "/v1/drain")).at("drained").as_bool());
}

// A lookup server knows what there is: a Topic behind a tombstone too, and one that was made again before its deletion is
// answered a second time.
TEST(HttpManage, OnlyADeletionTakesANameOffTheLookupServers) {
  Managed m(67);
  LookupServer server(m.h.world(), m.h.world().make_disk("lookup"), "lookup", "127.0.0.1:4160");
  server.start();
  ASSERT_EQ(m.h.http("PUT", "/config/nsqlookupd_tcp_addresses", R"(["127.0.0.1:4160"])").status, 200);
  const auto shown = [&](bool wanted) { return m.h.run_until([&] { return server.names().contains("t") == wanted; }, 3'000); };
  ASSERT_EQ(m.manage("topics/create", 1, R"("topic":"t")").status, 200);
  ASSERT_TRUE(shown(true));
  const std::string fields = R"("topic":"t","tombstone_until_ms":)" + m.deadline(kHourMs);
  ASSERT_EQ(m.manage("topics/tombstone", 2, fields).status, 200);
  m.h.run_for(1'000);
  EXPECT_TRUE(server.names().contains("t"));

  const std::uint64_t before = m.revision();
  ASSERT_EQ(m.manage("topics/delete", 3, fields, before).status, 200);
  ASSERT_TRUE(shown(false));
  ASSERT_EQ(m.manage("topics/create", 4, R"("topic":"t")").status, 200);
  ASSERT_TRUE(shown(true));
  ASSERT_EQ(m.manage("topics/delete", 3, fields, before).status, 200) << "the answer that this id has";
  m.h.run_for(1'000);
  EXPECT_TRUE(server.names().contains("t"));
}

}  // namespace
}  // namespace rq::sim
