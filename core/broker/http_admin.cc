#include "core/broker/http_admin.h"

#include "core/base/json_writer.h"
#include "core/broker/http_options.h"
#include "core/storage/json_reader.h"
#include "core/storage/names.h"

namespace rq::broker {
namespace {

AdminParse refuse(int status, std::string_view code) { return {http::error_response(status, code), {}, {}, {}}; }

// Routes on which a malformed name counts as a Topic that is not there.
bool any_name(queue::Admin action) {
  return action == queue::Admin::delete_topic || action == queue::Admin::pause_topic || action == queue::Admin::unpause_topic;
}

AdminParse parse_topic(AdminParse out, const http::Query& query, const queue::Engine& engine) {
  const std::string* topic = query.find("topic");
  if (topic == nullptr) return refuse(400, "MISSING_ARG_TOPIC");
  const bool valid = storage::valid_name(*topic);
  if (!valid && !any_name(out.action)) return refuse(400, "INVALID_TOPIC");
  if (out.action != queue::Admin::create_topic && (!valid || !engine.has_topic(*topic))) return refuse(404, "TOPIC_NOT_FOUND");
  out.topic = *topic;
  return out;
}

AdminParse parse_channel(AdminParse out, const http::Query& query, const queue::Engine& engine) {
  const std::string* topic = query.find("topic");
  if (topic == nullptr) return refuse(400, "MISSING_ARG_TOPIC");
  if (!storage::valid_name(*topic)) return refuse(400, "INVALID_ARG_TOPIC");
  const std::string* channel = query.find("channel");
  if (channel == nullptr) return refuse(400, "MISSING_ARG_CHANNEL");
  if (!storage::valid_name(*channel)) return refuse(400, "INVALID_ARG_CHANNEL");
  if (!engine.has_topic(*topic)) return refuse(404, "TOPIC_NOT_FOUND");
  if (out.action != queue::Admin::create_channel && !engine.has_channel(*topic, *channel))
    return refuse(404, "CHANNEL_NOT_FOUND");
  out.topic = *topic;
  out.channel = *channel;
  return out;
}

bool on_channel(queue::Admin action) { return action >= queue::Admin::create_channel; }

// A list of "host:port".
class Addresses final : public storage::JsonTarget {
 public:
  explicit Addresses(std::vector<std::string>& out) : element_(out) {}
  const char* on_array_begin() override { return nullptr; }
  JsonTarget* element() override { return &element_; }

 private:
  struct Element final : JsonTarget {
    explicit Element(std::vector<std::string>& addresses) : out(addresses) {}
    const char* on_text(std::string_view value) override {
      if (!is_host_port(value)) return "not host:port";
      if (out.size() == LookupRegistration::kServersMax) return "too many addresses";
      out.emplace_back(value);
      return nullptr;
    }
    std::vector<std::string>& out;
  };
  Element element_;
};

http::Response json_number(std::uint64_t value) { return http::json_response(std::to_string(value)); }
http::Response json_bool(bool value) { return http::json_response(value ? "true" : "false"); }
http::Response json_list(const std::vector<std::string>& items) {
  std::string out;
  JsonWriter json(out);
  json.begin_array();
  for (const std::string& item : items) json.value(item);
  json.end_array();
  return http::json_response(std::move(out));
}

std::uint64_t nanoseconds(std::uint64_t ms) { return ms * 1'000'000; }  // V25 bounds durations so that this fits

}  // namespace

AdminParse parse_admin(Route route, std::string_view text, const queue::Engine& engine) {
  const auto query = http::Query::parse(text);
  if (!query) return refuse(400, "INVALID_REQUEST");
  AdminParse out;
  out.action = admin_action(route).value();
  return on_channel(out.action) ? parse_channel(std::move(out), *query, engine) : parse_topic(std::move(out), *query, engine);
}

http::Response config_option(const Config& c, const LookupRegistration& lookups, std::string_view option) {
  const std::pair<std::string_view, const std::string*> texts[] = {
      {"tcp_address", &c.network.tcp_address},
      {"http_address", &c.network.http_address},
      {"broadcast_address", &c.node.broadcast_address},
      {"data_path", &c.storage.data_path},
  };
  for (const auto& [name, value] : texts)
    if (name == option) return http::text_response(*value);
  const std::pair<std::string_view, std::uint64_t> numbers[] = {
      {"id", c.node.id},
      {"broadcast_tcp_port", c.network.advertised_tcp_port},
      {"broadcast_http_port", c.network.advertised_http_port},
      {"max_bytes_per_file", c.storage.max_segment_bytes},
      {"msg_timeout", nanoseconds(c.queue.message_timeout_ms)},
      {"max_msg_timeout", nanoseconds(c.queue.max_message_timeout_ms)},
      {"max_msg_size", c.queue.max_message_bytes},
      {"max_body_size", c.limits.max_body_bytes},
      {"max_req_timeout", nanoseconds(c.queue.max_defer_ms)},
      {"max_heartbeat_interval", nanoseconds(c.limits.max_heartbeat_interval_ms)},
      {"max_rdy_count", c.limits.max_rdy_count},
      {"max_output_buffer_size", c.limits.max_output_buffer_size},
      {"max_output_buffer_timeout", nanoseconds(c.limits.max_output_buffer_timeout_ms)},
      {"min_output_buffer_timeout", nanoseconds(c.limits.min_output_buffer_timeout_ms)},
      {"output_buffer_timeout", nanoseconds(c.limits.output_buffer_timeout_ms)},
      {"max_channel_consumers", c.limits.max_channel_consumers},
      {"max_deflate_level", c.network.max_deflate_level},
  };
  for (const auto& [name, value] : numbers)
    if (name == option) return json_number(value);
  if (option == "deflate") return json_bool(c.network.deflate_enabled);
  if (option == "snappy") return json_bool(c.network.snappy_enabled);
  if (option == "nsqlookupd_tcp_addresses") return json_list(lookups.addresses());
  if (option == "auth_http_addresses") return json_list(c.security.auth_http_addresses);
  if (auto answer = further_option(c, option)) return std::move(*answer);
  return http::error_response(400, "INVALID_OPTION");
}

// One option can be changed while the Broker runs. An empty value is refused before the name is looked at.
http::Response set_config_option(LookupRegistration& lookups, std::string_view option, ConstBuf body) {
  if (body.empty()) return http::error_response(413, "INVALID_VALUE");
  if (option != "nsqlookupd_tcp_addresses") return http::error_response(400, "INVALID_OPTION");
  std::vector<std::string> addresses;
  Addresses document(addresses);
  if (const storage::JsonDefect defect = storage::read_json(body, document))
    return http::error_response(400, "INVALID_VALUE", *defect);
  lookups.set_addresses(std::move(addresses));
  return json_list(lookups.addresses());
}

}  // namespace rq::broker
