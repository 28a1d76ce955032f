// /v1/observe by itself (page 31 section 5.7): every figure stands under its own key.
#include "core/broker/observe_json.h"

#include <boost/json.hpp>

#include "tests/broker/fake_view.h"

namespace rq::broker::test {
namespace {

boost::json::value parsed(std::string_view text) {
  return boost::json::parse(boost::json::string_view(text.data(), text.size()));
}

struct Row {
  const char* key;
  std::uint64_t BrokerCounters::*counter;
};
constexpr Row kRuntime[] = {
    {"websocket_messages", &BrokerCounters::websocket_messages},
    {"websocket_bytes", &BrokerCounters::websocket_bytes},
    {"websocket_auth_failures", &BrokerCounters::websocket_auth_failures},
    {"websocket_capacity_rejections", &BrokerCounters::websocket_capacity_rejections},
    {"websocket_slow_disconnects", &BrokerCounters::websocket_slow_disconnects},
    {"websocket_non_ttl_rejections", &BrokerCounters::websocket_non_ttl_rejections},
    {"publish_messages", &BrokerCounters::publish_messages},
    {"publish_bytes", &BrokerCounters::publish_bytes},
    {"publish_throttled_requests", &BrokerCounters::publish_throttled_requests},
    {"publish_throttled_bytes", &BrokerCounters::publish_throttled_bytes},
    {"delivered_messages", &BrokerCounters::delivered_messages},
    {"protocol_errors", &BrokerCounters::protocol_errors},
    {"auth_failures", &BrokerCounters::auth_failures},
    {"storage_errors", &BrokerCounters::storage_errors},
};

TEST(ObserveJson, EveryCounterMovesItsKeyAndNoOther) {
  FakeView view;
  const boost::json::value before = parsed(observe_head_json(view, WallTime{})).at("runtime");
  for (const Row& row : kRuntime) {
    view.counted = {};
    view.counted.*row.counter = 4'711;
    const boost::json::value runtime = parsed(observe_head_json(view, WallTime{})).at("runtime");
    for (const auto& field : runtime.as_object())
      EXPECT_EQ(field.value().to_number<std::int64_t>(),
                field.key() == row.key ? 4'711 : before.at(field.key()).to_number<std::int64_t>())
          << row.key << " and " << field.key();
  }
}

TEST(ObserveJson, ConnectionsBudgetsAndTheDiskAreThoseOfTheBroker) {
  FakeView view;
  view.nsq_connections = 3;
  view.feed_connections = 4;
  view.publish_bytes = 5'000;
  view.disk = {.total = 1'000, .available = 250};
  view.pressed = true;
  const boost::json::value head = parsed(observe_head_json(view, WallTime{7'000'000}));
  EXPECT_EQ(head.at("collected_at_ms").to_number<int>(), 7);
  const boost::json::value& runtime = head.at("runtime");
  EXPECT_EQ(runtime.at("tcp_connections").to_number<int>(), 3);
  EXPECT_EQ(runtime.at("websocket_connections").to_number<int>(), 4);
  EXPECT_EQ(runtime.at("publish_inflight_bytes").to_number<int>(), 5'000);
  EXPECT_EQ(runtime.at("disk_pressure").to_number<int>(), 1);
  for (const char* place : {"disk_used_percent", "disk_total_bytes", "disk_available_bytes"}) {
    const std::string key = std::string(place).substr(5);
    EXPECT_EQ(runtime.at(place), head.at("disk").at(key)) << key;
  }
  EXPECT_EQ(head.at("disk").at("used_percent").to_number<int>(), 75);
  EXPECT_TRUE(head.at("disk").at("pressure").as_bool());
}

TEST(ObserveJson, ReadinessSaysWhichOfItsReasonsHolds) {
  struct Flag {
    bool FakeView::*member;
    bool value;
    std::vector<std::string> changed;
  };
  const Flag flags[] = {{&FakeView::accepts, false, {"publish_ready", "draining"}},
                        {&FakeView::delivers, false, {"consume_ready"}},
                        {&FakeView::pressed, true, {"disk_ready", "publish_ready"}}};
  FakeView view;
  const boost::json::value ready = parsed(observe_head_json(view, WallTime{})).at("readiness");
  for (const Flag& flag : flags) {
    view.*flag.member = flag.value;
    const boost::json::value now = parsed(observe_head_json(view, WallTime{})).at("readiness");
    for (const auto& field : now.as_object()) {
      const bool changes = std::find(flag.changed.begin(), flag.changed.end(), std::string(field.key())) != flag.changed.end();
      EXPECT_EQ(field.value().as_bool() != ready.at(field.key()).as_bool(), changes) << field.key();
    }
    view.*flag.member = !flag.value;
  }
}

TEST(ObserveJson, TheWholeFormSumsTheTopicsThatItLists) {
  FakeView view;
  ASSERT_EQ(view.world.publish_and_wait("a", {"x", "y"}), queue::Code::ok);
  ASSERT_EQ(view.world.publish_and_wait("b", {"z"}), queue::Code::ok);
  ASSERT_EQ(view.world.admin(queue::Admin::create_channel, "a", "c"), queue::Code::ok);
  const boost::json::value whole = parsed(observe_json(view, WallTime{}, view.world.stats())->next(1 << 20));
  const boost::json::value& aggregate = whole.at("queue").at("aggregate");
  EXPECT_EQ(aggregate.at("topic_count").to_number<int>(), 2);
  EXPECT_EQ(aggregate.at("channel_count").to_number<int>(), 1);
  EXPECT_EQ(aggregate.at("message_count").to_number<int>(), 3);
  EXPECT_EQ(aggregate.at("channel_depth").to_number<int>(), 2);
  const auto& topics = whole.at("queue").at("topics").as_array();
  ASSERT_EQ(topics.size(), 2u);
  EXPECT_EQ(topics[0].at("name").as_string(), "a");
  EXPECT_EQ(topics[0].at("channels").as_array().size(), 1u);
  EXPECT_EQ(topics[1].at("message_count").to_number<int>(), 1);
  EXPECT_EQ(whole.at("storage").at("segment_count"), aggregate.at("segment_count"));
}

}  // namespace
}  // namespace rq::broker::test
