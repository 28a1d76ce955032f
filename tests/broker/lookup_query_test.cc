// One question for the Channels of a Topic, by itself.
#include "core/broker/lookup_query.h"

#include <gtest/gtest.h>

#include "sim/web_server.h"
#include "tests/broker/machine_process.h"

namespace rq::broker::test {
namespace {

using Channels = std::vector<std::string>;

struct Question {
  explicit Question(const std::string& document, const std::string& topic = "t") {
    server.answer = [&, document](const std::string&) { return sim::WebServer::document(document); };
    server.start();
    world.run_for(kMillisecond);
    query.emplace(world, disk, [topic](io::Host& host, ChunkPool& pool) {
      return std::make_unique<LookupQuery>(host, pool, "127.0.0.1:4161", topic);
    });
    EXPECT_TRUE(world.run_until([&] { return (*query)->over(); }, 10 * kSecond));
  }
  const Channels& channels() { return (*query)->channels(); }

  sim::World world{1, {}};
  sim::SimDisk& disk = world.make_disk("disk");
  sim::WebServer server{world, disk, "server", "127.0.0.1:4161"};
  std::optional<MachineProcess<LookupQuery>> query;
};

TEST(LookupQuery, OnlyDurableChannelsWithValidNamesAreTaken) {
  Question asked(R"({"topics":["x"],"channels":["one","two#ephemeral","","no name!",")" + std::string(65, 'a') +
                 R"(","three"]})");
  EXPECT_EQ(asked.channels(), (Channels{"one", "three"}));
  EXPECT_TRUE(asked.query->log.empty());
}

TEST(LookupQuery, ATopicIsNamedSoThatItsHashStandsInTheQuery) {
  Question asked(R"({"channels":[]})", "a.b_c-d#ephemeral");
  ASSERT_EQ(asked.server.heads.size(), 1u);
  EXPECT_TRUE(asked.server.heads[0].starts_with("GET /channels?topic=a.b_c-d%23ephemeral HTTP/1.1\r\nHost: 127.0.0.1:4161\r\n"));
}

// A list that turns out to be wrong behind its first names gives none of them.
TEST(LookupQuery, ADocumentThatIsWrongGivesNothingAndIsLogged) {
  for (const char* document : {R"({"channels":["one",2]})", R"({"channels":["one"])", R"({"channels":{}})", "[]", ""}) {
    Question asked(document);
    EXPECT_TRUE(asked.channels().empty()) << document;
    ASSERT_EQ(asked.query->log.size(), 1u) << document;
    EXPECT_TRUE(asked.query->log[0].starts_with("nsqlookupd_query_failed address=\"127.0.0.1:4161\" topic=\"t\" reason=\""));
  }
}

}  // namespace
}  // namespace rq::broker::test
