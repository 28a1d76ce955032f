// What the routes do once the request is there, and what becomes of the engine's answers.
#include <algorithm>
#include <utility>

#include "core/base/check.h"
#include "core/base/json_writer.h"
#include "core/base/probe.h"
#include "core/broker/http_admin.h"
#include "core/broker/http_connection.h"
#include "core/broker/http_lookup.h"
#include "core/broker/http_options.h"
#include "core/broker/http_publish.h"
#include "core/broker/lookup_registration.h"
#include "core/broker/metrics.h"
#include "core/broker/native_json.h"
#include "core/broker/native_topics.h"
#include "core/broker/stats_view.h"
#include "core/nsq/identify.h"

namespace rq::broker {
namespace {

// true/1/false/0; anything else counts as absent (page 10 section 6.5).
bool flag(const http::Query& query, std::string_view key, bool otherwise) {
  const std::string* value = query.find(key);
  if (value == nullptr) return otherwise;
  if (*value == "true" || *value == "1") return true;
  if (*value == "false" || *value == "0") return false;
  return otherwise;
}

std::string text_or_empty(const http::Query& query, std::string_view key) {
  const std::string* value = query.find(key);
  return value == nullptr ? std::string() : *value;
}

// The servers that this Broker registers with; nothing when there are none.
void put_lookups(JsonWriter& json, const LookupRegistration& lookups) {
  if (lookups.addresses().empty()) return;
  json.key("nsqlookupd").begin_array();
  for (const std::string& address : lookups.addresses())
    json.begin_object().key("address").value(address).key("registered").value(lookups.registered(address)).end_object();
  json.end_array();
}

http::Response too_many_unread() { return http::error_response(429, "E_THROTTLED", "too many unread answers"); }

std::uint64_t waiter_number(queue::WaiterId id) { return static_cast<std::uint64_t>(id) & ((std::uint64_t{1} << 56) - 1); }

}  // namespace

void HttpConnection::act() {
  switch (routed_->route) {
    case Route::ping: {
      http::Response response = http::text_response("OK");
      response.nsq_header = false;
      return respond(std::move(response));
    }
    case Route::info:
      return respond(info());
    case Route::health:
      return respond(health());
    case Route::pub:
    case Route::mpub:
      return act_publish();
    case Route::stats:
    case Route::native_stats:
    case Route::metrics:
    case Route::lookup:
    case Route::topics:
    case Route::channels:
    case Route::nodes:
      return act_stats();
    case Route::config_get:
    case Route::config_put:
      return act_config();
    case Route::registry:
    case Route::registry_head:
    case Route::observe:
    case Route::observe_head:
      return act_registry();
    case Route::capabilities:
      return respond(http::json_response(capabilities_json(env_.view.engine().identity())));
    case Route::drain_get:
    case Route::drain_post:
      return act_drain();
    case Route::manage_topic:
    case Route::manage_channel:
      return act_managed();
    case Route::fences_sync:
      return act_fences();
    case Route::live_feed:
      return act_live_feed();
    case Route::storage_scrub:
      return act_scrub();
    default:
      return act_admin();
  }
}

// --- publishing

void HttpConnection::act_publish() {
  const Config& config = env_.view.config();
  const PublishLimits limits{config.queue.max_message_bytes, config.limits.max_body_bytes, config.queue.max_defer_ms};
  const Slice body = body_.take();
  PublishParse parsed = routed_->route == Route::pub ? parse_pub(routed_->target.query, body, limits)
                                                     : parse_mpub(routed_->target.query, body, limits);
  if (parsed.refusal) return respond(std::move(*parsed.refusal));
  PublishRequest& request = parsed.request;
  if (request.bodies.empty()) return respond(http::text_response("OK"));
  if (!env_.view.accepting()) return respond(http::error_response(503, "E_DRAINING"));
  if (env_.view.engine().fault() != nullptr) {
    ++env_.view.counters().storage_errors;
    return respond(http::error_response(503, "E_STORAGE"));
  }
  if (env_.view.disk_pressure()) return respond(http::error_response(429, "E_THROTTLED", "disk pressure"));
  const std::uint64_t messages = request.bodies.size();
  std::uint64_t bytes = 0;
  for (const Slice& message : request.bodies) bytes += message.size();
  const queue::WaiterId waiter = wait(messages, bytes);
  const queue::Outcome outcome =
      env_.view.engine().publish(request.topic, std::move(request.bodies), request.defer_ms, waiter, env_.now);
  if (outcome.ok()) return;
  // Refused at once: no event follows.
  charge_ = env_.waiters[waiter_number(waiter)].charge;
  env_.waiters.erase(waiter_number(waiter));
  waiter_ = 0;
  respond(outcome_response(outcome));
}

void HttpConnection::published(const queue::PublishDone& done) {
  RQ_CHECK(phase_ == Phase::waiting);
  waiter_ = 0;
  respond(done.outcome.ok() ? http::text_response("OK") : outcome_response(done.outcome));
}

// --- administration

void HttpConnection::act_admin() {
  if (env_.view.engine().fault() != nullptr) {
    ++env_.view.counters().storage_errors;
    return respond(http::error_response(503, "E_STORAGE"));
  }
  AdminParse parsed = parse_admin(routed_->route, routed_->target.query, env_.view.engine());
  if (parsed.refusal) return respond(std::move(*parsed.refusal));
  const queue::WaiterId waiter = wait(0, 0);
  if (parsed.action == queue::Admin::delete_topic || parsed.action == queue::Admin::delete_channel)
    env_.waiters[waiter_].removes = std::make_unique<RemovedName>(RemovedName{parsed.topic, parsed.channel});
  env_.view.engine().admin(parsed.action, parsed.topic, parsed.channel, waiter, env_.now);
}

void HttpConnection::admin_done(const queue::AdminDone& done) {
  RQ_CHECK(phase_ == Phase::waiting);
  waiter_ = 0;
  if (routed_->route == Route::fences_sync)
    return respond(done.outcome.ok() ? http::json_response(R"({"status":"ok"})") : native_outcome(done.outcome));
  respond(done.outcome.ok() ? http::empty_response() : outcome_response(done.outcome));
}

void HttpConnection::act_config() {
  if (routed_->argument == "log_level") return act_log_level();
  LookupRegistration& lookups = env_.view.lookups();
  if (routed_->route == Route::config_get) return respond(config_option(env_.view.config(), lookups, routed_->argument));
  const Slice body = body_.take();
  respond(set_config_option(lookups, routed_->argument, body.bytes()));
}

void HttpConnection::act_log_level() {
  if (routed_->route == Route::config_put) {
    const Slice body = body_.take();
    const auto wanted = parse_log_level(text_of(body.bytes()));
    if (!wanted) return respond(http::error_response(body.empty() ? 413 : 400, "INVALID_VALUE"));
    env_.view.log_level() = *wanted;
  }
  respond(http::json_response(std::to_string(log_level_number(env_.view.log_level()))));
}

// --- statistics

void HttpConnection::act_stats() {
  const auto query = http::Query::parse(routed_->target.query);
  if (!query) return respond(http::error_response(400, "INVALID_REQUEST"));
  if (env_.view.engine().fault() != nullptr) {
    ++env_.view.counters().storage_errors;
    return respond(http::error_response(503, "E_STORAGE"));
  }
  if (env_.output_bytes > kOutputBytesMax) return respond(too_many_unread());
  if (auto answer = lookup_refusal(routed_->route, *query, env_.view.engine())) return respond(std::move(*answer));
  const bool filtered = routed_->route != Route::metrics && routed_->route != Route::topics && routed_->route != Route::nodes;
  const std::string topic = filtered ? text_or_empty(*query, "topic") : "";
  const std::string channel = filtered && !is_lookup(routed_->route) ? text_or_empty(*query, "channel") : "";
  const queue::WaiterId waiter = wait(0, 0);
  env_.view.engine().stats(topic, channel, waiter, env_.now);
}

void HttpConnection::stats_done(queue::StatsDone& done) {
  RQ_CHECK(phase_ == Phase::waiting);
  waiter_ = 0;
  if (!done.outcome.ok()) return respond(outcome_response(done.outcome));
  ServerView& view = env_.view;
  const std::uint64_t bytes = memory_of(done.topics);
  if (token_class(routed_->route) != TokenClass::none) return native_stats_done(done);
  if (env_.output_bytes > kOutputBytesMax) return respond(too_many_unread());  // many may have asked at once
  if (routed_->route == Route::native_stats)
    return answer_with(native_stats_json(view.config().node.id, env_.now.wall, std::move(done.topics)), http::kJson, bytes);
  if (routed_->route == Route::metrics) return answer_with(metrics(std::move(done.topics)), "text/plain; version=0.0.4", bytes);
  if (is_lookup(routed_->route)) {
    const auto& network = view.config().network;
    const LookupView self{view.config().node.broadcast_address, advertised(network.advertised_tcp_port, view.tcp_port()),
                          advertised(network.advertised_http_port, view.http_port()), view.accepting()};
    return answer_with(lookup_answer(routed_->route, self, std::move(done.topics)), http::kJson, bytes);
  }
  StatsView stats = stats_view(std::move(done.topics));
  const std::uint64_t with_clients = bytes + memory_of(stats.clients);
  if (stats.query.json) return answer_with(stats_json(std::move(stats)), http::kJson, with_clients);
  answer_with(stats_text(std::move(stats)), http::kTextPlain, with_clients);
}

StatsView HttpConnection::stats_view(std::vector<queue::TopicStats> topics) const {
  const auto query = http::Query::parse(routed_->target.query);
  RQ_CHECK(query.has_value());
  StatsView stats;
  stats.query.json = text_or_empty(*query, "format") == "json";
  stats.query.topic = text_or_empty(*query, "topic");
  stats.query.channel = text_or_empty(*query, "channel");
  stats.query.include_clients = flag(*query, "include_clients", true);
  stats.query.include_mem = flag(*query, "include_mem", true);
  stats.version = nsq::server_version();
  stats.start_time_unix = env_.view.start_time_unix();
  stats.now = env_.now;
  stats.topics = std::move(topics);
  // A Topic that is not there has no producers either.
  if (!stats.query.topic.empty() && stats.topics.empty()) stats.query.include_clients = false;
  // As nsqd: Topics without the named Channel are left out.
  if (!stats.query.channel.empty()) std::erase_if(stats.topics, [](const queue::TopicStats& t) { return t.channels.empty(); });
  if (stats.query.include_clients) env_.view.clients(stats.clients);
  return stats;
}

std::unique_ptr<Rendering> HttpConnection::metrics(std::vector<queue::TopicStats> topics) const {
  ServerView& view = env_.view;
  MetricsInput input;
  input.tcp_connections = view.tcp_connections();
  input.http_connections = env_.open;
  input.websocket_connections = view.websocket_connections();
  input.publish_bytes_in_flight = view.publish_bytes_in_flight();
  input.disk_pressure = view.disk_pressure();
  input.disk = view.disk_usage();
  input.detailed = view.config().metrics.detailed_queue_metrics;
  input.max_detailed_series = view.config().metrics.max_detailed_series;
  input.counters = view.counters();
  input.engine = view.engine().metrics();
  input.topics = std::move(topics);
  return metrics_text(std::move(input));
}

void HttpConnection::answer_with(std::unique_ptr<Rendering> rendering, std::string_view content_type,
                                 std::uint64_t source_bytes) {
  rendering_ = std::move(rendering);
  rendered_type_ = content_type;
  source_bytes_ = source_bytes;
  env_.output_bytes += source_bytes;
  env_.renderings.push_back(slot_);
}

bool HttpConnection::render() {
  if (rendering_ == nullptr) return true;
  std::string part = rendering_->next(env_.render_left);
  env_.render_left -= std::min(part.size(), env_.render_left);
  env_.view.counters().rendered_bytes += part.size();
  env_.output_bytes += part.size();
  rest_.push_back(std::move(part));
  if (!rendering_->done()) return false;
  end_rendering();
  http::Response response;
  response.content_type = rendered_type_;
  if (rest_.size() == 1) {  // one write for a small one
    env_.output_bytes -= rest_.front().size();
    response.body = std::move(rest_.front());
    rest_.clear();
  }
  for (const std::string& piece : rest_) response.rest_bytes += piece.size();
  respond(std::move(response));
  return true;
}

void HttpConnection::end_rendering() {
  rendering_.reset();
  env_.output_bytes -= std::exchange(source_bytes_, 0);
}

// --- scrub (page 31 section 5.8): no time limit, a large volume takes its time

void HttpConnection::act_scrub() {
  const queue::WaiterId waiter = wait(0, 0);
  env_.view.engine().scrub(waiter);
}

void HttpConnection::scrub_done(const queue::ScrubDone& done) {
  RQ_CHECK(phase_ == Phase::waiting);
  waiter_ = 0;
  if (!done.outcome.ok()) return respond(outcome_response(done.outcome));
  std::string body;
  JsonWriter json(body);
  json.begin_object();
  json.key("status").value("ok").key("records_checked").value(done.records);
  json.end_object();
  respond(http::json_response(std::move(body)));
}

http::Response HttpConnection::health() const {
  const ServerView& view = env_.view;
  const queue::Engine& engine = env_.view.engine();
  const bool opening = view.starting();
  std::string_view reason;
  if (opening) {
    reason = "recovering";
  } else if (!view.accepting()) {
    reason = "draining";
  } else if (view.disk_pressure()) {
    reason = "disk_pressure";
  } else if (engine.fault() != nullptr) {
    reason = "storage_fault";
  } else if (!engine.fences_ready()) {
    reason = "management_fences_stale";
  }
  std::string body;
  JsonWriter json(body);
  json.begin_object();
  if (reason.empty()) {
    json.key("status").value("ready").key("node_id").value(view.config().node.id).key("storage").value("healthy");
    json.key("mode").value("share-nothing").key("data_format").value(storage::kDataFormat);
  } else {
    json.key("status").value("not_ready").key("reason").value(reason).key("node_id").value(view.config().node.id);
    if (opening) {
      json.key("recovered_topics").value(engine.recovered_topics());
      json.key("recoverable_topics").value(engine.recoverable_topics());
    }
  }
  json.end_object();
  http::Response response = http::json_response(std::move(body));
  if (!reason.empty()) response.status = 503;
  return response;
}

http::Response HttpConnection::info() const {
  const Config& config = env_.view.config();
  std::string body;
  JsonWriter json(body);
  json.begin_object();
  json.key("version").value(nsq::server_version());
  json.key("broadcast_address").value(config.node.broadcast_address).key("hostname").value(config.node.broadcast_address);
  json.key("http_port").value(advertised(config.network.advertised_http_port, env_.view.http_port()));
  json.key("tcp_port").value(advertised(config.network.advertised_tcp_port, env_.view.tcp_port()));
  json.key("start_time").value(env_.view.start_time_unix());
  json.key("max_heartbeat_interval").value(config.limits.max_heartbeat_interval_ms * 1'000'000);
  json.key("max_output_buffer_size").value(config.limits.max_output_buffer_size);
  json.key("max_output_buffer_timeout").value(config.limits.max_output_buffer_timeout_ms * 1'000'000);
  json.key("max_deflate_level").value(config.network.max_deflate_level);
  json.key("node_id").value(config.node.id).key("data_format").value(storage::kDataFormat).key("mode").value("share-nothing");
  put_lookups(json, env_.view.lookups());
  json.end_object();
  return http::json_response(std::move(body));
}

// --- waiting for the engine

// The charge goes with the call: it is given back when the engine is done, whether or not the connection still lives.
queue::WaiterId HttpConnection::wait(std::uint64_t messages, std::uint64_t bytes) {
  RQ_CHECK(waiter_ == 0);
  disarm();
  phase_ = Phase::waiting;
  waiter_ = ++env_.last_waiter;
  env_.waiters.emplace(waiter_, HttpWaiter{this, std::exchange(charge_, 0), messages, bytes, nullptr});
  return make_waiter(WaiterKind::http, waiter_);
}

void HttpConnection::forget_waiter() {
  if (waiter_ == 0) return;
  const auto found = env_.waiters.find(waiter_);
  RQ_CHECK(found != env_.waiters.end());
  found->second.connection = nullptr;
  waiter_ = 0;
}

}  // namespace rq::broker
