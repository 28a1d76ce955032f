// Every key of the configuration that the engine runs with reaches its option, and no other.
#include "core/broker/engine_options.h"

#include <gtest/gtest.h>

#include "core/broker/config_keys.h"
#include "core/storage/checkpoint.h"

namespace rq::broker {
namespace {

using queue::EngineOptions;

struct Row {
  const char* key;
  std::string (*option)(const EngineOptions&);
};

template <auto Member>
std::string number(const EngineOptions& options) {
  return std::to_string(options.*Member);
}

// clang-format off
const Row kRows[] = {
    {"node.id", number<&EngineOptions::node_id>},
    {"storage.data_path", [](const EngineOptions& o) { return o.data_path; }},
    {"storage.feature_level", number<&EngineOptions::feature_level>},
    {"storage.max_segment_bytes", number<&EngineOptions::max_segment_bytes>},
    {"storage.scrub_interval_seconds", number<&EngineOptions::scrub_interval_seconds>},
    {"storage.scrub_bytes_per_second", number<&EngineOptions::scrub_bytes_per_second>},
    {"storage.entry_cache_bytes", number<&EngineOptions::entry_cache_bytes>},
    {"storage.message_index_cache_bytes", number<&EngineOptions::message_index_cache_bytes>},
    {"storage.payload_read_queue", number<&EngineOptions::payload_read_queue>},
    {"storage.maintenance_startup_delay_seconds", number<&EngineOptions::maintenance_startup_delay_seconds>},
    {"queue.max_message_bytes", number<&EngineOptions::max_message_bytes>},
    {"queue.max_message_timeout_ms", number<&EngineOptions::max_message_timeout_ms>},
    {"queue.max_defer_ms", number<&EngineOptions::max_defer_ms>},
    {"queue.max_ack_gap", number<&EngineOptions::max_ack_gap>},
    {"queue.max_topics", number<&EngineOptions::max_topics>},
    {"queue.max_publish_workers", number<&EngineOptions::max_publish_workers>},
    {"queue.publish_worker_idle_seconds", number<&EngineOptions::publish_worker_idle_seconds>},
    {"queue.bootstrap_retention_seconds", number<&EngineOptions::bootstrap_retention_seconds>},
    {"queue.publish_ack_mode", [](const EngineOptions& o) { return std::string(enum_names(&o.ack_mode)[static_cast<std::size_t>(o.ack_mode)]); }},
    {"queue.relaxed_sync_messages", number<&EngineOptions::relaxed_sync_messages>},
    {"queue.relaxed_sync_bytes", number<&EngineOptions::relaxed_sync_bytes>},
    {"queue.relaxed_sync_interval_ms", number<&EngineOptions::relaxed_sync_interval_ms>},
    {"queue.max_delivery_attempts", [](const EngineOptions& o) { return std::to_string(o.dead_letters.max_delivery_attempts); }},
    {"queue.message_retention_seconds", [](const EngineOptions& o) { return std::to_string(o.dead_letters.message_retention_seconds); }},
    {"queue.dead_letter_suffix", [](const EngineOptions& o) { return o.dead_letters.suffix; }},
    {"queue.ephemeral_queue_messages", number<&EngineOptions::ephemeral_queue_messages>},
    {"limits.node_ephemeral_bytes", number<&EngineOptions::node_ephemeral_bytes>},
    {"limits.max_channel_consumers", number<&EngineOptions::max_channel_consumers>},
    {"limits.node_delivery_inflight_messages", number<&EngineOptions::node_delivery_inflight_messages>},
    {"limits.node_delivery_inflight_bytes", number<&EngineOptions::node_delivery_inflight_bytes>},
    {"limits.connection_delivery_inflight_bytes", number<&EngineOptions::connection_delivery_inflight_bytes>},
    {"security.console_management_enabled", [](const EngineOptions& o) { return std::string(o.console_management ? "true" : "false"); }},
};
// clang-format on

// Another value than the default.
void change(const ConfigSlot& slot) {
  struct {
    void operator()(std::uint64_t* value) const { *value += 7; }
    void operator()(bool* value) const { *value = !*value; }
    void operator()(std::string* value) const { *value += "x"; }
    void operator()(std::optional<std::string>* value) const { *value = "x"; }
    void operator()(std::vector<std::string>* value) const { value->push_back("x"); }
    void operator()(queue::AckMode* value) const { *value = queue::AckMode::nsq_relaxed; }
    void operator()(BarrierStrategy*) const {}
    void operator()(ClientAuth*) const {}
    void operator()(TlsVersion*) const {}
  } const visitor;
  std::visit(visitor, slot);
}

std::vector<std::string> all(const EngineOptions& options) {
  std::vector<std::string> values;
  for (const Row& row : kRows) values.push_back(row.option(options));
  return values;
}

TEST(EngineOptions, EveryKeyReachesItsOptionAndNoOther) {
  const std::vector<std::string> defaults = all(engine_options(Config{}, {}));
  for (const std::string_view key : config_keys()) {
    Config config;
    change(find_config_key(key)->slot(config));
    const std::vector<std::string> values = all(engine_options(config, {}));
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (kRows[i].key == key) {
        EXPECT_EQ(values[i], config_value_text(config, key)) << key;
        EXPECT_NE(values[i], defaults[i]) << key;
      } else {
        EXPECT_EQ(values[i], defaults[i]) << key << " reaches the option of " << kRows[i].key;
      }
    }
  }
}

TEST(EngineOptions, DefaultsAreThoseOfTheConfiguration) {
  const EngineOptions options = engine_options(Config{}, {});
  for (const Row& row : kRows) {
    ASSERT_NE(find_config_key(row.key), nullptr) << row.key;
    EXPECT_EQ(row.option(options), config_value_text(Config{}, row.key)) << row.key;
  }
}

TEST(EngineOptions, TheProcessSaysItsNumberAndLeavesHalfOfItsDescriptors) {
  EXPECT_EQ(engine_options(Config{}, {.id = 4'711}).pid, 4'711);
  EXPECT_EQ(engine_options(Config{}, {}).write_handles_max, EngineOptions{}.write_handles_max);
  EXPECT_EQ(engine_options(Config{}, {.file_limit = 100}).write_handles_max, 50u);
  EXPECT_EQ(engine_options(Config{}, {.file_limit = 4'096}).write_handles_max, 2'048u);
  EXPECT_EQ(engine_options(Config{}, {.file_limit = 1 << 30}).write_handles_max, kWriteHandlesMax);
}

TEST(EngineOptions, TheAckWindowIsNotLargerThanACheckpointHolds) {
  Config config;
  config.queue.max_ack_gap = UINT64_MAX;
  EXPECT_EQ(engine_options(config, {}).max_ack_gap, storage::kAckGapMax);
}

}  // namespace
}  // namespace rq::broker
